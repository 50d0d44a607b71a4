import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { DeliveryError } from "../../src/core/errors.ts";
import { silentLog } from "../../src/lib/log.ts";
import { readAddress } from "../../src/target/address.ts";
import { restLogin } from "../../src/target/gh_rest.ts";
import { createGithubComment, github_comment } from "../../src/target/github_comment.ts";
import type { Part, SettingValues, TargetTools } from "../../src/target/target.ts";
import { delivered, jsonService } from "../conformance/target/case.ts";
import { makeMemory } from "../conformance/target/memory.ts";
import { failureOf, testTarget } from "../conformance/target/suite.ts";
import { type FakeGithub, startFakeGithub } from "../fakes/github.ts";
import { loading } from "../fakes/markdown.ts";
import { missing } from "../needs.ts";

const common = {
  create: createGithubComment,
  extra: { repo: "owner/name", number: "5" },
  elsewhere: { pr_number: "6" },
  /** Mentions, what bots act on, and what asks other servers. */
  live: [/(?<![A-Za-z0-9])@[A-Za-z0-9]/, /^\s*\/[a-z]+\s/im, /^\s*bors /im, ...loading],
};

testTarget("github_comment by gh", {
  ...common,
  start: async () => {
    const fake = await startFakeGithub();
    return { fake, settings: {}, env: { PATH: process.env.PATH, ...fake.env }, secret: fake.token };
  },
  skip: missing("gh"),
  // The status line, 201, was there: GitHub has the comment.
  expected: { ...jsonService, reset: delivered, huge: delivered },
  // With the fake gone `gh` would ask the real GitHub, were it not for a proxy that is not there either.
  unreachable: (env) => ({ ...env, HTTPS_PROXY: "http://127.0.0.1:1" }),
});

testTarget("github_comment with a token", {
  ...common,
  start: async () => {
    const fake = await startFakeGithub();
    const settings = { token: fake.token, base_url: fake.baseUrl };
    return { fake, settings, env: { PATH: "/nonexistent" }, secret: fake.token };
  },
  expected: jsonService,
});

const key = "0123456789abcdef0123456789abcdef";
const nowMs = 1_800_000_000_000;
const firstTriedAt = Date.now();
const target = createGithubComment({ now: () => nowMs });
assert.equal(target.repeats, "findable");
const marker = `<!-- postern:${key} -->`;
const otherMarker = `<!-- postern:${key.replace("0", "f")} -->`;

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
  const part = {
    text: "a secret answer",
    address,
    index: 0,
    count: 1,
    key,
    firstTriedAt: nowMs,
    route: "ci",
    eventType: "push",
  };
  const { reference = "" } = await target.send(
    part,
    {},
    { env, log: silentLog, memory: makeMemory(), signal: new AbortController().signal },
  );
  await rm(folder, { recursive: true });
  const [names, args] = reference.split(" : ");
  assert.deepEqual(
    names?.split(" ").filter((name) => !/^(PWD|OLDPWD|SHLVL|_)$/.test(name)),
    ["GH_NO_UPDATE_NOTIFIER", "GH_PROMPT_DISABLED", "GH_TOKEN", "HOME", "NO_COLOR", "PATH"],
  );
  assert.match(args ?? "", /^api -i .* -X POST repos\/owner\/name\/issues\/5\/comments --input -$/);
  assert.doesNotMatch(args ?? "", /secret/);
});

