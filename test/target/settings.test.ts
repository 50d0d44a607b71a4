import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DeliveryError } from "../../src/core/errors.ts";
import { checkAddress, type KeyProblem, readAddress } from "../../src/target/address.ts";
import { email } from "../../src/target/email.ts";
import { github_comment } from "../../src/target/github_comment.ts";
import { log } from "../../src/target/log.ts";
import { readSettings } from "../../src/target/settings.ts";
import type { Setting, Target } from "../../src/target/target.ts";
import { telegram } from "../../src/target/telegram.ts";

const token = "1:abc";

function valuesOf(target: Target, section: Record<string, unknown> | undefined, env = {}) {
  const read = readSettings(target, section, env);
  assert.ok("values" in read, JSON.stringify(read));
  return read.values;
}

function problemsOf(target: Target, section: Record<string, unknown> | undefined, env = {}): readonly KeyProblem[] {
  const read = readSettings(target, section, env);
  assert.ok("problems" in read, "there is no problem");
  return read.problems;
}

/** A target with one setting of each kind. */
function withSetting(setting: Setting): Target {
  return { ...log, name: "made", settings: { it: setting } };
}

describe("readSettings", () => {
  test("takes the environment before the file and the file before the default", () => {
    const section = { token, extra: { base_url: "http://file.example" } };
    const base = (env = {}, given: Record<string, unknown> = section) => valuesOf(telegram, given, env).base_url;
    assert.equal(base({ TELEGRAM_BASE_URL: "http://env.example" }), "http://env.example");
    assert.equal(base(), "http://file.example");
    assert.equal(base({}, { token }), "https://api.telegram.org");
  });

  test("takes a key from the section or from extra, and the section's own first", () => {
    assert.equal(valuesOf(telegram, { extra: { token } }).token, token);
    assert.equal(valuesOf(telegram, { token, extra: { token: "2:other" } }).token, token);
  });

  test("takes the first variable that is set", () => {
    assert.equal(valuesOf(github_comment, undefined, { GITHUB_TOKEN: "b" }).token, "b");
    assert.equal(valuesOf(github_comment, undefined, { GH_TOKEN: "a", GITHUB_TOKEN: "b" }).token, "a");
  });

  test("counts empty text and nothing as not set", () => {
    assert.equal(
      valuesOf(telegram, { token, base_url: null }, { TELEGRAM_BASE_URL: " " }).base_url,
      "https://api.telegram.org",
    );
    assert.equal(problemsOf(telegram, { token: "" }).length, 1);
  });

  test("leaves enabled to whoever loads the file", () => {
    assert.equal("enabled" in valuesOf(telegram, { enabled: true, token }), false);
  });

  test("names the key and the variable of what is missing", () => {
    assert.deepEqual(problemsOf(telegram, {}), [
      { key: "token", message: 'Missing; set it here or in the environment variable "TELEGRAM_BOT_TOKEN"' },
    ]);
  });

  test("finds every problem at once", () => {
    const keys = problemsOf(email, { smtp_port: "often", adress: "a@b.c", extra: { passwort: "x" } }).map(
      ({ key }) => key,
    );
    assert.deepEqual(keys.sort(), ["address", "adress", "extra.passwort", "smtp_host", "smtp_port"]);
  });

  const unknown: [key: string, section: Record<string, unknown>, message: RegExp][] = [
    ["tokn", { tokn: "x" }, /did you mean "token"$/],
    ["Token", { Token: "x" }, /did you mean "token"$/],
    ["extra.baseurl", { extra: { baseurl: "x" } }, /did you mean "base_url"$/],
    [
      "whatever",
      { whatever: "x" },
      /known are token, home_channel, base_url, missing_thread, allow_mentions, enabled, extra$/,
    ],
    ["constructor", { constructor: "x" }, /^Not a setting of "telegram"/],
    ["extra", { extra: "x" }, /^Expected a mapping, found "x"$/],
  ];
  for (const [key, section, message] of unknown) {
    test(`says that "${key}" is no setting, and which one is near`, () => {
      const [problem] = problemsOf(telegram, { token, ...section });
      assert.equal(problem?.key, key);
      assert.match(problem.message, message);
    });
  }

  const kinds: [kind: Setting["kind"], raw: unknown, value: unknown][] = [
    ["string", "x", "x"],
    ["secret", " x ", " x "],
    ["integer", 25, 25],
    ["integer", 25n, 25],
    ["integer", " 25 ", 25],
    ["integer", "-1", -1],
    ["boolean", true, true],
    ["boolean", "False", false],
    ["boolean", "on", true],
    ["boolean", "0", false],
    ["url", "http://127.0.0.1:8081/bot/", "http://127.0.0.1:8081/bot"],
    ["url", "HTTPS://EXAMPLE.com", "HTTPS://EXAMPLE.com"],
    ["secret_url", " https://hooks.example.com/a/?key=x ", "https://hooks.example.com/a/?key=x"],
    ["choice", "Daemon ", "daemon"],
    ["list", "a, b ,c", ["a", "b", "c"]],
    ["list", [" a", "b,c"], ["a", "b,c"]],
  ];
  for (const [kind, raw, value] of kinds) {
    test(`reads ${typeof raw} ${raw} as ${kind}`, () => {
      const setting = kind === "choice" ? { kind, help: "x", choices: ["daemon", "rest"] } : { kind, help: "x" };
      assert.deepEqual(valuesOf(withSetting(setting), { it: raw }), { it: value });
    });
  }

  const anAddress = "an address that begins with http:// or https://, without user and password";
  const wrong: [kind: Setting["kind"], raw: unknown, message: string][] = [
    ["string", 5, "Expected text; put it in quotes, found the number 5"],
    ["string", ["a"], "Expected text; put it in quotes, found a list"],
    ["secret", 123456, "Expected text in quotes, found the number"],
    ["secret", { a: 1 }, "Expected text in quotes, found a mapping"],
    ["integer", "587x", 'Expected a whole number, found "587x"'],
    ["integer", 1.5, "Expected a whole number, found the number 1.5"],
    ["boolean", "maybe", 'Expected true or false, found "maybe"'],
    ["url", "example.com", 'Expected an address that begins with http:// or https://, found "example.com"'],
    ["url", "ftp://a.b", 'Expected an address that begins with http:// or https://, found "ftp://a.b"'],
    ["secret_url", "hooks.example.com/hunter22", `Expected ${anAddress}, found other text`],
    ["secret_url", "https://me:hunter22@example.com", `Expected ${anAddress}, found other text`],
    ["secret_url", 5, `Expected ${anAddress}, found the number`],
    ["choice", "demon", 'Expected "daemon" or "rest", found "demon"'],
    ["choice", true, 'Expected "daemon" or "rest", found the word true'],
    ["choice", "constructor", 'Expected "daemon" or "rest", found "constructor"'],
    ["list", [], "Expected a list of texts, found nothing"],
    ["list", ["a", 5], "Expected a list of texts, found the number 5"],
    ["list", ["a", " "], 'Expected a list of texts, found ""'],
    ["list", { a: "b" }, "Expected a list of texts, found a mapping"],
  ];
  for (const [kind, raw, message] of wrong) {
    test(`says what it expected instead of ${JSON.stringify(raw)} as ${kind}`, () => {
      const setting = kind === "choice" ? { kind, help: "x", choices: ["daemon", "rest"] } : { kind, help: "x" };
      assert.deepEqual(problemsOf(withSetting(setting), { it: raw }), [{ key: "it", message }]);
    });
  }

  test("does not repeat a password that stands in an address", () => {
    for (const it of ["http://me:hunter22@example.com", "ftp://me:hunter22@example.com", "https://a.b/?key=hunter22"]) {
      const [problem] = problemsOf(withSetting({ kind: "url", help: "x" }), { it });
      assert.doesNotMatch(problem?.message ?? "", /hunter22/);
    }
  });

  test("names the variable whose value is wrong", () => {
    const section = { smtp_host: "h", address: "a@b.c" };
    assert.deepEqual(problemsOf(email, section, { EMAIL_SMTP_PORT: "x" }), [
      { key: "smtp_port", message: 'Expected a whole number, found "x" in the environment variable "EMAIL_SMTP_PORT"' },
    ]);
  });
});

