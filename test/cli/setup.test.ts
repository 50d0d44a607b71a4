import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { lstat, readdir, stat, symlink } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { parseEnv } from "node:util";
import { chooseModel } from "../../src/agent/model.ts";
import { findProvider, modelProviders } from "../../src/cli/setup/model.ts";
import { readPresent } from "../../src/cli/setup/present.ts";
import { save } from "../../src/cli/setup/save.ts";
import { platforms } from "../../src/cli/setup/targets.ts";
import { loadConfig } from "../../src/config/load.ts";
import { startFakeSlack } from "../fakes/slack.ts";
import { startFakeSmtp } from "../fakes/smtp.ts";
import { startFakeTelegram } from "../fakes/telegram.ts";
import { makeHome, type TestHome } from "../tools/home.ts";
import { mainPath, postern } from "../tools/program.ts";
import { answering, keys, run, runJson, type Typed, typist } from "./command.ts";

interface Report {
  readonly changes: readonly {
    readonly file: string;
    readonly key: string;
    readonly was?: string;
    readonly now: string;
  }[];
  readonly url: string;
  readonly secret?: string;
  readonly test?: { readonly target: string; readonly reference?: string };
  readonly notes: readonly string[];
}

const setup = ["gateway", "setup", "--yes"];

async function variablesOf(home: TestHome): Promise<NodeJS.Dict<string>> {
  return parseEnv(await home.read(".env"));
}

async function assertUntouched(home: TestHome): Promise<void> {
  assert.deepEqual(await readdir(home.folder), []);
}