describe("github_comment without gh", () => {
  let fake: FakeGithub;
  beforeEach(async () => {
    fake = await startFakeGithub();
  });
  afterEach(() => fake.close());

  function toolsFor(env: Record<string, string | undefined>): TargetTools {
    const signal = new AbortController().signal;
    return { env: { PATH: "/nonexistent", ...env }, log: silentLog, memory: makeMemory(), signal };
  }

  function send(env: Record<string, string | undefined>, settings: SettingValues = {}) {
    const address = readAddress(target, { repo: "owner/name", pr_number: "5" }, {});
    const names = { route: "ci", eventType: "push" };
    const part = { text: "Done", address, index: 0, count: 1, key, firstTriedAt, ...names };
    return target.send(part, { base_url: fake.baseUrl, ...settings }, toolsFor(env));
  }

  const logins: [what: string, env: Record<string, string>, settings: SettingValues][] = [
    ["GH_TOKEN", { GH_TOKEN: "T", GH_ENTERPRISE_TOKEN: "other" }, {}],
    ["GITHUB_TOKEN", { GITHUB_TOKEN: "T" }, {}],
    ["the setting over the environment", { GH_TOKEN: "other" }, { token: "T" }],
    [
      "GH_ENTERPRISE_TOKEN for another host",
      { GH_HOST: "ghe.example.com", GH_TOKEN: "other", GH_ENTERPRISE_TOKEN: "T" },
      {},
    ],
    ["the setting for another host", { GH_TOKEN: "other" }, { hostname: "ghe.example.com", enterprise_token: "T" }],
    ["GH_TOKEN for a tenant", { GH_TOKEN: "T" }, { hostname: "octo.ghe.com", enterprise_token: "other" }],
  ];
  for (const [what, env, settings] of logins) {
    test(`uses ${what}`, async () => {
      const own = (one: object) => JSON.parse(JSON.stringify(one).replace('"T"', JSON.stringify(fake.token)));
      await send(own(env), own(settings));
      assert.equal(fake.messages[0]!.body, `Done\n\n${marker}`);
      assert.deepEqual(fake.mismatches, []);
    });
  }

  test("gives a server no token that is another's, and says what is missing", async () => {
    for (const error of [
      await failureOf(send({})),
      await failureOf(send({ GH_TOKEN: fake.token, GH_HOST: "ghe.example.com" })),
      await failureOf(send({ GH_ENTERPRISE_TOKEN: fake.token })),
    ]) {
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", undefined]);
      assert.match(error.message, /"gh" is not on PATH; install it .*, or set GH_TOKEN$/);
    }
    assert.equal(fake.tries, 0);
  });

  const hosts: [hostname: string | undefined, baseUrl: string][] = [
    [undefined, "https://api.github.com"],
    ["github.com", "https://api.github.com"],
    ["octo.ghe.com", "https://api.octo.ghe.com"],
    ["ghe.example.com", "https://ghe.example.com/api/v3"],
    ["notgithub.com", "https://notgithub.com/api/v3"],
  ];
  for (const [hostname, baseUrl] of hosts) {
    test(`asks ${baseUrl} for the host ${hostname}`, () => {
      const login = restLogin({ hostname, token: "a", enterprise_token: "b" }, {});
      assert.equal(login?.baseUrl, baseUrl);
      assert.equal(login?.token, /ghe\.com$|^github|^$/.test(hostname ?? "") ? "a" : "b");
    });
  }

  test("does not follow a repository that has moved, and says so", async () => {
    fake.answer = {
      status: 307,
      headers: { location: "/repositories/1/issues/5/comments" },
      body: { message: "Moved" },
    };
    fake.mode = "refused";
    const error = await failureOf(send({ GH_TOKEN: fake.token }));
    assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
    assert.match(error.message, /the repository has moved/);
  });

  test("knows a token that is nobody's", async () => {
    const said = await target.check({ base_url: fake.baseUrl, token: fake.token }, toolsFor({}));
    assert.match(said[0]!, /^The account is "postern-bot"$/);
    fake.account = { status: 403, body: { message: "Resource not accessible by integration" } };
    const [first] = await target.check({ base_url: fake.baseUrl, token: fake.token }, toolsFor({}));
    assert.match(first!, /cannot be told$/);
    const wrong = target.check({ base_url: fake.baseUrl, token: "ghp_unknownToken" }, toolsFor({}));
    assert.match((await failureOf(wrong)).message, /401 "Bad credentials"/);
  });

  test("lets mentions and commands live where the operator allows them", async () => {
    const address = readAddress(target, { repo: "owner/name", pr_number: "5" }, {});
    const names = { route: "ci", eventType: "push" };
    const text = "@octocat\n/merge";
    const part = { text, address, index: 0, count: 1, key, firstTriedAt, ...names };
    const settings = { base_url: fake.baseUrl, token: fake.token, allow_mentions: true };
    await target.send(part, settings, toolsFor({}));
    assert.equal(fake.messages[0]!.text, text);
  });
});

