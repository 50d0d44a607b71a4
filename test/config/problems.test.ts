import assert from "node:assert/strict";
import { test } from "node:test";
import { complaints, load, problemsOf, withRoute } from "./loading.ts";

test("every problem is told at once, in the order of the file, with line, column and the nearest key", async (t) => {
  const yaml = `platforms:
  webhook:
    enabled: maybe
    hots: 127.0.0.1
    port: 99999
    secret: the-global-secret
    rate_limit: [1]
    routes:
      a:
        event: [push]
        deliver: telegramm
      b:
        prompt: 5
  telegram:
    enabled: true
    tokn: abc
  slack2: {}
agent:
  backend: bultin
  timeout: soon
model: { provider: opnai }
log: { levl: debug }
agents: 1
`;
  assert.deepEqual(await complaints(t, yaml), [
    '3:5 platforms.webhook.enabled: Expected true or false, found "maybe"',
    '4:5 platforms.webhook.hots: Unknown key "hots"; did you mean "host"',
    "5:5 platforms.webhook.port: Expected a whole number from 0 to 65535, found 99999",
    "7:5 platforms.webhook.rate_limit: Expected a whole number from 1 to 1000000, found a list",
    '10:9 platforms.webhook.routes.a.event: Unknown key "event"; did you mean "events"',
    '11:9 platforms.webhook.routes.a.deliver: Unknown target "telegramm"; did you mean "telegram"',
    "13:9 platforms.webhook.routes.b.prompt: Expected text, found 5; put it in quotes",
    '16:5 platforms.telegram.tokn: Not a setting of "telegram"; did you mean "token"',
    '17:3 platforms.slack2: Unknown platform "slack2"; did you mean "slack"',
    '19:3 agent.backend: Unknown agent backend "bultin"; did you mean "builtin"',
    '20:3 agent.timeout: Expected seconds as a number, or text such as "30s" or "10m", found "soon"',
    '21:10 model.provider: Expected one of: openai, anthropic, google, openai-compatible, ollama, found "opnai"',
    '22:8 log.levl: Unknown key "levl"; did you mean "level"',
    '23:1 agents: Unknown key "agents"; did you mean "agent"',
  ]);
});

test("the file of a problem is the one it stands in", async (t) => {
  const [problem] = await problemsOf(t, "nothing: 1");
  assert.match(problem?.file ?? "", /postern-test-.*config\.yaml$/);
});

