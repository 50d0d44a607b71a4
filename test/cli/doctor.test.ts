import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { after, before, describe, type TestContext, test } from "node:test";
import type { Finding } from "../../src/cli/doctor/finding.ts";
import { judgeSpace, judgeTime } from "../../src/cli/doctor/machine.ts";
import { makePrivateFolder } from "../../src/lib/file.ts";
import { type FakeTelegram, startFakeTelegram } from "../fakes/telegram.ts";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { makeHome, type TestHome } from "../tools/home.ts";
import { freePort } from "../tools/port.ts";
import { aRecord } from "../tools/records.ts";
import { aClaim, anAgentEvent, anEndedRun, anEndedTry, noon } from "../tools/rows.ts";
import { fakeGateway, run, runJson } from "./command.ts";
import { makeOldFile, withFile } from "./ledger/files.ts";

interface Report {
  readonly ok: boolean;
  readonly problems: number;
  readonly warnings: number;
  readonly findings: readonly Finding[];
}

const secret = "the-global-secret";
const direct = { prompt: "x", deliver: "telegram", deliver_only: true, deliver_extra: { chat_id: "42" } };

/** The service that every home here is set up for. */
let telegram: FakeTelegram;
before(async () => {
  telegram = await startFakeTelegram("1:token");
});
after(() => telegram.close());

/** A configuration as JSON, which is YAML too. */
function configured(
  parts: { readonly port?: number; readonly routes?: object; readonly sections?: object; readonly bot?: object } = {},
): string {
  const { port = 0, routes = { hello: { prompt: "Say hello" } }, sections, bot } = parts;
  const webhook = { enabled: true, host: "127.0.0.1", port, secret, routes };
  const platforms = { webhook, telegram: { enabled: true, token: "1:token", base_url: telegram.baseUrl, ...bot } };
  return JSON.stringify({ platforms, agent: { backend: "preview" }, ...sections });
}

async function examine(home: TestHome, env: Record<string, string> = {}) {
  const { code, value } = await runJson<Report>(home, ["doctor"], { env: { POSTERN_HOME: home.folder, ...env } });
  const of = (check: string) => value.findings.filter((finding) => finding.check === check);
  return { code, of, ...value };
}

/** The only finding of a check. */
function only(findings: readonly Finding[]): Finding {
  assert.equal(findings.length, 1, JSON.stringify(findings));
  return findings[0]!;
}

test("all is well with a gateway that runs", async (t) => {
  const port = await freePort();
  const home = await makeHome(t, { "config.yaml": configured({ port }) });
  await startGatewayProcess(t, home);
  const { code, of, ...report } = await examine(home);
  assert.deepEqual({ code, ok: report.ok, problems: report.problems }, { code: 0, ok: true, problems: 0 });
  const unusual = report.findings.filter(({ grade, check }) => grade !== "ok" && check !== "disk");
  assert.deepEqual(unusual, []);
  assert.equal(only(of("gateway")).text, `It answers at http://127.0.0.1:${port}/health`);
  assert.equal(only(of("configuration")).text, "It is valid, with 1 static routes");
  assert.match(only(of("ledger")).text, /can be read, and its schema is current$/);
  for (const check of ["home", "size", "subscriptions", "agent", "dead events", "waiting jobs", "clock"]) {
    assert.equal(only(of(check)).grade, "ok", check);
  }
});

test("a person sees a line for each finding, what to do, and a summary", async (t) => {
  const home = await makeHome(t, {
    "config.yaml": '{"platforms":{"webhook":{"enabled":false}},"agent":{"backend":"preview"}}',
  });
  const { code, out } = await run(home, ["doctor"]);
  assert.equal(code, 0);
  assert.match(out, /^ok {7}configuration: It is valid, with 0 static routes$/m);
  assert.match(
    out,
    /^warning {2}configuration: The webhook gateway is not enabled\n {9}> Set "platforms\.webhook\.enabled: true"/m,
  );
  assert.match(out, /\n\n0 problems, \d warnings?\n$/);
});

test("before anything was set up there are warnings that say how to begin", async (t) => {
  const home = await makeHome(t);
  await rm(home.folder, { recursive: true });
  const { code, of } = await examine(home);
  assert.equal(code, 0);
  assert.equal(only(of("home")).next, 'Make it with "postern gateway setup"');
  assert.equal(only(of("ledger")).grade, "ok");
});