/** A service with two ways in: a bot with its own id and token, or the address of a hook. */
const twoWays: Target = {
  ...log,
  name: "made",
  settings: {
    bot: { kind: "string", help: "Id of the bot", env: ["MADE_BOT"] },
    token: { kind: "secret", help: "Token of the bot", env: ["MADE_TOKEN"], alternatives: ["password"] },
    hook: { kind: "secret_url", help: "Address of the hook" },
    home_channel: { kind: "string", help: "Chat" },
    base_url: { kind: "url", help: "Server", default: "https://made.example", alternatives: ["url", "server"] },
  },
  ways: [["bot", "token"], ["hook"]],
  address: {
    chat_id: { help: "a chat", pattern: /\d+/, alternatives: ["channel"], homeChannel: true, unlessSet: "hook" },
    sender: { help: "a name", pattern: /[a-z]+/, required: true, unlessSet: "hook" },
  },
};

describe("ways in", () => {
  const none = '"bot" (or MADE_BOT in the environment) and "token" (or MADE_TOKEN in the environment), or "hook"';
  const missing: [what: string, section: object | undefined, env: object, key: string, message: string][] = [
    ["none", undefined, {}, "bot", `Missing; set ${none}`],
    ["what is no way", { home_channel: "1" }, {}, "bot", `Missing; set ${none}`],
    ["a half", { token: "x" }, {}, "bot", 'Missing; set "bot" (or MADE_BOT in the environment)'],
    ["a half", {}, { MADE_BOT: "7" }, "token", 'Missing; set "token" (or MADE_TOKEN in the environment)'],
  ];
  for (const [what, section, env, key, message] of missing) {
    test(`asks for what is missing when ${what} is set: ${JSON.stringify({ ...section, ...env })}`, () => {
      assert.deepEqual(problemsOf(twoWays, section as Record<string, unknown>, env), [{ key, message }]);
    });
  }

  test("are enough each, together too, and by a mixture of file and environment", () => {
    const base_url = "https://made.example";
    const hook = "https://hooks.example";
    assert.deepEqual(valuesOf(twoWays, { hook }), { hook, base_url });
    assert.deepEqual(valuesOf(twoWays, { extra: { bot: "7" } }, { MADE_TOKEN: "x" }), {
      bot: "7",
      token: "x",
      base_url,
    });
    assert.deepEqual(valuesOf(twoWays, { bot: "7", token: "x", hook }), { bot: "7", token: "x", hook, base_url });
  });

  test("with a mistake are not said to be missing as well", () => {
    const keys = (section: Record<string, unknown>) => problemsOf(twoWays, section).map(({ key }) => key);
    assert.deepEqual(keys({ hook: "nonsense" }), ["hook"]);
    assert.deepEqual(keys({ bot: "7", password: 5 }), ["password"]);
    assert.deepEqual(keys({ password: 5 }), ["password", "bot"]);
  });
});

