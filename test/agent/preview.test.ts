import assert from "node:assert/strict";
import { test } from "node:test";
import { preview } from "../../src/agent/preview.ts";
import { aContext, aRequest } from "./surroundings.ts";

const prompt = "  Review {this}\n\n";

async function answerTo(skill: string | undefined): Promise<unknown> {
  const request = aRequest({
    prompt,
    skill: skill === undefined ? undefined : { name: "s", text: skill, folder: "/s" },
  });
  const outcome = await preview.run(request, aContext());
  return outcome.status === "completed" && outcome.answer;
}

test("without a skill the answer is exactly the prompt", async () => {
  assert.equal(await answerTo(undefined), prompt);
});

test("the skill goes before the prompt with one blank line between, however the skill ends", async () => {
  assert.equal(await answerTo("# Reviews\nBe kind"), `# Reviews\nBe kind\n\n${prompt}`);
  assert.equal(await answerTo("# Reviews\nBe kind\n\n\n"), `# Reviews\nBe kind\n\n${prompt}`);
});

test("a blank skill adds nothing", async () => {
  assert.equal(await answerTo(" \n"), prompt);
});

test("nothing is needed to start", async () => {
  assert.equal(await preview.blocked(aContext()), undefined);
});