/** What stands in the file, and the one complaint about it. */
const mistakes: readonly (readonly [what: string, yaml: string, complaint: string])[] = [
  ["an unknown key under extra", "platforms: { webhook: { extra: { rout: {} } } }", 'Unknown key "rout"; known are'],
  ["an unknown key at the top", "platform: {}", 'Unknown key "platform"; did you mean "platforms"'],
  ["an unknown key under agent", "agent: { tool: [] }", 'Unknown key "tool"; did you mean "tools"'],
  ["an unknown key under webhooks", "webhooks: { route: {} }", 'Unknown key "route"; did you mean "routes"'],
  ["a port out of range", "platforms: { webhook: { port: -1 } }", "Expected a whole number from 0 to 65535, found -1"],
  ["a port with a fraction", "platforms: { webhook: { port: 80.5 } }", "Expected a whole number from 0 to 65535"],
  ["a port in words", "platforms: { webhook: { port: eighty } }", 'from 0 to 65535, found "eighty"'],
  ["nothing as the port", "platforms: { webhook: { port: } }", "Expected a whole number from 0 to 65535, found null"],
  ["a huge rate", "platforms: { webhook: { rate_limit: 12345678901234567890 } }", "found 12345678901234567890"],
  [
    "a rate of nothing",
    "platforms: { webhook: { rate_limit: 0 } }",
    "Expected a whole number from 1 to 1000000, found 0",
  ],
  [
    "an address without its scheme",
    "platforms: { webhook: { public_url: x.com } }",
    'such as "https://hooks.example.com"',
  ],
  ["a time span of nothing", "agent: { timeout: 0s }", "Expected a time from 1ms to 500h"],
  ["a negative time span", "agent: { timeout: -5 }", "Expected a time from 1ms to 500h, found -5"],
  ["a time span beyond what timers can", "agent: { timeout: 600h }", 'Expected a time from 1ms to 500h, found "600h"'],
  [
    "days where a timer waits",
    "agent: { timeout: 1d }",
    'Expected seconds as a number, or text such as "30s" or "10m"',
  ],
  ["no tries", "retry: { tries: 0 }", "Expected a whole number from 1 to 100, found 0"],
  ["too many tries", "retry: { tries: 101 }", "Expected a whole number from 1 to 100, found 101"],
  ["too many runs", "retry: { run_tries: 11 }", "Expected a whole number from 1 to 10, found 11"],
  ["an unknown key of retry", "retry: { trie: 5 }", 'Unknown key "trie"; did you mean "tries"'],
  ["a delay of nothing", "retry: { first_delay: 0 }", "Expected a time from 1ms to 3650d, found 0"],
  ["an age beyond ten years", "retry: { max_age: 3651d }", 'Expected a time from 1ms to 3650d, found "3651d"'],
  ["an age in weeks", "retry: { max_age: 2w }", 'or text such as "30s", "12h" or "7d", found "2w"'],
  ["a negative wait", "retry: { keep_order_for: -1 }", "Expected a time from 0s to 3650d, found -1"],
  ["nothing as an age", "retry: { max_age: }", "Expected seconds as a number, or text such as"],
  [
    "an unknown way with lost answers",
    "retry: { when_unknown: twice }",
    'Expected one of: at_least_once, at_most_once, found "twice"',
  ],
  [
    "a wrong rule of a target",
    'platforms: { telegram: { enabled: true, token: "1:a", retry: { tries: many } } }',
    '1:64 platforms.telegram.retry.tries: Expected a whole number from 1 to 100, found "many"',
  ],
  [
    "an unknown key of a target's rule",
    "platforms: { log: { retry: { trie: 5 } } }",
    '1:30 platforms.log.retry.trie: Unknown key "trie"; did you mean "tries"',
  ],
  [
    "the tries of runs in a target's rule",
    "platforms: { chat_target_01: { enabled: true, retry: { run_tries: 5 } } }",
    '1:56 platforms.chat_target_01.retry.run_tries: Unknown key "run_tries"; known are tries, max_age',
  ],
  [
    "a target's rule that is a number",
    "platforms: { log: { retry: 5 } }",
    "platforms.log.retry: Expected a mapping of keys to values, found 5",
  ],
  [
    "a target's rule under extra",
    'platforms: { telegram: { enabled: true, token: "1:a", extra: { retry: {} } } }',
    'platforms.telegram.extra.retry: Not a setting of "telegram"',
  ],
  [
    "an age without its unit",
    "retention: { max_age: 30 }",
    'retention.max_age: Expected a time from 1h to 3650d, or "off", found 30',
  ],
  ["an age in words", "retention: { max_age: never }", 'Expected text such as "12h" or "30d", or "off", found "never"'],
  [
    "an unknown state",
    "retention: { states: { failed: 5d } }",
    'retention.states.failed: Unknown key "failed"; known are done, dead, refused, cancelled, ignored',
  ],
  ["a state that is not final", "retention: { states: { running: 5d } }", 'Unknown key "running"; known are done'],
  [
    "a state's age that is too short",
    "retention: { states: { done: 59m } }",
    'Expected a time from 1h to 3650d, or "off"',
  ],
  ["a size without its unit", "retention: { max_size: 2 }", 'Expected a size from 1MiB to 1024TiB, or "off", found 2'],
  [
    "a size in another unit",
    "retention: { max_size: 2G }",
    'Expected bytes as a number, or text such as "500MB" or "2GiB", or "off", found "2G"',
  ],
  ["a size beyond all disks", "retention: { max_size: 1025TiB }", "Expected a size from 1MiB to 1024TiB"],
  ["a list where a mapping belongs", "agent: [x]", "Expected a mapping of keys to values, found a list"],
  ["a mapping where a list belongs", "agent: { tools: { terminal: true } }", "Expected a list, found a mapping"],
  [
    "routes as a list",
    "platforms: { webhook: { routes: [a] } }",
    "Expected a mapping of route names to routes, found a list",
  ],
  ["a list as the whole file", "- a\n- b", "Expected a mapping of keys to values, found a list"],
  ["a platform that is no mapping", "platforms: { telegram: yes }", "Expected a mapping of settings"],
  [
    "a platform under both names",
    "platforms: { telegram: {}, chat_target_01: {} }",
    'The same as "platforms.telegram"',
  ],
  [
    "a token that is none",
    'platforms: { telegram: { enabled: true, token: "123456:abc/x" } }',
    '1:41 platforms.telegram.token: Expected token of the bot, from @BotFather, such as "123456:ABC-def", found other text',
  ],
  [
    "a sender who is none",
    'platforms: { email: { enabled: true, smtp_host: h, address: "Bot <bot>" } }',
    'platforms.email.address: Expected the sender\'s address, such as "postern@example.com", found "Bot <bot>"',
  ],
  ["a platform that is maybe enabled", "platforms: { email: { enabled: perhaps } }", "Expected true or false"],
  ["an unknown tool for all", "agent: { tools: [browser] }", 'Unknown tool "browser"; known are terminal'],
  [
    "an unknown terminal backend",
    "terminal: { backend: lokal }",
    'Unknown terminal backend "lokal"; did you mean "local"',
  ],
  ["the command backend without a command", "agent: { backend: command }", 'set "agent.command: [program'],
];

