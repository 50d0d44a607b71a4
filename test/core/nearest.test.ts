import assert from "node:assert/strict";
import { test } from "node:test";
import { suggestion } from "../../src/core/nearest.ts";

const known = ["host", "port", "email", "rate_limit", "github_comment"];

for (const [written, meant] of [
  ["prot", "port"],
  ["emial", "email"],
  ["ratelimit", "rate_limit"],
  ["Host", "host"],
  ["githubcomment", "github_comment"],
]) {
  test(`"${written}" is taken for a slip of "${meant}"`, () => {
    assert.equal(suggestion(written ?? "", known), `did you mean "${meant}"`);
  });
}

test("a word that is like none of them gets the list", () => {
  assert.equal(suggestion("telephone", known), "known are host, port, email, rate_limit, github_comment");
});
