import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { DeliveryError } from "../../src/core/errors.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createGithubComment, github_comment } from "../../src/target/github_comment.ts";
import { readAddress } from "../../src/target/settings.ts";
import type { SettingValues } from "../../src/target/target.ts";
import { type FakeGithub, startFakeGithub } from "../fakes/github.ts";
import { missing } from "../needs.ts";

const key = "0123456789abcdef0123456789abcdef";
const nowMs = 1_800_000_000_000;
const target = createGithubComment({ now: () => nowMs });

describe("the address of a comment", () => {
  test("is a repository and a number under any of its names", () => {
    for (const name of ["pr_number", "issue_number", "number"]) {
      assert.deepEqual(readAddress(github_comment, { repo: "o-1/r.x_y", [name]: "7" }, {}), {
        repo: "o-1/r.x_y",
        pr_number: "7",
      });
    }
  });

  const badRepos = [
    ...[
      "--help",
      "../..",
      "a/b/../../c",
      "./b",
      "a/..",
      "a/.",
      "a",
      "a/b/c",
      "/a/b",
      "a/b/",
      "a b/c",
      "a/b\n",
      "a/b?x=1",
    ],
    ...["a/b#1", "{owner}/{repo}", ":owner/:repo", "a/b%2f..", "a\0/b", "ａ/b", "https://github.com/a/b", "a//b"],
  ];
  const badNumbers = [
    "1;2",
    "-1",
    "0",
    "01",
    "1.0",
    "1e3",
    "--help",
    "1/../2",
    "1\n",
    " 1",
    "",
    "９",
    "12345678901",
    "$(id)",
  ];
  for (const repo of badRepos) {
    test(`refuses the repository ${JSON.stringify(repo)}`, () => {
      assert.throws(() => readAddress(github_comment, { repo, pr_number: "1" }, {}), isRefusal);
    });
  }
  for (const pr_number of badNumbers) {
    test(`refuses the number ${JSON.stringify(pr_number)}`, () => {
      assert.throws(() => readAddress(github_comment, { repo: "a/b", pr_number }, {}), isRefusal);
    });
  }
});

function isRefusal(error: unknown): boolean {
  return error instanceof DeliveryError && error.sent === "no" && error.retryAfterMs === "never";
}

test("gh gets nothing of the gateway's other secrets, and nothing of the text among its arguments", async () => {
  const folder = await mkdtemp(join(tmpdir(), "gh-"));
  const says = '{"html_url":"\'"$(env | cut -d= -f1 | sort | xargs) : $*"\'"}';
  const script = `#!/bin/sh\nprintf 'HTTP/2.0 201 Created\\nServer: x\\r\\n\\r\\n'\nprintf '%s' '${says}'\n`;
  await writeFile(join(folder, "gh"), script, { mode: 0o700 });
  const others = { TELEGRAM_BOT_TOKEN: "a", POSTERN_HOME: "b", GH_DEBUG: "api", GH_REPO: "x/y", NODE_OPTIONS: "c" };
  const env = { PATH: `${folder}:${process.env.PATH}`, HOME: folder, GH_TOKEN: "d", ...others };
  const address = readAddress(target, { repo: "owner/name", pr_number: "5" }, {});
  const part = { text: "a secret answer", address, index: 0, count: 1, key, route: "ci", eventType: "push" };
  const { reference = "" } = await target.send(part, {}, { env, log: silentLog, signal: new AbortController().signal });
  await rm(folder, { recursive: true });
  const [names, args] = reference.split(" : ");
  assert.deepEqual(
    names?.split(" ").filter((name) => !/^(PWD|OLDPWD|SHLVL|_)$/.test(name)),
    ["GH_NO_UPDATE_NOTIFIER", "GH_PROMPT_DISABLED", "GH_TOKEN", "HOME", "NO_COLOR", "PATH"],
  );
  assert.match(args ?? "", /^api -i -X POST .* repos\/owner\/name\/issues\/5\/comments --input -$/);
  assert.doesNotMatch(args ?? "", /secret/);
});