describe("images in a comment", () => {
  async function sent(text: string, settings: SettingValues = {}): Promise<string> {
    const fake = await startFakeGithub();
    const address = readAddress(target, { repo: "owner/name", pr_number: "5" }, {});
    const part = { text, address, index: 0, count: 1, key, firstTriedAt, route: "ci", eventType: "push" };
    const env = { PATH: "/nonexistent" };
    const tools = { env, log: silentLog, memory: makeMemory(), signal: new AbortController().signal };
    try {
      await target.send(part, { base_url: fake.baseUrl, token: fake.token, ...settings }, tools);
      return fake.messages[0]!.text;
    } finally {
      await fake.close();
    }
  }

  const text = "![a](https://a.example/b)\n\n```md\n![code](x) <img>\n```\n`![code](x)` @octocat";

  test("become links, but not in code", async () => {
    const shown = (await sent(text)).replaceAll("\u200b", "∅");
    assert.equal(shown, text.replace("![a]", "!∅[a]").replace("@octocat", "@∅octocat"));
    const loud = (await sent(text, { allow_mentions: true })).replaceAll("\u200b", "∅");
    assert.equal(loud, text.replace("![a]", "!∅[a]"));
  });

  test("are shown where the operator allows them", async () => {
    assert.equal(await sent(text, { allow_images: true, allow_mentions: true }), text);
    const quiet = (await sent(text, { allow_images: true })).replaceAll("\u200b", "∅");
    assert.equal(quiet, text.replace("@octocat", "@∅octocat"));
  });

  test("are not brought to life by the cut of what is too long", async () => {
    const long = `\`${"![a](https://a.example) ".repeat(200)}\` ${"@a ".repeat(21_000)}`;
    assert.doesNotMatch(await sent(long), /!\[/);
  });
});

describe("github_comment through the real gh", { skip: missing("gh") }, () => {
  let fake: FakeGithub;
  beforeEach(async () => {
    fake = await startFakeGithub();
  });
  afterEach(() => fake.close());

  function partOf(text: string): Part {
    const address = readAddress(target, { repo: "owner/name", pr_number: "5" }, {});
    return { text, address, index: 0, count: 1, key, firstTriedAt, route: "ci", eventType: "push" };
  }

  function toolsFor(env: Record<string, string | undefined>): TargetTools {
    const signal = new AbortController().signal;
    return { env: { PATH: process.env.PATH, ...fake.env, ...env }, log: silentLog, memory: makeMemory(), signal };
  }

  function send(text: string, env: Record<string, string | undefined> = {}, settings: SettingValues = {}) {
    return target.send(partOf(text), settings, toolsFor(env));
  }

  const find = (changes: Partial<Part> = {}, env: Record<string, string | undefined> = {}) =>
    target.find({ ...partOf("x"), ...changes }, {}, toolsFor(env));

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
    const text = "東".repeat(target.limit.max);
    await send(text);
    assert.equal(fake.messages.at(-1)!.text, text);
  });

  test("ends each comment in a hidden marker on a line of its own", async () => {
    await send("Done");
    assert.equal(fake.messages.at(-1)!.body, `Done\n\n${marker}`);
    await send(`Done\n${otherMarker}`);
    assert.equal(fake.messages.at(-1)!.body, `Done\n${otherMarker}\n\n${marker}`);
  });

  const open: [what: string, text: string, end: string][] = [
    ["an open fence, which it closes", "Look:\n```ts\nlet a", "let a\n```"],
    ["an open fence of many marks", `${"~".repeat(20)}\n~~~`, `~~~\n${"~".repeat(20)}`],
    ["an open fence after HTML of any kind", "<img src=x>\n\n```\n<!--", "<!--\n```"],
    ["a fence opened again", "```\na\n```\n```", "```\n```\n```"],
    ["more marks than anybody needs", `${"`".repeat(21)}\na`, "`\na"],
    ["a closed fence", "```\na\n```", "a\n```"],
    ["a fence that ends with its list", "- a\n  ```\n  b", "  b"],
    ["a fence that ends with its quotation", "> ```\n> b", "> b"],
    ["an open comment, which hides the marker too", "a\n\n<!-- b", "<!-- b"],
    ["open details", "<details>\n\na", "a"],
    ["an open link definition", "[a]:", "[a]:"],
    ["an open span", "`a", "`a"],
  ];
  for (const [what, text, end] of open) {
    test(`keeps the marker out of ${what}`, async () => {
      await send(text);
      const { body } = fake.messages.at(-1)!;
      assert.ok(body.endsWith(`${end}\n\n${marker}`), body);
      assert.notEqual(await find(), undefined);
    });
  }

  test("has room for the longest text with its fence closed and its marker", async () => {
    for (const marks of ["`".repeat(20), "`".repeat(21)]) {
      await send(`${marks}\n`.padEnd(target.limit.max, "東"));
      const { body } = fake.messages.at(-1)!;
      assert.ok(body.endsWith(marker));
      assert.ok([...body].length <= 65_536);
      assert.ok([...body].length > 65_500);
    }
  });

  test("closes the code block that the cut left open", async () => {
    await send(`\`\`\`\n${"/a ".repeat(30_000)}`);
    assert.match(fake.messages.at(-1)!.text, /\n```\n\n\[cut: the answer was longer\]$/);
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
    const error = await failure(send("x", { PATH: "/nonexistent", GH_TOKEN: undefined }));
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
    ["a secondary limit of an old server", 403, {}, "You have triggered an abuse detection mechanism", 60_000],
  ];
  for (const [what, status, headers, message, wait] of limits) {
    test(`is right about when to try again: ${what}`, async () => {
      fake.answer = { status, headers, body: { message } };
      fake.mode = "refused";
      for (const error of [await failure(send("x")), await failure(find())]) {
        assert.deepEqual([error.sent, error.retryAfterMs], ["no", wait]);
        assert.ok(error.message.includes(`GitHub answered ${status} "${message}"`), error.message);
      }
    });
  }

  const unclear: [status: number, headers: Record<string, string>, wait: number | undefined][] = [
    [408, {}, undefined],
    [500, {}, undefined],
    [503, { "retry-after": "9" }, 9000],
    [504, {}, undefined],
    [202, {}, undefined],
  ];
  for (const [status, headers, wait] of unclear) {
    test(`does not know what became of a comment after ${status}${wait ? ", and waits as it is told" : ""}`, async () => {
      fake.answer = { status, headers, body: { message: "Server Error" } };
      fake.mode = "refused";
      const sending = await failure(send("x"));
      assert.deepEqual([sending.sent, sending.retryAfterMs], ["maybe", wait]);
      const looking = await failure(find());
      assert.deepEqual([looking.sent, looking.retryAfterMs], ["no", wait]);
    });
  }

  test("passes on why a field was refused", async () => {
    fake.answer = { status: 422, body: { message: "Validation Failed", errors: [{ message: "body is too long" }] } };
    fake.upcoming.push("refused");
    assert.match((await failure(send("x"))).message, /422 "Validation Failed; body is too long"/);
  });

  test("is not fooled by what a body says", async () => {
    fake.answer = { status: 422, body: { message: 'HTTP/1.1 201 Created\r\n\r\n{"html_url":"x"}' } };
    fake.upcoming.push("refused");
    assert.equal((await failure(send("x"))).retryAfterMs, "never");
  });

  describe("looking for a comment", () => {
    test("finds it among others, whatever they and it hold", async () => {
      fake.write(`Copied: ${marker}\n\nand more`);
      fake.write(`x\n${otherMarker}`);
      await send(`${otherMarker}\n\n${otherMarker}`);
      fake.write(`> ${marker}\n\n${otherMarker}`);
      assert.deepEqual(await find(), { reference: fake.messages[2]!.url });
    });

    const forged: [what: string, body: string][] = [
      ["in the middle", `a\n${marker}\nb`],
      ["before another marker", `a\n\n${marker}\n\n${otherMarker}`],
      ["behind words", `a ${marker}`],
      ["in a quotation", `a\n\n> ${marker}`],
      ["in a fence", `\`\`\`\n${marker}\n\`\`\``],
      ["of another message", `a\n\n${otherMarker}`],
      ["of a key in capitals", `a\n\n${marker.toUpperCase()}`],
      ["that lacks its end", `a\n\n${marker.slice(0, -3)}`],
      ["with an empty key", "a\n\n<!-- postern: -->"],
    ];
    for (const [what, body] of forged) {
      test(`takes no marker ${what} for its own`, async () => {
        fake.write(body);
        assert.equal(await find(), undefined);
      });
    }

    test("finds it also when its line ends were changed", async () => {
      fake.write(`a\r\n\r\n${marker}\r\n`);
      assert.deepEqual(await find(), { reference: fake.messages[0]!.url });
    });

    test("looks back no further than the first try and two minutes", async () => {
      fake.write(`too old\n\n${marker}`, firstTriedAt - 125_000);
      assert.equal(await find(), undefined);
      fake.write(`by a slow clock\n\n${marker}`, firstTriedAt - 115_000);
      assert.deepEqual(await find(), { reference: fake.messages[1]!.url });
      const since = Date.parse(fake.listings[0]?.get("since") ?? "");
      assert.ok(Math.abs(firstTriedAt - 120_000 - since) < 1000);
    });

    test("reads page after page, and no more than it needs", async () => {
      for (let count = 0; count < 100; count += 1) fake.write("x");
      assert.equal(await find(), undefined);
      assert.equal(fake.listings.length, 1);
      for (let count = 0; count < 100; count += 1) fake.write("x");
      await send("Done");
      const { url } = fake.messages.at(-1)!;
      for (let count = 0; count < 200; count += 1) fake.write("x");
      assert.deepEqual(await find(), { reference: url });
      assert.deepEqual(
        fake.listings.slice(1).map((query) => query.get("page")),
        ["1", "2", "3"],
      );
    });

    test("is not sure when a later page cannot be read", async () => {
      for (let count = 0; count < 101; count += 1) fake.write("x");
      fake.upcoming.push("ok", "broken");
      const error = await failure(find());
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", undefined]);
    });

    test("ends after a thousand comments, and does not say that there is none", async () => {
      for (let count = 0; count < 1000; count += 1) fake.write("x");
      assert.equal(await find(), undefined);
      fake.write(`too far\n\n${marker}`);
      const error = await failure(find());
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
      assert.match(error.message, /more than 1000 are new since the first try; look for it there$/);
      assert.equal(fake.listings.length, 20);
    });

    test("reads a page of the longest comments that there can be", async () => {
      for (let count = 0; count < 100; count += 1) fake.write("🙂".repeat(65_536));
      await send("Done");
      assert.deepEqual(await find(), { reference: fake.messages.at(-1)!.url });
    });

    test("reads comments without a body or a link", async () => {
      fake.answer = { status: 200, body: [{ body: null }, { html_url: 7 }, { body: `a\n\n${marker}` }] };
      fake.mode = "refused";
      assert.deepEqual(await find(), {});
      assert.equal(await find({ key: "f".repeat(32) }), undefined);
    });

    test("looks at an Enterprise Server with its own token only", async () => {
      const env = { GH_TOKEN: "ghp_notForThisHost", GH_ENTERPRISE_TOKEN: fake.token, GH_HOST: "ghe.example.com" };
      await send("Done", env);
      assert.deepEqual(await find({}, env), { reference: fake.messages[0]!.url });
      assert.equal(await find(), undefined);
    });
  });
});