describe("other names of a setting", () => {
  const base = (section: Record<string, unknown>) =>
    valuesOf(twoWays, { hook: "https://h.example", ...section }).base_url;

  test("are read, in the section or under extra, and its own name wins", () => {
    assert.equal(base({ url: "https://one.example" }), "https://one.example");
    assert.equal(base({ extra: { server: "https://two.example" } }), "https://two.example");
    assert.equal(
      base({ url: "https://one.example", extra: { base_url: "https://own.example" } }),
      "https://own.example",
    );
    assert.equal(base({ url: "", server: "https://two.example" }), "https://two.example");
  });

  test("stand in the message about a mistake, and among the names that are known", () => {
    const hook = "https://h.example";
    assert.deepEqual(problemsOf(twoWays, { hook, extra: { server: "x" } }), [
      { key: "extra.server", message: 'Expected an address that begins with http:// or https://, found "x"' },
    ]);
    assert.match(problemsOf(twoWays, { hook, sever: "x" })[0]?.message ?? "", /did you mean "server"$/);
  });
});

describe("a setting with a pattern", () => {
  const help = "Number of the account, 3 digits";
  const read = (kind: Setting["kind"], it: string) =>
    readSettings(withSetting({ kind, help, pattern: /\d{3}/ }), { it }, {});

  test("takes what matches as a whole", () => {
    assert.deepEqual(read("string", "123"), { values: { it: "123" } });
    for (const wrong of ["12", "1234", "x123"]) {
      const message = `Expected number of the account, 3 digits, found "${wrong}"`;
      assert.deepEqual(read("string", wrong), { problems: [{ key: "it", message }] });
    }
  });

  test("shows nothing of a secret that does not match", () => {
    const message = "Expected number of the account, 3 digits, found other text";
    assert.deepEqual(read("secret", "12345"), { problems: [{ key: "it", message }] });
    assert.deepEqual(read("secret_url", "https://hooks.example/12345"), { problems: [{ key: "it", message }] });
  });
});

describe("a field that may be left out", () => {
  const address = (extra: Record<string, string>) => readAddress(telegram, { chat_id: "42", ...extra }, {});

  test("is left out when the payload has nothing for it", () => {
    for (const nothing of ["{issue.topic}", "null", " "])
      assert.deepEqual(address({ thread_id: nothing }), { chat_id: "42" });
  });

  test("is refused when it is wrong, and so is the place itself when it did not resolve", () => {
    assert.throws(() => address({ thread_id: "x" }), /"message_thread_id" is "x"/);
    assert.throws(() => address({ thread_id: "7 {a}" }), DeliveryError);
    assert.throws(() => address({ chat_id: "{chat.id}" }), /which the payload did not resolve/);
    assert.throws(() => address({ chat_id: "null" }), DeliveryError);
  });
});

