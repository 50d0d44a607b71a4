import assert from "node:assert/strict";
import { test } from "node:test";
import { compilePrompt } from "../../src/compose/prompt.ts";
import { eventOf } from "../core/event.ts";

test("a route's prompt is rendered with the event", () => {
  const event = eventOf({ type: "push", payload: { ref: "main" } });
  assert.equal(compilePrompt("{event_type} to {ref}")(event), "push to main");
});

for (const prompt of [undefined, "", " \n"]) {
  test(`with the prompt ${JSON.stringify(prompt)} it is the whole payload as indented JSON`, () => {
    assert.equal(compilePrompt(prompt)(eventOf({ payload: { ref: "main" } })), '{\n  "ref": "main"\n}');
  });
}

test("the whole payload is truncated to 4000 characters", () => {
  const payload = { text: "x".repeat(10_000) };
  assert.equal(compilePrompt(undefined)(eventOf({ payload })), JSON.stringify(payload, null, 2).slice(0, 4000));
});