for (const [what, yaml, complaint] of mistakes) {
  test(`${what} is one problem with a sentence that says how to mend it`, async (t) => {
    const found = await complaints(t, yaml);
    assert.equal(found.length, 1, found.join("\n"));
    assert.ok(found[0]?.includes(complaint), found.join());
  });
}

/** Lines of a route, and the one complaint with the key inside the route. */
const routeMistakes: readonly (readonly [what: string, lines: string, complaint: string])[] = [
  ["an empty secret", 'secret: ""', "7:9 secret: A secret is empty; remove it or write a real one"],
  ["a blank secret in a list", 'secret: [abc, "  "]', "7:9 secret: A secret is empty; remove it or write a real one"],
  [
    "an empty list of secrets",
    "secret: []",
    "7:9 secret: The list of secrets is empty; write a secret into it, or remove it",
  ],
  [
    "INSECURE_NO_AUTH on every address",
    "secret: INSECURE_NO_AUTH",
    "7:9 secret: INSECURE_NO_AUTH is only for a gateway on 127.0.0.1, localhost or ::1; set a real secret, or bind to 127.0.0.1",
  ],
  [
    "INSECURE_NO_AUTH in a list",
    "secret: [INSECURE_NO_AUTH, abc]",
    "7:9 secret: INSECURE_NO_AUTH cannot stand beside real secrets; remove it",
  ],
  [
    "deliver_only without a target",
    "deliver_only: true",
    '6:7 deliver: deliver_only needs a real target in "deliver", not "log"; name one, or remove deliver_only',
  ],
  [
    "deliver_only to the log",
    "deliver_only: on\ndeliver: log",
    '8:9 deliver: deliver_only needs a real target in "deliver", not "log"; name one, or remove deliver_only',
  ],
  ["an unknown target", "deliver: emal", '7:9 deliver: Unknown target "emal"; did you mean "email"'],
  ["a target named like a property", "deliver: constructor", '7:9 deliver: Unknown target "constructor"; known are'],
  ["an empty list of targets", "deliver: []", "7:9 deliver: Expected a target's name, or a list of names"],
  [
    "a target object without to",
    "deliver: { target: log }",
    "7:9 deliver: Expected a target's name, or a list of names",
  ],
  [
    "an unknown target in a list",
    "deliver:\n  - log\n  - to: emal",
    '9:13 deliver.1: Unknown target "emal"; did you mean "email"',
  ],
  [
    "a target without its section",
    "deliver: email",
    '7:9 deliver: The target "email" cannot be used: smtp_host: Missing; set it here or in the environment variable "EMAIL_SMTP_HOST"',
  ],
  [
    "a comment without its pull request",
    "deliver: github_comment\ndeliver_extra:\n  repo: owner/name",
    '8:9 deliver_extra.pr_number: Missing; set it in "deliver_extra"',
  ],
  [
    "a comment without its repository",
    "deliver: host_a_comment\ndeliver_extra: { pr_number: 7 }",
    '8:9 deliver_extra.repo: Missing; set it in "deliver_extra"',
  ],
  [
    "an address that can never be one",
    "deliver: github_comment\ndeliver_extra: { repo: owner/name, pr_number: nine }",
    '8:44 deliver_extra.pr_number: Expected the number of a pull request or an issue, found "nine"',
  ],
  [
    "an address that is a list",
    "deliver: github_comment\ndeliver_extra: { repo: [a], pr_number: 7 }",
    "8:26 deliver_extra.repo: Expected text or a number",
  ],
  [
    "an unknown key of an address",
    "deliver: { to: github_comment, repo: owner/name, pr_number: 7, labels: x }",
    '7:72 deliver.labels: Not a key of "github_comment"; known are repo, pr_number',
  ],
  [
    "a shared address key that no target knows",
    "deliver: [log, { to: github_comment, repo: owner/name, pr_number: 7 }]\ndeliver_extra: { pr_numbr: 5 }",
    '8:26 deliver_extra.pr_numbr: Not a key of any target in "deliver"; did you mean "pr_number"',
  ],
  [
    "an unknown tool",
    "tools:\n  - terminal\n  - termnal",
    '9:13 tools.1: Unknown tool "termnal"; did you mean "terminal"',
  ],
  [
    "a filter with an unknown operator",
    "filters:\n  - { field: action, equals: 1 }\n  - any:\n      - field: action\n        equal: opened",
    '11:17 filters.1.any.0.equal: There is no operator "equal"; did you mean "equals"',
  ],
  [
    "a later filter of a group",
    "filters:\n  - any:\n      - { field: a, equals: 1 }\n      - { field: b, in: c }",
    '10:29 filters.0.any.1.in: Write a list behind "in"',
  ],
  [
    "a filter that no linear engine can run",
    "filters:\n  - field: action\n    regex: (?<=a)b",
    "9:13 filters.0.regex: ",
  ],
  ["no run at a time", "max_concurrent: 0", "7:9 max_concurrent: Expected a whole number from 1 to 1000, found 0"],
  ["an unknown end of a crash", "on_crash: restart", '7:9 on_crash: Expected one of: rerun, fail, found "restart"'],
  ["a wrong rule of retry", "retry:\n  tries: 0", "8:11 retry.tries: Expected a whole number from 1 to 100, found 0"],
  [
    "an unknown key of retry",
    "retry: { delay: 5s }",
    '7:18 retry.delay: Unknown key "delay"; known are tries, max_age',
  ],
  ["filters that are no list", "filters: { field: action }", "7:9 filters: Write a list of filters here"],
];