describe("an address that a setting stands for", () => {
  const byHook = { hook: "https://hooks.example" };
  const asBot = { bot: "7", token: "x" };

  test("may be missing, and is taken where it is given or at home", () => {
    assert.deepEqual(readAddress(twoWays, {}, byHook), {});
    assert.deepEqual(readAddress(twoWays, { channel: "5" }, byHook), { chat_id: "5" });
    assert.deepEqual(readAddress(twoWays, {}, { ...byHook, home_channel: "6" }), { chat_id: "6" });
    assert.deepEqual(checkAddress(twoWays, {}, byHook), []);
  });

  test("is checked all the same", () => {
    assert.deepEqual(
      checkAddress(twoWays, { chat_id: "x" }, byHook).map(({ key }) => key),
      ["chat_id"],
    );
    assert.throws(() => readAddress(twoWays, { sender: "7" }, byHook), DeliveryError);
  });

  test("is needed as soon as the setting is not there", () => {
    assert.deepEqual(
      checkAddress(twoWays, {}, asBot).map(({ key }) => key),
      ["chat_id", "sender"],
    );
    assert.throws(() => readAddress(twoWays, { sender: "me" }, asBot), /"chat_id" is missing/);
    assert.throws(() => readAddress(twoWays, { chat_id: "1" }, asBot), /"sender" is missing/);
  });
});