test("each mistake in the configuration is a problem, and the other checks are made all the same", async (t) => {
  const home = await makeHome(t, { "config.yaml": "platforms:\n  webhook: { prot: 1 }\nagent: { backend: gpt }\n" });
  const { code, of } = await examine(home);
  assert.equal(code, 1);
  const texts = of("configuration").map(({ grade, text }) => `${grade} ${text}`);
  assert.equal(texts.length, 2);
  assert.match(texts[0] ?? "", /^problem .*config\.yaml:2:\d+: platforms\.webhook\.prot: Unknown key "prot"/);
  assert.match(texts[1] ?? "", /agent\.backend: Unknown agent backend "gpt"/);
  for (const check of ["home", "ledger", "disk", "clock"]) only(of(check));
});

test("a home that others may enter, and its files that they may read, are warnings with the command that closes them", async (t) => {
  const home = await makeHome(t, { "config.yaml": configured(), ".env": "A=b" });
  await chmod(home.config, 0o644);
  assert.equal(only((await examine(home)).of("home")).grade, "ok", "the home is closed");
  await chmod(home.folder, 0o755);
  const { code, of } = await examine(home);
  assert.equal(code, 0);
  assert.deepEqual(
    of("home").map(({ grade, next }) => `${grade}: ${next}`),
    [`warning: Close it: chmod 700 "${home.folder}"`, `warning: Close it: chmod 600 "${home.config}"`],
  );
});

describe("the ledger", () => {
  test("that is damaged is a problem, and its check is named", async (t) => {
    const home = await makeHome(t, { "config.yaml": configured(), "data/ledger.db": "x".repeat(10_000) });
    const { code, of } = await examine(home);
    assert.equal(code, 1);
    const { grade, next } = only(of("ledger"));
    assert.deepEqual({ grade, next }, { grade: "problem", next: 'See what is wrong with it: "postern ledger check"' });
  });

  test("of an older Postern is a warning, and stays as it is", async (t) => {
    const home = await makeHome(t, { "config.yaml": configured() });
    await makePrivateFolder(home.data);
    makeOldFile(home.ledger);
    const { code, of } = await examine(home);
    assert.equal(code, 0);
    assert.equal(only(of("ledger")).grade, "warning");
  });

  test("in a database that does not answer is a problem, told without the password", async (t) => {
    const home = await makeHome(t, { "config.yaml": configured() });
    const env = { POSTERN_STORE_URL: `postgres://postern:hunter2-secret@127.0.0.1:${await freePort()}/hooks` };
    const { code, of, findings } = await examine(home, env);
    assert.equal(code, 1);
    assert.match(only(of("ledger")).text, /^Cannot open the database "hooks" at "127\.0\.0\.1:\d+" as "postern": /);
    assert.doesNotMatch(JSON.stringify(findings), /hunter2/);
  });

  test("that is larger than it may be is a warning", async (t) => {
    const home = await makeHome(t, { "config.yaml": configured({ sections: { retention: { max_size: "1MiB" } } }) });
    await makePrivateFolder(home.data);
    const record = aRecord({ body: randomBytes(2_000_000) });
    const event = { record, now: noon, claimUntil: null, unfinished: "resume" } as const;
    await withFile(home.ledger, (store) => store.importEvent(event));
    assert.match(
      only((await examine(home)).of("size")).text,
      /^The ledger holds 2\.\d MiB, and "retention\.max_size" is 1\.0 MiB$/,
    );
  });
});

describe("an agent that cannot run", () => {
  const sections = { agent: { backend: "builtin" }, terminal: { backend: "local" } };

  test("is a problem when a route needs it", async (t) => {
    const home = await makeHome(t, { "config.yaml": configured({ sections }) });
    const { code, of } = await examine(home);
    assert.equal(code, 1);
    const { grade, text } = only(of("agent"));
    assert.equal(grade, "problem");
    assert.match(text, /^The backend "builtin" cannot run: no model configured/);
  });

  test("is a warning when no route does", async (t) => {
    const home = await makeHome(t, { "config.yaml": configured({ sections, routes: { alerts: direct } }) });
    const { code, of } = await examine(home);
    assert.equal(code, 0);
    assert.equal(only(of("agent")).grade, "warning");
  });

  test("is none when it has a model and a terminal", async (t) => {
    const home = await makeHome(t, { "config.yaml": configured({ sections }) });
    const { of } = await examine(home, {
      ...{ OPENAI_API_KEY: "sk-x", OPENAI_MODEL: "m", PATH: process.env.PATH ?? "" },
    });
    assert.equal(only(of("agent")).text, 'The backend "builtin" can run');
    assert.equal(only(of("terminal")).text, 'The backend "local" works');
  });
});

