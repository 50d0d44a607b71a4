import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { splitText } from "../../src/core/split.ts";
import { createTeams, teams } from "../../src/target/teams.ts";
import { delivered, jsonService } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeTeams, startFakeTeams, type TextBlock } from "../fakes/teams.ts";

testTarget("teams", {
  create: createTeams,
  extra: {},
  start: async () => {
    const fake = await startFakeTeams();
    return { fake, settings: { webhook_url: fake.webhookUrl }, secret: "fakeSignature_of-theWorkflow" };
  },
  expected: { ...jsonService, ok: delivered },
  // Mentions, functions, images, and links that go elsewhere than to the web.
  live: [/<at\b/i, /\{\{/, /(?<!\\)!\[[^\]]*\]\(/, /(?<!\\)\[[^\]]*[^\\]\]\((?!https?:|mailto:)/],
});

async function withTeams(use: (fake: FakeTeams, send: (text: string, extra?: object) => Promise<unknown>) => unknown) {
  const fake = await startFakeTeams();
  const settings = { webhook_url: fake.webhookUrl };
  try {
    await use(fake, (text, extra = {}) =>
      teams.send(partOf(teams, { settings }, { ...extra }, text), settings, toolsFor({})),
    );
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

describe("teams", () => {
  const written: [markdown: string, blocks: Partial<TextBlock>[]][] = [
    ["**bold** *italic* ~~gone~~", [{ text: "**bold** _italic_ gone" }]],
    ["# Title\n\nText", [{ text: "Title", weight: "Bolder" }, { text: "Text" }]],
    [
      "```ts\nif (a_b) {\n  c * d;\n```",
      [{ text: "if (a_b) {" }, { text: "\u00a0\u00a0c \\* d;", fontType: "Monospace" }],
    ],
    ["1. one\n2. two\n- [ ] three", [{ text: "1\u200b. one" }, { text: "2\u200b. two" }, { text: "• ☐ three" }]],
    ["[the build](https://ci.example/a_b)", [{ text: "[the build](https://ci.example/a_b)" }]],
    ["![pixel](https://tracker.example/p.png)", [{ text: "[pixel](https://tracker.example/p.png)" }]],
    ["```\n\n```", [{ text: "(no text)" }]],
    ["<at>Jane</at> {{DATE(2026-01-01)}}", [{ text: "<\u200bat>Jane<\u200b/at> {\u200b{DATE(2026-01-01)}}" }]],
  ];
  for (const [markdown, blocks] of written) {
    test(`writes Markdown as blocks of a card: ${JSON.stringify(markdown)}`, () =>
      withTeams(async (fake, send) => {
        await send(markdown);
        const sent = fake.messages[0]!.blocks;
        assert.equal(sent.length, blocks.length);
        for (const [index, block] of blocks.entries()) assert.deepEqual({ ...sent[index], ...block }, sent[index]);
      }));
  }

  test("shows text that is no Markdown as it is", () =>
    withTeams(async (fake, send) => {
      const text = "# **not bold** _x_ a_b [c](d)\n1. one\n- two\n\n> \\o/";
      await send(text, { format: "plain" });
      const { text: shown, raw } = fake.messages[0]!;
      assert.equal(shown, text);
      assert.match(raw, /^1\u200b\. one$/m);
    }));

  test("shows no signature when the workflow repeats it", () =>
    withTeams(async (fake, send) => {
      fake.mode = "refused";
      fake.answer = { status: 401, body: { error: { code: "X", message: `Bad ${fake.webhookUrl}` } } };
      const { message } = await failureOf(send("Hello"));
      assert.ok(!message.includes("fakeSignature"), message);
    }));

  test("keeps every card below what Teams takes, whatever it is made of", () =>
    withTeams(async (fake, send) => {
      for (const text of ["\n.".repeat(30_000), '"\\\u00e4*'.repeat(20_000), "a\n\n\tb ".repeat(10_000)])
        for (const part of splitText(text, teams.limit)) await send(part);
      for (const { bytes } of fake.messages) assert.ok(bytes <= 20_000, `${bytes} bytes`);
      assert.equal(fake.messages.length, 30);
    }));

  const answers: [status: number, headers: Record<string, string>, text: string, isDelivered: boolean][] = [
    [202, {}, "", true],
    [202, { "content-type": "text/html" }, "<p>Hello</p>", false],
    [200, {}, "1", true],
    [200, {}, "{}", false],
  ];
  for (const [status, headers, text, isDelivered] of answers) {
    test(`takes the answer ${status} ${JSON.stringify(text)} for ${isDelivered ? "a success" : "none of Teams"}`, () =>
      withTeams(async (fake, send) => {
        fake.mode = "refused";
        fake.answer = { status, headers, text };
        if (isDelivered) await send("Hello");
        else assert.equal((await failureOf(send("Hello"))).sent, "maybe");
      }));
  }

  test("names the run of the workflow", () =>
    withTeams(async (_fake, send) => assert.deepEqual(await send("Hello"), { reference: "0858fakeRun" })));
});
