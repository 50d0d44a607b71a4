import assert from "node:assert/strict";
import { test } from "node:test";
import { acceptsType } from "../../src/select/events.ts";
import { eventOf, headersOf } from "../core/event.ts";

const gitlab = (type: string, ...more: string[]) =>
  eventOf({ type, typeNames: [type, ...more], headers: headersOf({ "x-gitlab-event": type }) });
const long = gitlab("Merge Request Hook", "merge_request");
const short = gitlab("merge_request");
const neutral = eventOf({
  type: "Merge Request Hook",
  typeNames: ["Merge Request Hook", "merge_request"],
  headers: headersOf({ "x-hostb-event": "Merge Request Hook" }),
});
const other = (type: string) => eventOf({ type, typeNames: [type] });

const cases: [events: string[], event: ReturnType<typeof eventOf>, accepted: boolean][] = [
  [[], other("anything"), true],
  [["push"], other("push"), true],
  [["pull_request", "push"], other("push"), true],
  [["push"], other("pus"), false],
  [["push"], other("push2"), false],
  [["push"], other("Push"), false],
  [[""], other("push"), false],
  [["constructor"], other("push"), false],
  [["Merge Request Hook"], long, true],
  [["merge_request"], long, true],
  [["Merge Request Hook"], short, true],
  [["merge_request"], short, true],
  [["merge_request"], neutral, true],
  [["merge request hook"], long, false],
  [["Push Hook"], long, false],
  [["Push Hook"], other("push"), false],
  [["push"], other("Push Hook"), false],
];
for (const [events, event, accepted] of cases) {
  const from = event.headers.size > 0 ? "GitLab's " : "";
  test(`the list ${JSON.stringify(events)} ${accepted ? "accepts" : "does not accept"} ${from}"${event.type}"`, () => {
    assert.equal(acceptsType(events, event), accepted);
  });
}

test("a short form that GitHub's header brings is not GitLab's event", () => {
  const headers = headersOf({ "x-gitlab-event": "merge_request", "x-github-event": "merge_request" });
  const event = eventOf({ type: "merge_request", typeNames: ["merge_request"], headers });
  assert.equal(acceptsType(["Merge Request Hook"], event), false);
});
