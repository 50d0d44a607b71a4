import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { findHome } from "../../src/config/home.ts";
import { loadConfig } from "../../src/config/load.ts";
import { findTarget } from "../../src/config/platforms.ts";
import { ConfigError } from "../../src/core/errors.ts";
import { makeHome } from "../tools/home.ts";
import { load, withRoute } from "./loading.ts";

test("a missing config file is an empty configuration, with the specification's defaults", async (t) => {
  const config = await loadConfig({ home: await makeHome(t), env: {} });
  assert.deepEqual(config.webhook, {
    enabled: false,
    host: "0.0.0.0",
    port: 8644,
    rateLimit: 30,
    maxBodyBytes: 1_048_576,
    scriptTimeoutMs: 30_000,
    publicUrl: undefined,
  });
  assert.equal(config.routes.size, 0);
  assert.deepEqual(config.warnings, []);
});

for (const text of ["", "\n# nothing but a comment\n", "---\n"]) {
  test(`the file ${JSON.stringify(text)} is an empty configuration`, async (t) => {
    assert.equal((await load(t, text)).webhook.port, 8644);
  });
}

test("a flag wins over the environment, that over .env, that over the file, that over the default", async (t) => {
  const yaml = "platforms: { webhook: { port: 1001 } }";
  const dotenv = "WEBHOOK_PORT=1002";
  const env = { WEBHOOK_PORT: "1003" };
  assert.equal((await load(t, "")).webhook.port, 8644);
  assert.equal((await load(t, yaml)).webhook.port, 1001);
  assert.equal((await load(t, yaml, { dotenv })).webhook.port, 1002);
  assert.equal((await load(t, yaml, { dotenv, env })).webhook.port, 1003);
  assert.equal((await load(t, yaml, { dotenv, env, port: 1004 })).webhook.port, 1004);
});

test("a flag's port 0 is a port, not the absence of one", async (t) => {
  assert.equal((await load(t, "platforms: { webhook: { port: 1001 } }", { port: 0 })).webhook.port, 0);
});

test("the --host flag wins over the file", async (t) => {
  const { webhook } = await load(t, "platforms: { webhook: { host: 0.0.0.0 } }", { host: "127.0.0.1" });
  assert.equal(webhook.host, "127.0.0.1");
});

test("WEBHOOK_SECRET wins over the file's global secret, and a route's own wins over both", async (t) => {
  const yaml = withRoute("secret: of-the-route", "      two: {}\n");
  const { routes } = await load(t, yaml, { dotenv: "WEBHOOK_SECRET=of-the-env" });
  assert.deepEqual(routes.get("one")?.secrets, ["of-the-route"]);
  assert.deepEqual(routes.get("two")?.secrets, ["of-the-env"]);
  assert.deepEqual((await load(t, yaml)).routes.get("two")?.secrets, ["the-global-secret"]);
});

for (const [value, expected] of [
  ["true", true],
  ["1", true],
  ["Yes", true],
  ["ON", true],
  ["false", false],
  ["0", false],
  ["no", false],
  ["off", false],
  ["", true],
] as const) {
  test(`WEBHOOK_ENABLED="${value}" over a file that says true makes ${expected}`, async (t) => {
    const { webhook } = await load(t, "platforms: { webhook: { enabled: true } }", { env: { WEBHOOK_ENABLED: value } });
    assert.equal(webhook.enabled, expected);
  });
}

const webhookKeys = `host: 127.0.0.1
port: 9000
secret: the-secret
rate_limit: 5
max_body_bytes: 2048
script_timeout_seconds: 3
public_url: https://hooks.example.com/
routes:
  one:
    deliver: log`;

function indent(text: string, spaces: number): string {
  return text.replaceAll(/^/gm, " ".repeat(spaces));
}

for (const [name, yaml] of [
  ["directly under platforms.webhook", `platforms:\n  webhook:\n    enabled: true\n${indent(webhookKeys, 4)}`],
  ["under extra", `platforms:\n  webhook:\n    enabled: true\n    extra:\n${indent(webhookKeys, 6)}`],
] as const) {
  test(`every key is read ${name}`, async (t) => {
    const { webhook, routes, warnings } = await load(t, yaml);
    assert.deepEqual(webhook, {
      enabled: true,
      host: "127.0.0.1",
      port: 9000,
      rateLimit: 5,
      maxBodyBytes: 2048,
      scriptTimeoutMs: 3000,
      publicUrl: "https://hooks.example.com",
    });
    assert.deepEqual(routes.get("one")?.secrets, ["the-secret"]);
    assert.deepEqual(warnings, []);
  });
}