test("with --yes an empty home gets an enabled gateway and a new secret, which is shown once", async (t) => {
  const outer = await makeHome(t);
  const home = { folder: `${outer.folder}/new/home` };
  const { code, out, err } = await run(home, setup);
  assert.equal(code, 0, err);
  assert.equal(err, "");
  const secret = /Secret: {2}(\S{43}) {2}\(shown this once/.exec(out)?.[1] ?? "";
  assert.deepEqual({ ...parseEnv(await outer.read("new/home/.env")) }, { WEBHOOK_SECRET: secret });
  assert.equal(await outer.read("new/home/config.yaml"), "platforms:\n  webhook:\n    enabled: true\n");
  const modes = await Promise.all(["", "/.env", "/config.yaml"].map((path) => stat(home.folder + path)));
  assert.deepEqual(
    modes.map(({ mode }) => mode & 0o777),
    [0o700, 0o600, 0o600],
  );
  assert.match(out, /Address: http:\/\/127\.0\.0\.1:8644\/webhooks\/NAME\n/);
  assert.match(out, /Note: events wait, and none is lost: no model configured/);
  assert.match(
    out,
    /Start it .*postern gateway run\n.*postern webhook subscribe hello .*\n.*postern webhook test hello/,
  );
});

test("every flag has its place", async (t) => {
  const home = await makeHome(t);
  const flags = [
    ...["--enable", "--host", "127.0.0.1", "--port", "9000", "--secret", "it's my secret"],
    ...["--agent-backend", "builtin", "--model-provider", "openai-compatible", "--model-name", "some/model-1"],
    ...["--model-base-url", "http://127.0.0.1:1/v1", "--model-key", "-", "--terminal-backend", "local"],
    ...["--target", "email", "--target-setting", "smtp_host=mail.example.com", "--target-setting", "smtp_port=465"],
    ...[
      "--target-setting",
      "address=bot@example.com",
      "--target-setting",
      "password=p#ss w",
      "--home-channel",
      "me@example.com",
    ],
  ];
  const { code, value, err } = await runJson<Report>(home, [...setup, ...flags], { readInput: async () => "sk-key\n" });
  assert.equal(code, 0, err);
  assert.equal(
    await home.read("config.yaml"),
    `platforms:
  webhook:
    enabled: true
    extra:
      host: 127.0.0.1
      port: 9000
  email:
    enabled: true
    smtp_host: mail.example.com
    smtp_port: 465
    address: bot@example.com
    home_channel: me@example.com
agent:
  backend: builtin
model:
  provider: openai-compatible
  name: some/model-1
  base_url: "http://127.0.0.1:1/v1"
terminal:
  backend: local
`,
  );
  const secrets = { WEBHOOK_SECRET: "it's my secret", OPENAI_API_KEY: "sk-key", EMAIL_PASSWORD: "p#ss w" };
  assert.deepEqual({ ...(await variablesOf(home)) }, secrets);
  assert.equal(value.secret, undefined);
  for (const secret of Object.values(secrets)) assert.ok(!JSON.stringify(value).includes(secret));
  assert.ok(
    value.changes.some(({ file, key, now }) => file === ".env" && key === "EMAIL_PASSWORD" && now === "(a secret)"),
  );
  const config = await loadConfig({ home, env: {} });
  assert.deepEqual([config.webhook.port, config.agent.model.name, config.sandbox], [9000, "some/model-1", "local"]);
});

test("a program as the agent is written as a list, from words or from JSON", async (t) => {
  for (const command of ["my-agent --fast x", '["my-agent","--fast","x"]']) {
    const home = await makeHome(t);
    await run(home, [...setup, "--agent-backend", "command", "--agent-command", command]);
    assert.match(
      await home.read("config.yaml"),
      /agent:\n {2}backend: command\n {2}command: \["my-agent", "--fast", "x"\]\n/,
    );
  }
});

const nested = `# My gateway
platforms:
    webhook:
        enabled: false   # not yet
        extra:
            port: 1234     # behind the proxy
            secret: "a-standing-secret"

            routes:
                hello: { prompt: "Hi {name}" }  # first

# no model
agent: { backend: preview }
`;

test("a file in the nesting of the specification keeps comments, order and form", async (t) => {
  const home = await makeHome(t, { "config.yaml": nested });
  const { code, out } = await run(home, [...setup, "--enable", "--host", "127.0.0.1", "--port", "9000"]);
  assert.equal(code, 0);
  const expected = nested
    .replace("enabled: false   # not yet", "enabled: true   # not yet")
    .replace("port: 1234  ", "port: 9000  ")
    .replace('{name}" }  # first\n', '{name}" }  # first\n            host: 127.0.0.1\n');
  assert.equal(await home.read("config.yaml"), expected);
  assert.match(out, /platforms\.webhook\.extra\.port: 9000 \(was: 1234\)/);
  assert.match(out, /Note: the secret that is there is kept \("platforms\.webhook\.extra\.secret" in config\.yaml\)/);
  assert.ok(!out.includes("a-standing-secret"));
  await assert.rejects(stat(home.dotenv), { code: "ENOENT" });
});

test("a file with the keys directly under webhook keeps that nesting", async (t) => {
  const direct = "platforms:\n  webhook: # here\n    port: 1234\n    enabled: yes\nlog: { level: warn }\n";
  const home = await makeHome(t, { "config.yaml": direct });
  assert.equal((await run(home, [...setup, "--host", "::1", "--port", "9000", "--enable"])).code, 0);
  const expected = direct.replace("1234", "9000").replace("yes\n", 'yes\n    host: "::1"\n');
  assert.equal(await home.read("config.yaml"), expected);
});

test("with --yes what stands there stays, also when it is switched off", async (t) => {
  const home = await makeHome(t, { "config.yaml": nested, ".env": "WEBHOOK_SECRET=present # mine\n" });
  const { code, out } = await run(home, [...setup, "--generate-secret"]);
  assert.equal(code, 0);
  assert.match(out, /^Nothing to change in /);
  assert.match(out, /kept \(WEBHOOK_SECRET in \.env\); --secret replaces it/);
  assert.match(out, /Next: the webhook is not enabled; run "postern gateway setup --enable"/);
  assert.equal(await home.read("config.yaml"), nested);
  assert.equal(await home.read(".env"), "WEBHOOK_SECRET=present # mine\n");
});

test("the same command twice changes nothing the second time, not even the files' times", async (t) => {
  const home = await makeHome(t, { "config.yaml": nested });
  const args = [
    ...setup,
    "--port",
    "9000",
    "--secret",
    "a b",
    "--target",
    "telegram",
    "--target-setting",
    "token=1:a",
    "--home-channel",
    "-100",
  ];
  assert.equal((await run(home, args)).code, 0);
  const before = await Promise.all([stat(home.config), stat(home.dotenv)]);
  const { value } = await runJson<Report>(home, args);
  assert.deepEqual(value.changes, []);
  const after = await Promise.all([stat(home.config), stat(home.dotenv)]);
  assert.deepEqual(
    after.map(({ mtimeMs, ino }) => [mtimeMs, ino]),
    before.map(({ mtimeMs, ino }) => [mtimeMs, ino]),
  );
});

test("a variable that stands in .env is changed there, its comment and its neighbours stay", async (t) => {
  const dotenv = "# ports\nexport WEBHOOK_PORT='1234' # the old one\nOTHER=x\nWEBHOOK_ENABLED=false\n";
  const home = await makeHome(t, { "config.yaml": "# nothing yet\n", ".env": dotenv });
  const { value } = await runJson<Report>(home, [...setup, "--port", "9000", "--enable", "--secret", "s#cret"]);
  assert.equal(
    await home.read(".env"),
    "# ports\nexport WEBHOOK_PORT=9000 # the old one\nOTHER=x\nWEBHOOK_ENABLED=true\nWEBHOOK_SECRET='s#cret'\n",
  );
  assert.equal(await home.read("config.yaml"), "# nothing yet\n");
  assert.deepEqual(value.changes[0], { file: ".env", key: "WEBHOOK_ENABLED", was: "false", now: "true" });
});

test("a secret in config.yaml that the new one in .env overrules is left there and named", async (t) => {
  const home = await makeHome(t, { "config.yaml": nested });
  const { out } = await run(home, [...setup, "--secret", "-"], { readInput: async () => "the new one\r\n" });
  assert.equal((await variablesOf(home)).WEBHOOK_SECRET, "the new one");
  assert.match(
    out,
    /Note: "platforms\.webhook\.extra\.secret" in config\.yaml has no effect: WEBHOOK_SECRET in \.env wins; remove it/,
  );
  assert.equal(await home.read("config.yaml"), nested);
});

test("a variable of the process that wins over an answer is named", async (t) => {
  const home = await makeHome(t);
  const env = { POSTERN_HOME: home.folder, WEBHOOK_PORT: "7777", WEBHOOK_SECRET: "of-the-process" };
  const { value } = await runJson<Report>(home, [...setup, "--port", "9000"], { env });
  assert.ok(value.notes.some((note) => note.startsWith("WEBHOOK_PORT in the environment says otherwise")));
  assert.ok(value.notes.some((note) => note.includes("kept (WEBHOOK_SECRET in the environment)")));
  assert.equal(value.secret, undefined);
});

test("a platform under its neutral name, and a home channel with its topic, are changed where they stand", async (t) => {
  const yaml = 'platforms:\n  chat_target_01:\n    enabled: no\n    home_channel: { chat_id: "1", thread_id: 7 }\n';
  const home = await makeHome(t, { "config.yaml": yaml, ".env": "TELEGRAM_BOT_TOKEN=1:a\n" });
  assert.equal((await run(home, [...setup, "--target", "chat_target_01", "--home-channel", "-5"])).code, 0);
  const expected = yaml.replace("enabled: no", "enabled: true").replace('"1"', '"-5"');
  assert.match(await home.read("config.yaml"), new RegExp(`^${expected.replaceAll(/[{}]/g, "\\$&")}  webhook:\n`));
});

test("a file that is a link stays one", async (t) => {
  const home = await makeHome(t, { "elsewhere/config.yaml": "log: { level: warn } # mine\n" });
  await symlink("elsewhere/config.yaml", home.config);
  assert.equal((await run(home, setup)).code, 0);
  assert.ok((await lstat(home.config)).isSymbolicLink());
  assert.match(await home.read("elsewhere/config.yaml"), /^log: \{ level: warn \} # mine\nplatforms:\n/);
});

test("a file that somebody else changed meanwhile is left alone", async (t) => {
  const home = await makeHome(t, { "config.yaml": "# one\n" });
  const present = await readPresent(home, {});
  await home.write("config.yaml", "# two\n");
  const plan = { yaml: "x: 1\n", dotenv: "A=1\n", env: {}, changes: [], notes: [] };
  await assert.rejects(save(present, plan), /was changed by somebody else meanwhile, so nothing was written/);
  assert.deepEqual(await readdir(home.folder), ["config.yaml"]);
});

/** Wrong usage, and the sentence that says so. */
const wrongUsage: readonly (readonly [args: readonly string[], why: RegExp])[] = [
  [["--secret", "x", "--generate-secret"], /--secret and --generate-secret exclude each other/],
  [["--home-channel", "1"], /need --target NAME/],
  [["--test-message"], /need --target NAME/],
  [["--target", "telegrm"], /there is no chat target "telegrm"; did you mean "telegram"/],
  [["--target", "log"], /there is no chat target "log"/],
  [["--target", "constructor"], /there is no chat target "constructor"/],
  [
    ["--target", "telegram", "--target-setting", "tokn=1"],
    /"tokn" is not a setting of "telegram"; did you mean "token"/,
  ],
  [["--target", "telegram", "--target-setting", "token="], /"token" is empty/],
  [["--target", "email", "--target-setting", "smtp_port=many"], /"smtp_port": expected a whole number, found "many"/],
  [["--target", "telegram", "--target-setting", "home_channel=1", "--home-channel", "1"], /are the same/],
  [["--target", "telegram", "--target-setting", "token"], /Expected key=value/],
  [["--agent-backend", "bultin"], /there is no "bultin"; did you mean "builtin"/],
  [["--agent-backend", "command"], /needs --agent-command/],
  [["--terminal-backend", "toString"], /there is no "toString"/],
  [["--model-provider", "x"], /there is no "x"/],
  [["--model-key", "sk-hunter2"], /Give "-" and the key on standard input/],
  [["--secret", "-", "--model-key", "-"], /Only one flag can read standard input/],
  [["--host", " "], /--host is empty/],
  [["--port", "70000"], /Expected a whole number from 0 to 65535/],
];

for (const [args, why] of wrongUsage) {
  test(`setup ${args.join(" ")} is wrong usage, and nothing is written`, async (t) => {
    const home = await makeHome(t);
    const { code, out, err } = await run(home, [...setup, ...args]);
    assert.equal(code, 2);
    assert.equal(out, "");
    assert.match(err, why);
    await assertUntouched(home);
  });
}

test("without a terminal and without --yes it names the flags and exits 2, whatever else is given", async (t) => {
  const home = await makeHome(t);
  for (const args of [[], ["--port", "9000"]]) {
    const { code, err } = await run(home, ["gateway", "setup", ...args]);
    assert.equal(code, 2);
    assert.match(err, /there is no terminal to ask at; add --yes, and name .* --enable, --host, --port, --secret/);
  }
  const ended = await postern(t, ["gateway", "setup"], { env: { POSTERN_HOME: home.folder } });
  assert.deepEqual([ended.code, ended.out], [2, ""]);
  await assertUntouched(home);
});

test("a result that the gateway would not start with is refused with its problems, and nothing is written", async (t) => {
  const home = await makeHome(t);
  const { code, err } = await run(home, [...setup, "--secret", "INSECURE_NO_AUTH"]);
  assert.equal(code, 78);
  assert.match(err, /Nothing was written, because the gateway would not start with it\n/);
  assert.match(err, /WEBHOOK_SECRET: INSECURE_NO_AUTH is only for a gateway on 127\.0\.0\.1/);
  await assertUntouched(home);
  assert.equal((await run(home, [...setup, "--secret", "INSECURE_NO_AUTH", "--host", "127.0.0.1"])).code, 0);
});

test("problems name their place in the file as it would be, and a broken file is not touched", async (t) => {
  const home = await makeHome(t, { "config.yaml": "prot: 1\n" });
  const { code, err } = await run(home, setup);
  assert.equal(code, 78);
  assert.ok(err.includes(`${home.config}:1:1: prot: Unknown key`), err);
  await home.write("config.yaml", "a: [\n");
  assert.equal((await run(home, setup)).code, 78);
  assert.equal(await home.read("config.yaml"), "a: [\n");
  assert.deepEqual(await readdir(home.folder), ["config.yaml"]);
});

test("a configuration that only lacks the secret is mended by it", async (t) => {
  const home = await makeHome(t, { "config.yaml": "platforms: { webhook: { enabled: true, routes: { a: {} } } }\n" });
  assert.equal((await run(home, ["config", "check"])).code, 78);
  assert.equal((await run(home, setup)).code, 0);
  assert.equal((await run(home, ["config", "check"])).code, 0);
});

test("a target without what it needs is refused, and nothing is written", async (t) => {
  const home = await makeHome(t);
  const { code, err } = await run(home, [...setup, "--target", "telegram"]);
  assert.equal(code, 1);
  assert.match(err, /^postern: Nothing was written: the target "telegram" cannot be used: token: Missing/);
  await assertUntouched(home);
});

test("a key without a provider has no variable to go to", async (t) => {
  const home = await makeHome(t);
  const { code, err } = await run(home, [...setup, "--model-key", "-"], { readInput: async () => "sk" });
  assert.equal(code, 2);
  assert.match(err, /--model-key needs --model-provider/);
  await assertUntouched(home);
});

test("an empty standard input is no secret", async (t) => {
  const home = await makeHome(t);
  const { code, err } = await run(home, [...setup, "--secret", "-"], { readInput: async () => "\n" });
  assert.equal(code, 1);
  assert.match(err, /^postern: There is no secret on standard input/);
  await assertUntouched(home);
});

async function telegramFlags(t: TestContext) {
  const telegram = await startFakeTelegram();
  t.after(() => telegram.close());
  const settings = ["--target-setting", `base_url=${telegram.baseUrl}`, "--target-setting", `token=${telegram.token}`];
  return { telegram, flags: ["--target", "telegram", ...settings, "--home-channel", "-100", "--test-message"] };
}

test("a test message really goes through the target", async (t) => {
  const home = await makeHome(t);
  const { telegram, flags } = await telegramFlags(t);
  const { code, value, err } = await runJson<Report>(home, [...setup, ...flags]);
  assert.equal(code, 0, err);
  assert.deepEqual(value.test, { target: "telegram", reference: "1" });
  assert.equal(telegram.messages[0]?.chatId, "-100");
  assert.match(telegram.messages[0]?.text ?? "", /test message/);
  assert.equal((await variablesOf(home)).TELEGRAM_BOT_TOKEN, telegram.token);
});

test("a test message that is refused means that nothing is written", async (t) => {
  const home = await makeHome(t);
  const { telegram, flags } = await telegramFlags(t);
  telegram.mode = "refused";
  const { code, out, err } = await run(home, [...setup, ...flags]);
  assert.deepEqual([code, out], [1, ""]);
  assert.match(err, /^postern: Nothing was written: The test message was not delivered: .*403.*blocked/);
  assert.ok(!err.includes(telegram.token));
  await assertUntouched(home);
});

test("a test message without an address says what is missing", async (t) => {
  const home = await makeHome(t);
  const { code, err } = await run(home, [
    ...setup,
    "--target",
    "telegram",
    "--target-setting",
    "token=1:a",
    "--test-message",
  ]);
  assert.equal(code, 1);
  assert.match(err, /"chat_id" is missing; .*home_channel/);
});

test("a test message goes out as mail too, with the login that was given", async (t) => {
  const home = await makeHome(t);
  const smtp = await startFakeSmtp();
  t.after(() => smtp.close());
  const settings = { smtp_host: smtp.host, smtp_port: smtp.port, address: smtp.login.user, password: "-" };
  const flags = Object.entries(settings).flatMap(([key, value]) => ["--target-setting", `${key}=${value}`]);
  const args = [...setup, "--target", "email", ...flags, "--home-channel", "me@example.com", "--test-message"];
  const { code, err } = await run(home, args, { readInput: async () => `${smtp.login.password}\n` });
  assert.equal(code, 0, err);
  assert.deepEqual([smtp.messages[0]?.to, smtp.messages[0]?.user], [["me@example.com"], smtp.login.user]);
});

test("the key of each provider goes to the variable that the agent reads it from", () => {
  for (const provider of Object.keys(modelProviders) as (keyof typeof modelProviders)[]) {
    for (const name of findProvider(provider)?.keys ?? []) {
      const choice = chooseModel({ provider, name: "m", baseUrl: "http://127.0.0.1/v1" }, { [name]: "sk-1" });
      assert.ok("apiKey" in choice && choice.apiKey === "sk-1", `${provider} ${name}`);
    }
  }
});

test("an address that belonged to another provider's model is pointed out", async (t) => {
  const model = "model: { provider: openai-compatible, name: m, base_url: http://127.0.0.1:1/v1 }\n";
  const home = await makeHome(t, { "config.yaml": model });
  const { out } = await run(home, [...setup, "--model-provider", "anthropic", "--model-name", "n"]);
  assert.match(out, /Note: "model\.base_url" in config\.yaml is still "http:\/\/127\.0\.0\.1:1\/v1"; remove it if/);
  assert.doesNotMatch((await run(home, [...setup, "--model-provider", "anthropic"])).out, /is still/);
});

test("what comes next names the profile", async (t) => {
  const { out } = await run(await makeHome(t), [...setup, "--profile", "blue"]);
  assert.match(out, /postern --profile blue gateway run/);
});

/** Answers to everything; `chat` of them down is the chat target. */
function everything(telegramBaseUrl: string): readonly Typed[] {
  return [
    ["Receive webhooks?", keys.enter],
    ["Address to listen on", `127.0.0.1${keys.enter}`],
    ["Port", `x${keys.enter}`],
    ["Port", `${keys.back}9000${keys.enter}`],
    ["Secret that senders sign with", keys.enter],
    ["Who works on the events?", keys.enter],
    ["Whose model?", keys.enter],
    ["Name of the model", `model-1${keys.enter}`],
    ["API key, for OPENAI_API_KEY", `sk-typed${keys.enter}`],
    ["Where do the agent's shell commands run?", keys.enter],
    ["A chat target for answers?", keys.down.repeat(positionOf("telegram")) + keys.enter],
    ["Token of the bot", `123456:fake-bot-token_ABC${keys.enter}`],
    ["Chat that messages go to", `-100${keys.enter}`],
    ["Send a test message to telegram now?", telegramBaseUrl === "" ? `n${keys.enter}` : keys.enter],
    ["Write this?", keys.enter],
  ];
}

/** Below "none", which comes first. */
function positionOf(target: string): number {
  return platforms.findIndex(({ name }) => name === target) + 1;
}

async function assertEverything(home: TestHome, out: string): Promise<void> {
  const config = await loadConfig({ home, env: {} });
  assert.deepEqual([config.webhook.enabled, config.webhook.host, config.webhook.port], [true, "127.0.0.1", 9000]);
  assert.deepEqual([config.agent.model.provider, config.agent.model.name], ["openai", "model-1"]);
  const { WEBHOOK_SECRET: secret = "", ...others } = { ...(await variablesOf(home)) };
  assert.deepEqual(others, { OPENAI_API_KEY: "sk-typed", TELEGRAM_BOT_TOKEN: "123456:fake-bot-token_ABC" });
  assert.match(secret, /^[\w-]{43}$/);
  assert.equal(out.split(secret).length, 2, "the secret is shown once");
  assert.doesNotMatch(out, /sk-typed|fake-bot-token/);
}

test("the questions, answered at a real terminal, make a configuration that works", async (t) => {
  const why = spawnSync("script", ["--version"]).error && 'needs "script" of util-linux';
  if (why && process.env.CI !== "true") return t.skip(why);
  const home = await makeHome(t);
  const telegram = await startFakeTelegram();
  t.after(() => telegram.close());
  const command = `stty cols 100 rows 40; exec "${process.execPath}" "${mainPath}" gateway setup`;
  const env = { PATH: process.env.PATH, TERM: "xterm", POSTERN_HOME: home.folder, TELEGRAM_BASE_URL: telegram.baseUrl };
  const child = spawn("script", ["-qec", command, "/dev/null"], { env });
  t.after(() => child.kill("SIGKILL"));
  const terminal = answering(everything(telegram.baseUrl), (text) => void child.stdin.write(text));
  child.stdout.setEncoding("utf8").on("data", terminal.show);
  const deadline = setTimeout(() => child.kill("SIGKILL"), 30_000);
  const [code] = (await once(child, "close")) as [number | null];
  clearTimeout(deadline);
  assert.deepEqual([code, terminal.left], [0, []], terminal.shown());
  await assertEverything(home, terminal.shown());
  assert.match(terminal.shown(), /A port is a whole number from 0 to 65535/);
  assert.match(
    terminal.shown(),
    /What will change[\s\S]*platforms\.webhook\.enabled: true[\s\S]*WEBHOOK_SECRET: \(a secret\)/,
  );
  assert.equal(telegram.messages[0]?.chatId, "-100");
});

/** Runs the questions in this process. */
async function talk(
  home: TestHome,
  script: readonly Typed[],
  args: readonly string[] = [],
  env: NodeJS.Dict<string> = {},
) {
  const { terminal, left, shown } = typist(script);
  const changes = { terminal, env: { POSTERN_HOME: home.folder, ...env } };
  const result = await run(home, ["gateway", "setup", ...args], changes);
  assert.deepEqual(left, [], shown());
  return { ...result, shown: shown() };
}

test("the questions are drawn on standard error: standard output has the result alone", async (t) => {
  const home = await makeHome(t);
  const { code, out } = await talk(home, everything(""), ["--json"]);
  assert.equal(code, 0);
  await assertEverything(home, out);
  assert.equal((JSON.parse(out) as Report).changes[0]?.key, "platforms.webhook.enabled");
});

test("Ctrl-C at any question leaves everything as it was", async (t) => {
  const script = everything("");
  for (const [at, [question]] of script.entries()) {
    if (at === 2) continue; // The answer that will not do, and its question again.
    const home = await makeHome(t);
    const { code, out, err } = await talk(home, [...script.slice(0, at), [question, keys.interrupt]]);
    assert.deepEqual([code, out, err], [1, "", "postern: Cancelled; nothing was written\n"], question);
    await assertUntouched(home);
  }
});

test("no to the last question writes nothing", async (t) => {
  const home = await makeHome(t);
  const { code, err } = await talk(home, [...everything("").slice(0, -1), ["Write this?", `n`]]);
  assert.deepEqual([code, err], [1, "postern: Nothing was written\n"]);
  await assertUntouched(home);
});

test("flags answer their questions, Enter keeps what stands there", async (t) => {
  const yaml =
    "# mine\nplatforms:\n  webhook: { enabled: true, port: 1234, secret: standing }\nagent: { backend: preview }\n";
  const home = await makeHome(t, { "config.yaml": yaml });
  const script: readonly Typed[] = [
    ["Receive webhooks?", keys.enter],
    ["Port", keys.enter],
    ["Secret that senders sign with", keys.enter],
    ["Who works on the events?", keys.enter],
    ["A chat target for answers?", keys.enter],
  ];
  const { code, out } = await talk(home, [...script, ["Write this?", keys.enter]], ["--host", "127.0.0.1"]);
  assert.equal(code, 0);
  assert.match(out, /the secret that is there is kept/);
  assert.equal(await home.read("config.yaml"), yaml.replace("standing }", "standing, host: 127.0.0.1 }"));
  assert.match((await talk(home, script, ["--host", "127.0.0.1"])).out, /^Nothing to change/);
});

test("a secret of one's own is entered unseen, and a new one can be made although there is one", async (t) => {
  const home = await makeHome(t, { ".env": "WEBHOOK_SECRET=first-secret\n" });
  const flags = ["--enable", "--host", "127.0.0.1", "--port", "9000", "--agent-backend", "preview"];
  const rest: readonly Typed[] = [
    ["A chat target for answers?", keys.enter],
    ["Write this?", keys.enter],
  ];
  const own: readonly Typed[] = [
    ["Secret that senders sign with", keys.down + keys.down + keys.enter],
    ["The secret", `my#own${keys.enter}`],
  ];
  assert.ok(!(await talk(home, [...own, ...rest], flags)).shown.includes("my#own"));
  assert.equal((await variablesOf(home)).WEBHOOK_SECRET, "my#own");
  const made = await talk(home, [["Secret that senders sign with", keys.down + keys.enter], ...rest], flags);
  assert.ok(made.out.includes((await variablesOf(home)).WEBHOOK_SECRET ?? "-"));
});

const gatewayFlags = [
  ...["--enable", "--host", "127.0.0.1", "--port", "9000", "--generate-secret", "--agent-backend", "preview"],
];

test("of a service with several ways in, only what the chosen one needs is asked for, and its address stays a secret", async (t) => {
  const slack = await startFakeSlack();
  t.after(() => slack.close());
  const home = await makeHome(t);
  const script: readonly Typed[] = [
    ["A chat target for answers?", keys.down.repeat(positionOf("slack")) + keys.enter],
    ["How is slack reached?", keys.down + keys.enter],
    ["Address of an incoming webhook", slack.webhookUrl + keys.enter],
    ["Channel that messages go to", keys.enter],
    ["Send a test message to slack now?", keys.enter],
    ["Write this?", keys.enter],
  ];
  const { code, out, shown } = await talk(home, script, gatewayFlags);
  assert.equal(code, 0, shown);
  assert.equal((await variablesOf(home)).SLACK_WEBHOOK_URL, slack.webhookUrl);
  assert.match(slack.messages[0]?.text ?? "", /test message of its setup/);
  for (const text of [out, shown, await home.read("config.yaml")]) assert.ok(!text.includes(slack.webhookUrl));
});

test("a setting with few values is chosen from them", async (t) => {
  const home = await makeHome(t);
  const script: readonly Typed[] = [
    ["A chat target for answers?", keys.down.repeat(positionOf("feishu")) + keys.enter],
    ["How is feishu reached?", keys.enter],
    ["Id of the app", `cli_1${keys.enter}`],
    ["Its secret", `app-secret-1${keys.enter}`],
    ['"lark" for Lark', keys.down + keys.enter],
    ["Chat or person that messages go to", keys.enter],
    ["Write this?", keys.enter],
  ];
  const { code, shown } = await talk(home, script, gatewayFlags);
  assert.equal(code, 0, shown);
  assert.equal((await variablesOf(home)).FEISHU_APP_SECRET, "app-secret-1");
  const { platforms } = await loadConfig({ home, env: {} });
  const feishu = platforms.get("feishu");
  assert.deepEqual(feishu && "values" in feishu ? [feishu.values.app_id, feishu.values.domain] : feishu, [
    "cli_1",
    "lark",
  ]);
});

test("a person may go on although the test message was refused", async (t) => {
  const { telegram, flags } = await telegramFlags(t);
  telegram.mode = "refused";
  const others = [
    "--enable",
    "--host",
    "127.0.0.1",
    "--port",
    "9000",
    "--generate-secret",
    "--agent-backend",
    "preview",
  ];
  const home = await makeHome(t);
  assert.equal((await talk(home, [["Go on all the same?", keys.enter]], [...flags, ...others])).code, 1);
  await assertUntouched(home);
  const script: readonly Typed[] = [
    ["Go on all the same?", "y"],
    ["Write this?", keys.enter],
  ];
  const { code, out, shown } = await talk(home, script, [...flags, ...others]);
  assert.equal(code, 0);
  assert.match(shown, /The test message was not delivered: [\s\S]*blocked/);
  assert.doesNotMatch(out, /Test message delivered/);
});

test("- and the questions cannot share standard input", async (t) => {
  const home = await makeHome(t);
  const { code, err } = await talk(home, [], ["--secret", "-"]);
  assert.equal(code, 2);
  assert.match(err, /add --yes/);
});
