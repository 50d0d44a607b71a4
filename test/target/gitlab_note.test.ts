import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import { checkAddress, readAddress } from "../../src/target/address.ts";
import { createGitlabNote, gitlab_note } from "../../src/target/gitlab_note.ts";
import { readSettings } from "../../src/target/settings.ts";
import type { Part, Receipt, SettingValues } from "../../src/target/target.ts";
import { jsonService } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeGitlab, startFakeGitlab } from "../fakes/gitlab.ts";
import { loading } from "../fakes/markdown.ts";

const place = { project: "group/name", iid: "5" };
/** Quick actions, mentions, and what asks other servers. */
const live = [...loading, /^\s*\/[a-z]+\s/im, /(?<![A-Za-z0-9])@[A-Za-z0-9_.]/];

testTarget("gitlab_note", {
  create: createGitlabNote,
  extra: place,
  elsewhere: { iid: "6" },
  start: async () => {
    const fake = await startFakeGitlab();
    return { fake, settings: { token: fake.token, base_url: fake.baseUrl }, secret: fake.token };
  },
  expected: jsonService,
  live,
});

interface Tries {
  readonly fake: FakeGitlab;
  readonly send: (text: string, extra?: object, settings?: SettingValues) => Promise<Receipt>;
  readonly find: (changes?: Partial<Part>) => Promise<Receipt | undefined>;
}