describe("home_channel", () => {
  const rows: [written: unknown, read: Record<string, unknown>][] = [
    ["-1001234567890", { home_channel: "-1001234567890" }],
    [-1001234567890, { home_channel: "-1001234567890" }],
    [-9007199254740993n, { home_channel: "-9007199254740993" }],
    ["@news", { home_channel: "@news" }],
    [
      { chat_id: -100, thread_id: 7, name: "Ops" },
      { home_channel: "-100", home_thread_id: "7" },
    ],
    [{ chat_id: "-100" }, { home_channel: "-100" }],
    [{ platform: "telegram", chat_id: "-100" }, { home_channel: "-100" }],
    [
      { chat_id: -9007199254740993n, thread_id: "8" },
      { home_channel: "-9007199254740993", home_thread_id: "8" },
    ],
  ];
  for (const [written, read] of rows) {
    test(`reads ${typeof written} ${typeof written === "object" ? Object.keys(written as object) : written}`, () => {
      const presets = valuesOf(telegram, { token });
      assert.deepEqual(valuesOf(telegram, { token, home_channel: written }), { ...presets, ...read });
    });
  }

  test("takes its topic from beside it in the environment", () => {
    const env = { TELEGRAM_HOME_CHANNEL: "-100", TELEGRAM_HOME_CHANNEL_THREAD_ID: "7" };
    const { home_channel: chat, home_thread_id: thread } = valuesOf(telegram, { token, home_channel: "5" }, env);
    assert.deepEqual([chat, thread], ["-100", "7"]);
    const alone = valuesOf(telegram, { token, home_channel: "5" }, { TELEGRAM_HOME_CHANNEL_THREAD_ID: "7" });
    assert.deepEqual([alone.home_channel, alone.home_thread_id], ["5", undefined]);
    const [problem] = problemsOf(telegram, { token }, { ...env, TELEGRAM_HOME_CHANNEL_THREAD_ID: "x" });
    assert.match(problem?.message ?? "", /number of a forum topic, found "x" in the environment variable/);
  });

  const wrong: [written: unknown, key: string, message: RegExp][] = [
    [1e21, "home_channel", /^Expected text or a whole number, found the number 1e\+21; put it in quotes$/],
    [1.5, "home_channel", /^Expected text or a whole number/],
    ["my chat", "home_channel", /^Expected a chat's number .* found "my chat"$/],
    [[1], "home_channel", /found a list/],
    [{ thread_id: 7 }, "home_channel.chat_id", /found nothing/],
    [{ chat_id: "1", thread_id: "x" }, "home_channel.thread_id", /^Expected the number of a forum topic, found "x"$/],
    [{ chat_id: "1", thread_i: 7 }, "home_channel.thread_i", /did you mean "thread_id"$/],
  ];
  for (const [written, key, message] of wrong) {
    test(`says what is wrong with ${JSON.stringify(written)}`, () => {
      const [problem] = problemsOf(telegram, { token, home_channel: written });
      assert.equal(problem?.key, key);
      assert.match(problem.message, message);
    });
  }

  test("of the environment leaves the file's topic behind, which belongs to another chat", () => {
    const section = { token, home_channel: { chat_id: "-100", thread_id: 7 } };
    const values = valuesOf(telegram, section, { TELEGRAM_HOME_CHANNEL: "-200" });
    assert.deepEqual([values.home_channel, values.home_thread_id], ["-200", undefined]);
  });
});

describe("readAddress", () => {
  const home = { home_channel: "-100", home_thread_id: "7" };

  test("goes home, to the topic too, when the route names no chat", () => {
    assert.deepEqual(readAddress(telegram, {}, home), { chat_id: "-100", message_thread_id: "7" });
    assert.deepEqual(readAddress(telegram, { thread_id: "9" }, home), { chat_id: "-100", message_thread_id: "9" });
    assert.deepEqual(readAddress(telegram, { chat_id: "-200" }, home), { chat_id: "-200" });
    assert.deepEqual(readAddress(telegram, { chat_id: " " }, home), { chat_id: "-100", message_thread_id: "7" });
  });

  test("prefers a field's own name and leaves other keys alone", () => {
    const extra = { repo: "a/b", number: "1", pr_number: "2", other: "x", constructor: "y" };
    assert.deepEqual(readAddress(github_comment, extra, {}), { repo: "a/b", pr_number: "2" });
  });

  function refusalOf(target: Target, extra: Record<string, string>): DeliveryError {
    try {
      readAddress(target, extra, {});
    } catch (error) {
      assert.ok(error instanceof DeliveryError);
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
      return error;
    }
    throw new assert.AssertionError({ message: "the address is taken" });
  }

  test("names the field that is missing and where to set it", () => {
    assert.equal(
      refusalOf(telegram, {}).message,
      'Cannot send to "telegram": "chat_id" is missing; set it in "deliver_extra", or set the "home_channel" of the platform',
    );
  });

  test("names a token that the payload did not resolve", () => {
    assert.equal(
      refusalOf(github_comment, { repo: "a/b", number: "{issue.number}" }).message,
      'Cannot send to "github_comment": "pr_number" holds "{issue.number}", which the payload did not resolve; ' +
        'correct its path in "deliver_extra"',
    );
  });

  test("shows little of a stranger's value, and nothing that does not print", () => {
    const { message } = refusalOf(telegram, { chat_id: `a\r\n\u202e\0${"x".repeat(10_000)}` });
    assert.match(message, /"chat_id" is "a x{98}", which is not a chat's number/);
    const token = refusalOf(telegram, { chat_id: `{${"x".repeat(10_000)}}` }).message;
    assert.ok(token.length < 300);
  });
});

describe("checkAddress", () => {
  const rows: [
    what: string,
    target: Target,
    extra: Record<string, string>,
    problems: [key: string, message: RegExp][],
  ][] = [
    ["nothing wrong", github_comment, { repo: "a/b", pr_number: "1" }, []],
    ["nothing wrong under another name", github_comment, { repo: "a/b", issue_number: "1" }, []],
    ["what is missing", github_comment, { repo: "a/b" }, [["pr_number", /^Missing; set it in "deliver_extra"$/]]],
    ["no chat and no home", telegram, {}, [["chat_id", /or set the "home_channel" of the platform$/]]],
    ["an unknown key", telegram, { chat_id: "1", chatid: "1" }, [["chatid", /did you mean "chat_id"$/]]],
    ["a key of a target without any", log, { chat_id: "1" }, [["chat_id", /remove it$/]]],
    ["a value that never matches", telegram, { chat_id: "my chat" }, [["chat_id", /found "my chat"$/]]],
    ["a template, which only an event can fill", telegram, { chat_id: "{chat.id}" }, []],
    ["a template within text", github_comment, { repo: "{repository.owner.login}/x y", number: "{number}" }, []],
    ["an inherited name", telegram, { chat_id: "1", constructor: "x" }, [["constructor", /^Not a key of "telegram"/]]],
  ];
  for (const [what, target, extra, expected] of rows) {
    test(`finds ${what}`, () => {
      const problems = checkAddress(target, extra, {});
      assert.deepEqual(
        problems.map(({ key }) => key),
        expected.map(([key]) => key),
      );
      for (const [at, problem] of problems.entries()) assert.match(problem.message, expected[at]![1]);
    });
  }

  test("is content with a home channel", () => {
    assert.deepEqual(checkAddress(telegram, {}, { home_channel: "1" }), []);
  });
});