describe("subscriptions", () => {
  test("that the gateway skips are problems, and those it takes count as routes", async (t) => {
    const entries = { good: direct, bad: { deliver: "nowhere" }, worse: 5 };
    const home = await makeHome(t, {
      ...{ "config.yaml": configured({ routes: {} }), "webhook_subscriptions.json": JSON.stringify(entries) },
    });
    const { code, of } = await examine(home);
    assert.equal(code, 1);
    assert.deepEqual(
      of("subscriptions").map(({ grade, text }) => `${grade} ${/"\w+"/.exec(text)?.[0]}`),
      ['problem "bad"', 'problem "worse"'],
    );
    assert.equal(only(of("targets")).text, '"telegram" is set up (used by good)');
  });

  test("in a damaged file are a problem without a secret in it", async (t) => {
    const home = await makeHome(t, {
      ...{ "config.yaml": configured(), "webhook_subscriptions.json": '{"a":{"secret":hunter2}}' },
    });
    const { text, grade } = only((await examine(home)).of("subscriptions"));
    assert.equal(grade, "problem");
    assert.match(text, /cannot be read: it is not JSON/);
    assert.doesNotMatch(text, /hunter2/);
  });
});

describe("the targets", () => {
  const bot = { home_channel: "@nowhere" };

  test("that routes use or that are set up are asked, and say what is fine", async (t) => {
    const home = await makeHome(t, { "config.yaml": configured() });
    const { of } = await examine(home);
    assert.deepEqual(of("targets"), [
      {
        ...{ check: "targets", grade: "ok", text: '"log" is set up (used by hello)' },
        details: ["What it gets is written to the gateway's own log"],
      },
      {
        ...{ check: "targets", grade: "ok", text: '"telegram" is set up (no route uses it)' },
        details: ['The bot is "@postern_bot"'],
      },
    ]);
    assert.equal(telegram.messages.length, 0);
  });

  test("that do not work are a problem where a route uses them, told with the service's words", async (t) => {
    const home = await makeHome(t, { "config.yaml": configured({ routes: { alerts: direct }, bot }) });
    const { code, of } = await examine(home);
    assert.equal(code, 1);
    const { grade, text, next } = only(of("targets"));
    assert.equal(grade, "problem");
    assert.match(
      text,
      /^"telegram" does not work \(used by alerts\): Cannot use Telegram: it answered 400 "Bad Request: chat/,
    );
    assert.equal(next, 'Mend it, and see with "postern target check telegram"');
  });

  test("that do not work are a warning where no route does", async (t) => {
    const home = await makeHome(t, { "config.yaml": configured({ bot }) });
    const { code, of } = await examine(home);
    assert.equal(code, 0);
    assert.deepEqual(
      of("targets").map(({ grade }) => grade),
      ["ok", "warning"],
    );
  });

  test("that somebody began to set up are a warning", async (t) => {
    const home = await makeHome(t, { "config.yaml": configured() });
    const { code, of } = await examine(home, { EMAIL_ADDRESS: "me@example.com" });
    assert.equal(code, 0);
    const { grade, text } = of("targets").find((one) => one.text.includes("email"))!;
    assert.equal(grade, "warning");
    assert.match(text, /^"email" cannot be used \(no route uses it\): smtp_host: Missing/);
  });
});

describe("the gateway", () => {
  test("that does not run is no fault", async (t) => {
    const home = await makeHome(t, { "config.yaml": configured({ port: await freePort() }) });
    const { grade, text } = only((await examine(home)).of("gateway"));
    assert.deepEqual({ grade, text }, { grade: "ok", text: 'It does not run; start it with "postern gateway run"' });
  });

  test("whose port another program has is a warning", async (t) => {
    const { port } = await fakeGateway(t, 200, { hello: "world" });
    const home = await makeHome(t, { "config.yaml": configured({ port }) });
    const { grade, text } = only((await examine(home)).of("gateway"));
    assert.deepEqual(
      { grade, text },
      { grade: "warning", text: `Another program answers at http://127.0.0.1:${port}/health` },
    );
  });

  test("that takes connections and hangs up is a warning", async (t) => {
    const server = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => server.close());
    const { port } = server.address() as { port: number };
    const home = await makeHome(t, { "config.yaml": configured({ port }) });
    const { grade, text } = only((await examine(home)).of("gateway"));
    assert.equal(grade, "warning");
    assert.match(text, /^Something listens at .*, but does not answer: /);
  });
});

async function makeWithLedger(t: TestContext): Promise<TestHome> {
  const home = await makeHome(t, { "config.yaml": configured() });
  await makePrivateFolder(home.data);
  return home;
}