test("both nestings at once are joined; what is set twice is taken from extra, with a warning", async (t) => {
  const config = await load(
    t,
    `platforms:
  webhook:
    host: 127.0.0.1
    port: 1001
    secret: abc-secret
    routes: { a: {}, both: { prompt: direct } }
    extra:
      port: 1002
      routes: { b: {}, both: { description: nested } }
`,
  );
  assert.equal(config.webhook.host, "127.0.0.1");
  assert.equal(config.webhook.port, 1002);
  assert.deepEqual([...config.routes.keys()].sort(), ["a", "b", "both"]);
  assert.equal(config.routes.get("both")?.description, "nested");
  assert.match(config.warnings.join(), /:4: "platforms\.webhook\.port" has no effect/);
});

test("routes under webhooks work, with a warning that says where they belong", async (t) => {
  const { routes, warnings } = await load(t, "webhooks:\n  routes:\n    old: { secret: abc-secret }\n");
  assert.deepEqual([...routes.keys()], ["old"]);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /config\.yaml:1: "webhooks\.routes" is deprecated; move it to "platforms\.webhook/);
});

test("a port may stand in quotes", async (t) => {
  assert.equal((await load(t, 'platforms: { webhook: { port: "9000" } }')).webhook.port, 9000);
});

for (const [word, expected] of Object.entries({ yes: true, on: true, Yes: true, no: false, off: false, OFF: false })) {
  test(`${word} means ${expected}`, async (t) => {
    const yaml = `platforms:\n  webhook:\n    enabled: ${word}\n    secret: s3cret\n    routes: { one: { enabled: ${word} } }`;
    const config = await load(t, yaml);
    assert.equal(config.webhook.enabled, expected);
    assert.equal(config.routes.get("one")?.enabled, expected);
  });
}

for (const [written, ms] of [
  ["2", 2000],
  ["0.5", 500],
  ['"2"', 2000],
  ["500ms", 500],
  ["30s", 30_000],
  ["1.5m", 90_000],
  ["2h", 7_200_000],
  ["500h", 1_800_000_000],
] as const) {
  test(`the time span ${written} is ${ms} ms`, async (t) => {
    assert.equal((await load(t, `agent: { timeout: ${written} }`)).agent.timeoutMs, ms);
  });
}

for (const [written, ms] of [
  ["2", 2000],
  ["1.1", 1100],
  ["500ms", 500],
  ["36h", 129_600_000],
  ["1.5d", 129_600_000],
  ["3650d", 315_360_000_000],
] as const) {
  test(`the time span ${written}, where days make sense, is ${ms} ms`, async (t) => {
    assert.equal((await load(t, `retry: { max_age: ${written} }`)).retry.maxAgeMs, ms);
  });
}

test("big whole numbers keep their digits in deliver_extra and home_channel", async (t) => {
  const { routes, platforms } = await load(
    t,
    `platforms:
  webhook:
    secret: abc-secret
    routes:
      named: { deliver: telegram, deliver_extra: { chat_id: -9007199254740993 } }
      object: { deliver: { to: telegram, chat_id: 9007199254740993 } }
  telegram: { enabled: true, token: "123:abc", home_channel: -9007199254740995 }
`,
  );
  assert.deepEqual(routes.get("named")?.outlets[0]?.extra, { chat_id: "-9007199254740993" });
  assert.deepEqual(routes.get("object")?.outlets[0]?.extra, { chat_id: "9007199254740993" });
  const telegram = platforms.get("telegram");
  assert.equal(telegram && "values" in telegram && telegram.values.home_channel, "-9007199254740995");
});

test("the neutral target names are the real ones' equals, as targets and as platforms", async (t) => {
  const { routes } = await load(
    t,
    withRoute(
      "deliver: host_a_comment\ndeliver_extra: { repo: owner/name, pr_number: 7 }",
      `      two: { deliver: chat_target_01, deliver_extra: { thread_id: 3 } }
  chat_target_01: { enabled: true, token: "123:abc", home_channel: "-100" }
`,
    ),
  );
  assert.deepEqual(
    [...routes.values()].map(({ outlets }) => outlets.map(({ target, extra }) => [target.name, extra])),
    [[["github_comment", { repo: "owner/name", pr_number: "7" }]], [["telegram", { thread_id: "3" }]]],
  );
});

test("deliver is a name, a list of names, or objects with settings of their own", async (t) => {
  const { routes } = await load(
    t,
    withRoute(
      `deliver:
  - log
  - { to: telegram, message_thread_id: 5 }
  - { to: telegram, chat_id: "-200" }
deliver_extra: { chat_id: "-100" }`,
      '  telegram: { enabled: true, token: "123:abc" }\n',
    ),
  );
  assert.deepEqual(
    routes.get("one")?.outlets.map(({ target, extra }) => [target.name, extra]),
    [
      ["log", {}],
      ["telegram", { chat_id: "-100", message_thread_id: "5" }],
      ["telegram", { chat_id: "-200" }],
    ],
  );
});