for (const [what, lines, complaint] of routeMistakes) {
  test(`a route with ${what} is refused at its line`, async (t) => {
    const found = await complaints(t, withRoute(lines));
    const inRoute = found.map((line) => line.replace("platforms.webhook.routes.one.", ""));
    assert.equal(inRoute.length, 1, inRoute.join("\n"));
    assert.ok(inRoute[0]?.startsWith(complaint), inRoute.join());
  });
}

test("the same places are found under extra and under webhooks", async (t) => {
  const lines =
    "filters:\n  - field: a\n    equals: 1\n  - any:\n      - { field: b, equals: 1 }\n      - { field: c, eq: 1 }";
  const nested = `platforms:\n  webhook:\n    secret: abc\n    extra:\n      routes:\n        one:\n${lines.replaceAll(/^/gm, "          ")}`;
  const old = `webhooks:\n  routes:\n    one:\n      secret: abc\n${lines.replaceAll(/^/gm, "      ")}`;
  assert.match(
    (await complaints(t, nested))[0] ?? "",
    /^12:31 platforms\.webhook\.extra\.routes\.one\.filters\.1\.any\.1\.eq:/,
  );
  assert.match((await complaints(t, old))[0] ?? "", /^10:27 webhooks\.routes\.one\.filters\.1\.any\.1\.eq:/);
});

test("a place inside of what an alias stands for is found", async (t) => {
  const yaml = withRoute("filters: *shared", "agent:\n  env: [A]\n").replace(
    "    routes:",
    "    routes:\n      zero: { filters: &shared [{ field: a, equals: 1 }, { field: b, eq: 2 }] }",
  );
  const found = await complaints(t, yaml);
  assert.deepEqual(
    found.map((line) => line.slice(0, line.indexOf(" There"))),
    ["6:70 platforms.webhook.routes.zero.filters.1.eq:", "6:70 platforms.webhook.routes.one.filters.1.eq:"],
  );
});

test("a bad route name is refused at its line", async (t) => {
  const found = await complaints(t, withRoute("enabled: yes", '      "bad name": {}\n      -x: {}\n'));
  assert.equal(found.length, 2);
  assert.match(found[0] ?? "", /^8:7 platforms\.webhook\.routes\.bad name: A route name begins with a letter or digit/);
  assert.match(found[1] ?? "", /^9:7 platforms\.webhook\.routes\.-x: A route name/);
});