test("dead events are counted, and the newest five shown with their reasons and the command that replays them", async (t) => {
  const home = await makeWithLedger(t);
  const ids: string[] = [];
  const now = Date.now();
  await withFile(home.ledger, async (store) => {
    for (let index = 0; index < 7; index += 1) {
      const record = aRecord({ at: now - 60_000 + index, state: "dead", reason: `chat not\nfound ${index}` });
      await store.importEvent({ record, now, claimUntil: null, unfinished: "resume" });
      ids.unshift(record.id);
    }
  });
  const { code, of } = await examine(home);
  assert.equal(code, 0);
  const { grade, text, details, next } = only(of("dead events"));
  assert.deepEqual({ grade, text }, { grade: "warning", text: "7, the newest first:" });
  assert.deepEqual(
    details?.map((line) => line.split("  ").at(0)),
    ids.slice(0, 5),
  );
  assert.match(details?.[0] ?? "", / {2}\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ {2}reviews: chat not found 6$/);
  assert.equal(next, `When the cause is mended: postern events replay ${ids.slice(0, 5).join(" ")}`);
});

test("jobs that wait are counted, with the reason", async (t) => {
  const home = await makeWithLedger(t);
  await withFile(home.ledger, async (store) => {
    for (let index = 0; index < 3; index += 1) await store.accept(anAgentEvent({ at: Date.now() }));
    await store.park({ reason: "no model configured", now: Date.now() });
  });
  const { grade, text } = only((await examine(home)).of("waiting jobs"));
  assert.deepEqual({ grade, text }, { grade: "warning", text: "3 wait: no model configured" });
});

test("a target that is paused is named, until when and why", async (t) => {
  const home = await makeWithLedger(t);
  const now = Date.now();
  const until = now + 3_600_000;
  await withFile(home.ledger, async (store) => {
    await store.accept(anAgentEvent({ at: now }));
    const [job] = await store.claimJobs(aClaim({ now }));
    await store.finishRun(anEndedRun(job!, { now }));
    const [message] = await store.claimMessages(aClaim({ now }));
    const health = { mark: "busy", until, reason: "Too Many Requests" } as const;
    const retry = { move: "retry", dueAt: until, leaveLane: false } as const;
    await store.finishAttempt(anEndedTry(message!, { now, outcome: "refused", error: "429", next: retry, health }));
  });
  const { grade, text } = only((await examine(home)).of("paused targets"));
  const time = new Date(until).toISOString().slice(0, 19);
  assert.deepEqual(
    { grade, text },
    { grade: "warning", text: `"telegram" gets nothing until ${time}Z: Too Many Requests` },
  );
});

test("a check that cannot be made is a problem and keeps no other from being made", async (t) => {
  const home = await makeHome(t, { "config.yaml": configured() });
  await writeFile(home.data, "a file where the folder should be");
  const { code, of } = await examine(home);
  assert.equal(code, 1);
  assert.ok(of("home").some(({ grade }) => grade === "problem"));
  only(of("clock"));
});

describe("free space", () => {
  const GiB = 1024 ** 3;
  const grades: readonly (readonly [what: string, free: number, all: number, grade: string])[] = [
    ["plenty", 50 * GiB, 100 * GiB, "ok"],
    ["just a tenth", 10 * GiB, 100 * GiB, "ok"],
    ["less than a tenth", 9.9 * GiB, 100 * GiB, "warning"],
    ["a good part of very little", 0.09 * GiB, 0.1 * GiB, "warning"],
    ["nothing", 0, 100 * GiB, "warning"],
  ];
  for (const [what, free, all, grade] of grades) {
    test(`is judged: ${what}`, () => assert.equal(judgeSpace({ folder: "/x", free, all }).grade, grade));
  }
});

describe("the clock", () => {
  const now = Date.UTC(2026, 5, 1);
  const day = 86_400_000;
  const times: readonly (readonly [what: string, times: Parameters<typeof judgeTime>[0], said: RegExp])[] = [
    ["is right", { now, storeNow: now + 1_000, newest: now - day }, /^ok/],
    ["is right, and nothing came yet", { now }, /^ok/],
    ["never knew the time", { now: Date.UTC(1970, 0, 1) }, /^warning .*long past/],
    ["is behind the newest event", { now, newest: now + day }, /^warning .*the newest event came at 2026-06-02/],
    ["is more than a year ahead", { now, newest: now - 400 * day }, /^warning .*more than a year after the newest/],
    ["is not the database's", { now, storeNow: now + 120_000 }, /^warning .*the database's 2026-06-01T00:02/],
  ];
  for (const [what, given, said] of times) {
    test(`is judged: it ${what}`, () => {
      const { grade, text } = judgeTime(given);
      assert.match(`${grade} ${text}`, said);
    });
  }
});