describe("github_comment through the real gh", { skip: missing("gh") }, () => {
  let fake: FakeGithub;
  before(async () => {
    fake = await startFakeGithub();
  });
  after(() => fake.close());

  function send(text: string, env: Record<string, string | undefined> = {}, settings: SettingValues = {}) {
    const address = readAddress(target, { repo: "owner/name", pr_number: "5" }, {});
    const part = { text, address, index: 0, count: 1, key, route: "ci", eventType: "push" };
    const tools = {
      env: { PATH: process.env.PATH, ...fake.env, ...env },
      log: silentLog,
      signal: new AbortController().signal,
    };
    return target.send(part, settings, tools);
  }

  async function failure(sending: Promise<unknown>): Promise<DeliveryError> {
    const error = await sending.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof DeliveryError, String(error));
    return error;
  }

  test("answers with the link of the comment", async () => {
    assert.deepEqual(await send("Done"), { reference: fake.messages.at(-1)!.url });
  });

  test("posts nothing that would reach anybody or command a bot", async () => {
    await send("@octocat and @org/team\n/merge\n@dependabot merge\n`@Inject`");
    assert.equal(
      fake.messages.at(-1)!.text.replaceAll("\u200b", "∅"),
      "@∅octocat and @∅org/team\n/∅merge\n@∅dependabot merge\n`@Inject`",
    );
  });

  test("cuts what became too long, and the cut brings no mention back to life", async () => {
    await send(`\`${"@user ".repeat(8000)}\` ${"@a ".repeat(20_000)}`);
    const { text } = fake.messages.at(-1)!;
    assert.ok([...text].length <= 65_536);
    assert.match(text, /\[cut: the answer was longer\]$/);
    assert.doesNotMatch(text, /@[a-z]/);
  });

  test("takes an answer that would not fit on a command line", async () => {
    const text = "東".repeat(65_536);
    await send(text);
    assert.equal(fake.messages.at(-1)!.text, text);
  });

  test("speaks to an Enterprise Server with its own token only", async () => {
    const env = { GH_TOKEN: "ghp_notForThisHost", GH_ENTERPRISE_TOKEN: fake.token };
    await send("from the environment", { ...env, GH_HOST: "ghe.example.com" });
    assert.equal(fake.messages.at(-1)!.host, "ghe.example.com");
    await send(
      "from the settings",
      { GH_TOKEN: "ghp_notForThisHost" },
      { hostname: "ghe.example.org", enterprise_token: fake.token },
    );
    assert.equal(fake.messages.at(-1)!.host, "ghe.example.org");
  });

  test("waits for a program that is not there yet", async () => {
    const error = await failure(send("x", { PATH: "/nonexistent" }));
    assert.deepEqual([error.sent, error.retryAfterMs], ["no", undefined]);
    assert.match(error.message, /install it/);
  });

  test("says how to log in", async () => {
    const nobody = await failure(send("x", { GH_TOKEN: undefined }));
    assert.deepEqual([nobody.sent, nobody.retryAfterMs], ["no", "never"]);
    assert.match(nobody.message, /run gh auth login or set GH_TOKEN$/);
    const stranger = await failure(send("x", { GH_TOKEN: "ghp_unknownToken" }));
    assert.match(stranger.message, /401 "Bad credentials"; run gh auth login or set GH_TOKEN$/);
    assert.ok(!stranger.message.includes("ghp_unknownToken"));
  });

  const limits: [
    what: string,
    status: number,
    headers: Record<string, string>,
    message: string,
    wait: DeliveryError["retryAfterMs"],
  ][] = [
    ["a named time", 403, { "retry-after": "30" }, "Slow down", 30_000],
    [
      "a spent budget",
      403,
      { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1800000090" },
      "API rate limit exceeded",
      90_000,
    ],
    [
      "a budget that is full again",
      403,
      { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1799999990" },
      "API rate limit exceeded",
      0,
    ],
    ["a secondary limit without a time", 403, {}, "You have exceeded a secondary rate limit", 60_000],
    ["429", 429, {}, "Too many", undefined],
    ["429 with a time", 429, { "retry-after": "5" }, "Too many", 5000],
    ["403 for lack of rights", 403, { "x-ratelimit-remaining": "4999" }, "Resource not accessible", "never"],
    ["401", 401, {}, "Bad credentials", "never"],
    ["404", 404, {}, "Not Found", "never"],
    ["410, issues are disabled", 410, {}, "Issues are disabled for this repo", "never"],
    ["422", 422, {}, "Validation Failed", "never"],
  ];
  for (const [what, status, headers, message, wait] of limits) {
    test(`is right about when to try again: ${what}`, async () => {
      fake.answer = { status, headers, body: { message } };
      fake.upcoming.push("refused");
      const error = await failure(send("x"));
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", wait]);
      assert.ok(error.message.includes(`GitHub answered ${status} "${message}"`), error.message);
    });
  }

  test("passes on why a field was refused", async () => {
    const error = await failure(send(" "));
    assert.match(error.message, /422 "Validation Failed; body can't be blank"/);
  });

  test("is not fooled by what a body says", async () => {
    fake.answer = { status: 422, body: { message: 'HTTP/1.1 201 Created\r\n\r\n{"html_url":"x"}' } };
    fake.upcoming.push("refused");
    assert.equal((await failure(send("x"))).retryAfterMs, "never");
  });
});