test("a route without any secret is refused with the three places for one", async (t) => {
  const [first, ...others] = await complaints(t, "platforms:\n  webhook:\n    routes:\n      one: {}\n");
  assert.equal(
    first,
    '4:7 platforms.webhook.routes.one.secret: The route has no secret; set "secret" on it, "platforms.webhook.extra.secret" or WEBHOOK_SECRET',
  );
  assert.deepEqual(others, []);
});

test("an empty global secret is none, as the specification's default says", async (t) => {
  const yaml = (secret: string) => `platforms: { webhook: { secret: ${secret}, routes: { one: {} } } }`;
  assert.match((await complaints(t, yaml('""')))[0] ?? "", /The route has no secret/);
});

for (const [secret, complaint] of [
  ["INSECURE_NO_AUTH", "INSECURE_NO_AUTH is only for a gateway on 127.0.0.1, localhost or ::1"],
  ["[INSECURE_NO_AUTH, abc]", "INSECURE_NO_AUTH cannot stand beside real secrets"],
  ['["", abc]', "A secret is empty"],
  ['[""]', "A secret is empty"],
  ["[]", "The list of secrets is empty"],
  ["12345", "Expected text or a list of texts"],
] as const) {
  test(`the global secret ${secret} is refused once, at its line, though no route uses it`, async (t) => {
    const nested = `platforms:\n  webhook:\n    extra:\n      secret: ${secret}\n`;
    for (const [yaml, place] of [
      [nested, "4:7 platforms.webhook.extra.secret: "],
      [`${nested}      routes: { one: {}, two: {} }`, "4:7 platforms.webhook.extra.secret: "],
      [`platforms:\n  webhook:\n    secret: ${secret}\n`, "3:5 platforms.webhook.secret: "],
    ] as const) {
      const [first, ...others] = await complaints(t, yaml);
      assert.ok(first?.startsWith(place + complaint), String(first));
      assert.deepEqual(others, []);
    }
  });
}

test("INSECURE_NO_AUTH from the environment is refused off loopback too, --host decides", async (t) => {
  const parts = { env: { WEBHOOK_SECRET: "INSECURE_NO_AUTH" } };
  const yaml = "platforms: { webhook: { host: 127.0.0.1, routes: { one: {} } } }";
  assert.equal((await load(t, yaml, parts)).routes.size, 1);
  const [first, ...others] = await complaints(t, yaml, { ...parts, host: "0.0.0.0" });
  assert.match(first ?? "", /^WEBHOOK_SECRET: INSECURE_NO_AUTH is only for/);
  assert.deepEqual(others, []);
});

test("a target that is not enabled is refused where a route names it", async (t) => {
  const yaml = withRoute("deliver: telegram", '  telegram: { token: "123:abc", home_channel: "-1" }\n');
  assert.deepEqual(await complaints(t, yaml), [
    '7:9 platforms.webhook.routes.one.deliver: The target "telegram" cannot be used: it is not enabled; set "platforms.telegram.enabled: true"',
  ]);
});

test("a target without credentials is refused where a route names it, and only there", async (t) => {
  const platform = "  telegram: { enabled: true }\n";
  assert.match(
    (await complaints(t, withRoute("deliver: telegram", platform))).join(),
    /^7:9 .*: token: Missing; set it here/,
  );
  assert.equal((await load(t, withRoute("deliver: log", platform))).routes.size, 1);
});

test("a chat target without a chat and without a home channel is refused", async (t) => {
  const yaml = withRoute("deliver: telegram", '  telegram: { enabled: true, token: "123:abc" }\n');
  assert.match((await complaints(t, yaml)).join(), /deliver_extra\.chat_id: Missing; .*or set the "home_channel"/);
});

for (const [name, value, complaint] of [
  ["WEBHOOK_PORT", "many", 'Expected a whole number from 0 to 65535, found "many"'],
  ["WEBHOOK_PORT", "70000", 'Expected a whole number from 0 to 65535, found "70000"'],
  ["WEBHOOK_ENABLED", "maybe", 'Expected true or false, found "maybe"'],
] as const) {
  test(`${name}=${value} is a problem of the environment`, async (t) => {
    assert.deepEqual(await complaints(t, "", { env: { [name]: value } }), [`${name}: ${complaint}`]);
    assert.deepEqual(await complaints(t, "", { dotenv: `${name}=${value}` }), [`${name}: ${complaint}`]);
  });
}