/** Tries with a fake that is gone afterwards. Every part has the same key. */
async function withGitlab(use: (tries: Tries) => Promise<void>) {
  const fake = await startFakeGitlab();
  const values = { token: fake.token, base_url: fake.baseUrl };
  const partFor = (text: string, extra: object) => {
    return { ...partOf(gitlab_note, { settings: values }, { ...place, ...extra }, text), key };
  };
  assert.equal(gitlab_note.repeats, "findable");
  const { find } = gitlab_note;
  try {
    await use({
      fake,
      send: (text, extra = {}, settings = {}) =>
        gitlab_note.send(partFor(text, extra), { ...values, ...settings }, toolsFor({})),
      find: (changes = {}) => find({ ...partFor("x", {}), ...changes }, values, toolsFor({})),
    });
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

const key = "0123456789abcdef0123456789abcdef";
const marker = `<!-- postern:${key} -->`;

describe("gitlab_note", () => {
  test("writes at merge requests and issues, and answers with the link", () =>
    withGitlab(async ({ fake, send }) => {
      const link = `${fake.baseUrl}/group/name/-/merge_requests/5#note_1`;
      assert.deepEqual(await send("Done"), { reference: link });
      for (const noteable_type of ["issue", "Issue", "MergeRequest"]) await send("Done", { noteable_type });
      const kinds = fake.messages.map((note) => note.place.split("/")[1]);
      assert.deepEqual(kinds, ["merge_requests", "issues", "issues", "merge_requests"]);
    }));

  test("answers in a discussion, and writes internal notes", () =>
    withGitlab(async ({ fake, send }) => {
      const discussion_id = "6a9c1750b37d513a43987b574953fceb50b03ce7";
      await send("Done", { discussion_id });
      await send("Done", { internal: "true" });
      const seen = fake.messages.map(({ discussion, isInternal }) => [discussion, isInternal]);
      assert.deepEqual(seen, [
        [discussion_id, false],
        [undefined, true],
      ]);
      const both = await failureOf(send("Done", { discussion_id, internal: "true" }));
      assert.deepEqual([both.sent, both.retryAfterMs], ["no", "never"]);
    }));

  test("lets no quick action run and nobody be called", () =>
    withGitlab(async ({ fake, send }) => {
      await send("/merge\n  /close\n@all and @group/team\n```\n/approve\n```");
      const { body } = fake.messages[0]!;
      for (const pattern of [/^\s*\/[a-z]/m, /@[a-z]/]) assert.doesNotMatch(body, pattern);
    }));

  test("lets mentions live where the operator allows them, but no quick action", () =>
    withGitlab(async ({ fake, send }) => {
      await send("@ann look\n/merge\n /close\n```\n/approve\n```", {}, { allow_mentions: true });
      const { body } = fake.messages[0]!;
      assert.match(body, /^@ann look/);
      assert.doesNotMatch(body, /^\s*\/[a-z]/m);
    }));

  test("shows images as links, also where GitLab's own blocks end the code", () =>
    withGitlab(async ({ fake, send }) => {
      await send("![a](https://a.example/b.mp4)\n```\n![code](x)\n```");
      await send(">>>\n```\n>>>\n![a](https://a.example/b)\n```");
      await send("![a](https://a.example/b) @ann", {}, { allow_images: true });
      await send("![a](https://a.example/b) @ann", {}, { allow_mentions: true });
      const shown = fake.messages.map(({ text }) => text.replaceAll("\u200b", "∅"));
      assert.deepEqual(shown, [
        "!∅[a](https://a.example/b.mp4)\n```\n![code](x)\n```",
        ">>>\n```\n>>>\n!∅[a](https://a.example/b)\n```",
        "![a](https://a.example/b) @∅ann",
        "!∅[a](https://a.example/b) @ann",
      ]);
    }));

  const servers: [env: Record<string, string>, asked: string][] = [
    [{}, "https://gitlab.com"],
    [{ GITLAB_HOST: "gitlab.example.com" }, "https://gitlab.example.com"],
    [{ GITLAB_HOST: "gitlab.example.com:8443/git/" }, "https://gitlab.example.com:8443/git"],
    [{ GITLAB_HOST: "http://gitlab.example.com/" }, "http://gitlab.example.com"],
    [{ GITLAB_HOST: "other.example.com", GITLAB_URL: "https://gitlab.example.com" }, "https://gitlab.example.com"],
    [{ GITLAB_HOST: "other.example.com", GITLAB_URL: "https://gitlab.com" }, "https://gitlab.com"],
  ];
  for (const [env, asked] of servers) {
    test(`asks ${asked} with the environment ${JSON.stringify(env)}`, async () => {
      const read = readSettings(gitlab_note, {}, { GITLAB_TOKEN: "glpat-x", ...env });
      assert.ok("values" in read, JSON.stringify(read));
      const urls: string[] = [];
      const fetching = mock.method(globalThis, "fetch", async (url: string | URL | Request) => {
        urls.push(String(url));
        return Response.json({ username: "bot" });
      });
      await gitlab_note.check(read.values, toolsFor({})).finally(() => fetching.mock.restore());
      assert.deepEqual(urls, [`${asked}/api/v4/user`]);
    });
  }
  for (const GITLAB_HOST of [
    "a@b.example",
    "b.example?x",
    "b.example#x",
    "ftp://b.example",
    "b.example/../x?",
    "a b",
    "-b",
  ]) {
    test(`takes no host from ${GITLAB_HOST}`, () => {
      const read = readSettings(gitlab_note, {}, { GITLAB_TOKEN: "glpat-x", GITLAB_HOST });
      assert.ok("problems" in read);
      assert.deepEqual(
        read.problems.map(({ key }) => key),
        ["host"],
      );
    });
  }

  test("ends each note in a hidden marker, behind a code block that it closes", () =>
    withGitlab(async ({ fake, send }) => {
      await send("Look:\n```ts\nlet a");
      assert.equal(fake.messages[0]!.body, `Look:\n\`\`\`ts\nlet a\n\`\`\`\n\n${marker}`);
    }));

  test("says that GitLab ran quick actions and wrote no note", () =>
    withGitlab(async ({ fake, send }) => {
      fake.mode = "refused";
      fake.answer = { status: 202, body: { commands_changes: {}, summary: ["Closed this issue."] } };
      const error = await failureOf(send("x"));
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
      assert.match(error.message, /quick actions and wrote no note$/);
    }));

  const fates: [
    status: number,
    body: object,
    sent: "no" | "maybe",
    wait: number | "never" | undefined,
    words: RegExp,
  ][] = [
    [400, { message: { note: ["can't be blank"] } }, "no", "never", /blank/],
    [401, { message: "401 Unauthorized" }, "no", "never", /check the "token"$/],
    [403, { error: "insufficient_scope", error_description: "x" }, "no", "never", /"insufficient_scope"; check that/],
    [404, { message: "404 Project Not Found" }, "no", "never", /check the project and the number/],
    [409, { message: "409 Conflict" }, "no", "never", /409/],
    [500, { message: "500 Internal Server Error" }, "maybe", undefined, /500/],
    [201, { body: "x" }, "maybe", undefined, /not one of GitLab/],
  ];
  for (const [status, body, sent, wait, words] of fates) {
    test(`is right about when to try again after ${status}`, () =>
      withGitlab(async ({ fake, send }) => {
        fake.mode = "refused";
        fake.answer = { status, body };
        const error = await failureOf(send("x"));
        assert.deepEqual([error.sent, error.retryAfterMs], [sent, wait], error.message);
        assert.match(error.message, words);
      }));
  }

  test("finds its note among others and beyond a page, and takes no marker within a text for its own", () =>
    withGitlab(async ({ fake, send, find }) => {
      fake.write(`Copied: ${marker}\n\nand more`);
      await send("Done");
      for (let count = 0; count < 45; count += 1) fake.write(`> ${marker}`);
      assert.match((await find())?.reference ?? "", /#note_2$/);
      assert.equal(await find({ key: "f".repeat(32) }), undefined);
    }));

  test("looks behind a page that lacks what the token may not see", () =>
    withGitlab(async ({ fake, send, find }) => {
      await send("Done");
      for (let count = 0; count < 25; count += 1) fake.write("secret");
      fake.hide(({ body }) => body === "secret");
      assert.match((await find())?.reference ?? "", /#note_1$/);
    }));

  test("looks back no further than two minutes before the first try", () =>
    withGitlab(async ({ fake, find }) => {
      const firstTriedAt = Date.now();
      fake.write(`too old\n\n${marker}`, firstTriedAt - 3_600_000);
      for (let count = 0; count < 20; count += 1) fake.write("old", firstTriedAt - 125_000);
      assert.equal(await find({ firstTriedAt }), undefined);
      assert.equal(fake.heard.length, 1);
    }));

  test("ends after a thousand notes, and does not say that there is none", () =>
    withGitlab(async ({ fake, find }) => {
      for (let count = 0; count < 1001; count += 1) fake.write("x");
      const error = await failureOf(find());
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
    }));

  test("needs a project and a number", () => {
    assert.deepEqual(
      checkAddress(gitlab_note, {}, {}).map(({ key }) => key),
      ["project", "iid"],
    );
    assert.deepEqual(readAddress(gitlab_note, { project_id: "7", merge_request_iid: "3" }, {}), {
      project: "7",
      iid: "3",
    });
  });

  for (const project of ["1", "a/b", "a/b/c-d/e_f.g"]) {
    test(`takes the project ${project}`, () =>
      assert.deepEqual(checkAddress(gitlab_note, { project, iid: "1" }, {}), []));
  }
  for (const project of [
    "0",
    "name",
    "a/",
    "/a",
    "a//b",
    "../b",
    "a/..",
    "a/./b",
    "a b/c",
    "a/b?x",
    "a%2Fb",
    "a/b#c",
    "a/b\n",
  ]) {
    test(`refuses the project ${JSON.stringify(project)}`, () => {
      assert.throws(() => readAddress(gitlab_note, { project, iid: "1" }, {}), { sent: "no", retryAfterMs: "never" });
    });
  }
});