test("a target that only the environment sets up needs no section", async (t) => {
  const dotenv = "TELEGRAM_BOT_TOKEN=123:abc\nTELEGRAM_HOME_CHANNEL=-100\n";
  const { routes } = await load(t, withRoute("deliver: telegram"), { dotenv });
  assert.equal(routes.get("one")?.outlets[0]?.target.name, "telegram");
});

test("a single event or secret may stand without a list", async (t) => {
  const { routes } = await load(t, withRoute("events: push\nsecret: [old-secret, new-secret]"));
  assert.deepEqual(routes.get("one")?.events, ["push"]);
  assert.deepEqual(routes.get("one")?.secrets, ["old-secret", "new-secret"]);
});

test("merges and aliases within reason are read", async (t) => {
  const yaml = withRoute("&base\nevents: [push]\ndeliver: log", "      two: { <<: *base, events: [issues] }\n").replace(
    "one:\n        &base\n",
    "one: &base\n",
  );
  const { routes } = await load(t, yaml);
  assert.deepEqual(routes.get("two")?.events, ["issues"]);
});

test("every platform of the specification has its section, by its real name and by its neutral one", async (t) => {
  const chats =
    `telegram discord slack signal whatsapp matrix mattermost homeassistant dingtalk feishu wecom weixin bluebubbles
    qqbot`.split(/\s+/);
  const neutral = chats.map((_, index) => `chat_target_${String(index + 1).padStart(2, "0")}`);
  assert.deepEqual(
    neutral.map((name) => findTarget(name)?.name),
    chats,
  );
  assert.equal(findTarget("host_a_comment")?.name, "github_comment");
  const sections = ["github_comment", "gitlab_note", "sms", "email", ...chats].map((name) => `${name}: {}`);
  assert.deepEqual((await load(t, `platforms: { ${sections.join(", ")} }`)).warnings, []);
  assert.deepEqual((await load(t, `platforms: { ${neutral.map((name) => `${name}: {}`).join(", ")} }`)).warnings, []);
});

test("what stands in a section that is switched off does not matter", async (t) => {
  for (const word of ["false", "no", "off"]) {
    await load(t, `platforms: { telegram: { enabled: ${word}, tokn: 5 } }`);
  }
});

test("the secrets to blot out are those of routes, platforms and the environment, and no plain word", async (t) => {
  const { secrets } = await load(
    t,
    withRoute("secret: of-the-route", '      two: {}\n  telegram: { enabled: true, token: "123:abc" }\n'),
    { env: { OPENAI_API_KEY: "sk-1", EMAIL_PASSWORD: "pass", PATH: "/bin", WEBHOOK_PORT: "1" } },
  );
  assert.deepEqual([...secrets].sort(), ["123:abc", "of-the-route", "pass", "sk-1", "the-global-secret"]);
});

test("INSECURE_NO_AUTH is taken on loopback addresses, and is no secret to blot out", async (t) => {
  for (const host of ["127.0.0.1", "localhost", "::1"]) {
    const { routes, secrets } = await load(t, withRoute("secret: INSECURE_NO_AUTH"), { host });
    assert.deepEqual(routes.get("one")?.secrets, ["INSECURE_NO_AUTH"]);
    assert.deepEqual(secrets, ["the-global-secret"]);
  }
});

test("a config file that cannot be read is a problem, not a crash", async (t) => {
  const home = await makeHome(t);
  await mkdir(home.config);
  await assert.rejects(loadConfig({ home, env: {} }), (error: unknown) => {
    assert.ok(error instanceof ConfigError);
    assert.match(error.problems[0]?.message ?? "", /^Cannot be read \(EISDIR\)/);
    return true;
  });
});

test("POSTERN_HOME is the home, else .postern in the user's home", () => {
  assert.equal(findHome({ POSTERN_HOME: "/srv/postern", HOME: "/home/ada" }, undefined).folder, "/srv/postern");
  assert.equal(findHome({ HOME: "/home/ada" }, undefined).folder, "/home/ada/.postern");
});

test("a profile is a folder of its own in the home; the flag wins over POSTERN_PROFILE", () => {
  const env = { POSTERN_HOME: "/srv/postern", POSTERN_PROFILE: "blue" };
  assert.equal(findHome(env, undefined).folder, "/srv/postern/profiles/blue");
  assert.equal(findHome(env, "green").config, join("/srv/postern/profiles/green", "config.yaml"));
});

for (const name of ["../other", "a/b", ".hidden", "a b", "x".repeat(65)]) {
  test(`"${name}" cannot be a profile`, () => {
    assert.throws(() => findHome({ HOME: "/home/ada" }, name), { name: "UserError", message: /use letters, digits/ });
  });
}