/** What is wrong with the YAML itself. */
const syntax: readonly (readonly [what: string, yaml: string, complaint: RegExp])[] = [
  ["a tab", "platforms:\n\twebhook: {}\n", /^2:1 \(file\): YAML: A tab cannot indent; use spaces/],
  [
    "a key given twice",
    "agent: {}\nlog: {}\nagent: {}\n",
    /^3:1 \(file\): The key "agent" stands here again; keep one/,
  ],
  ["an open quote", 'log: { level: "debug }\n', /^2:1 \(file\): YAML: A closing quote, bracket or colon is missing/],
  ["an open bracket", "agent: { tools: [a, b }\n", /^1:\d+ \(file\): YAML: /],
  ["a second colon", "model: name: x\n", /^1:\d+ \(file\): YAML: A second colon in one line/],
  ["a percent sign first", "model: { name: %x }\n", /^1:\d+ \(file\): YAML: A text cannot begin with this character/],
  ["a second document", "agent: {}\n---\nlog: {}\n", /^2:1 \(file\): YAML: A second document begins here/],
  ["an unknown tag", "log: { level: !debug }\n", /^1:\d+ \(file\): YAML: Unknown tag/],
  ["an alias without its anchor", "log: *none\n", /^1:6 \(file\): YAML: There is no anchor "&none" above/],
  [
    "an alias of itself",
    "log: &log { level: *log }\n",
    /^1:20 \(file\): YAML: The alias "\*log" stands inside of what/,
  ],
  ["a merge of a number", "log: { <<: 5 }\n", /^\(file\): YAML: A "<<" must name a mapping/],
];

for (const [what, yaml, complaint] of syntax) {
  test(`${what} is a problem of the file at its line`, async (t) => {
    const found = await complaints(t, yaml);
    assert.match(found[0] ?? "", complaint);
  });
}

test("aliases that multiply are refused and cost no memory", async (t) => {
  const rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"];
  for (let level = 1; level < 12; level += 1) {
    rows.push(`a${level}: &a${level} [${Array.from({ length: 10 }, () => `*a${level - 1}`).join(", ")}]`);
  }
  assert.deepEqual(await complaints(t, rows.join("\n")), [
    "(file): YAML: Aliases multiply beyond 100; write the values out",
  ]);
});

test("keys given twice do not hide the other problems", async (t) => {
  const found = await complaints(t, "log: { level: debug, level: info }\nagent: { tool: [] }\n");
  assert.deepEqual(found, [
    '1:22 (file): The key "level" stands here again; keep one',
    '2:10 agent.tool: Unknown key "tool"; did you mean "tools"',
  ]);
});

/** Ways to write a secret wrong. */
const spilled: readonly (readonly [what: string, yaml: string])[] = [
  ["a number as the secret", "platforms: { webhook: { secret: 8675309 } }"],
  ["a mapping as the secret", "platforms: { webhook: { secret: { value: hunter2-8675309 } } }"],
  ["a list of numbers", "platforms: { webhook: { routes: { one: { secret: [8675309] } } } }"],
  ["routes as a list", "platforms: { webhook: { routes: [{ secret: hunter2-8675309 }] } }"],
  ["a route that is text", "platforms: { webhook: { secret: a, routes: { one: hunter2-8675309 } } }"],
  ["a .env in config.yaml", "WEBHOOK_SECRET=hunter2-8675309"],
  ["a token as a number", "platforms: { telegram: { enabled: true, token: 8675309 } }"],
  ["text after the closing quote", 'platforms: { webhook: { secret: "abc" hunter2-8675309 } }'],
  ["a list beside a key", "- a\nsecret: hunter2-8675309"],
  ["a bad escape", 'secret: "\\8675309"'],
  ["a tag", "platforms: { webhook: { secret: !hunter2-8675309 } }"],
  ["a reserved character", "platforms: { webhook: { secret: @hunter2-8675309 } }"],
  [
    "a secret in a list beside INSECURE_NO_AUTH",
    "platforms: { webhook: { secret: [INSECURE_NO_AUTH, hunter2-8675309] } }",
  ],
];

for (const [what, yaml] of spilled) {
  test(`${what} is refused without repeating the secret`, async (t) => {
    const text = JSON.stringify(await problemsOf(t, yaml));
    assert.doesNotMatch(text, /8675309|hunter2/);
  });
}
