import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DeliveryError } from "../../src/core/errors.ts";
import { keyOf } from "../../src/core/id.ts";
import { splitText } from "../../src/core/text.ts";
import type { Environment } from "../../src/core/types.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createEmail } from "../../src/target/email.ts";
import { createGithubComment } from "../../src/target/github_comment.ts";
import * as targets from "../../src/target/registry.ts";
import { checkAddress, readAddress, readSettings } from "../../src/target/settings.ts";
import type { Part, SettingValues, Target, TargetTools } from "../../src/target/target.ts";
import { createTelegram } from "../../src/target/telegram.ts";
import { startFakeGithub } from "../fakes/github.ts";
import { type Fake, type Mode, modes } from "../fakes/mode.ts";
import { startFakeSmtp } from "../fakes/smtp.ts";
import { startFakeTelegram } from "../fakes/telegram.ts";
import { missing } from "../needs.ts";

/** Long enough for an answer over loopback on a busy machine, short enough to wait for when none comes. */
const patienceMs = 20_000;
const impatienceMs = 700;

/** What must be true after one try: copies at the service, and how the try ended. */
interface Expected {
  readonly copies: number;
  /** Absent: the target answered, so the message is delivered. */
  readonly sent?: "no" | "maybe";
  readonly retryAfterMs?: number | "never";
}

interface Service {
  readonly fake: Fake<{ readonly text: string }>;
  readonly settings: SettingValues;
  readonly env: Environment;
  /** Never to be seen in an error. */
  readonly secret: string;
}

interface Case {
  readonly target: (timeoutMs: number) => Target;
  /** `deliver_extra` of a route. */
  readonly extra: Record<string, string>;
  /** Fields of another place at the same service. */
  readonly elsewhere: Record<string, string>;
  readonly start: () => Promise<Service>;
  readonly skip: string | false;
  readonly expected: Record<Mode, Expected>;
}

const delivered: Expected = { copies: 1 };
const unknownTaken: Expected = { copies: 1, sent: "maybe" };
const unknownNotTaken: Expected = { copies: 0, sent: "maybe" };
const never: Expected = { copies: 0, sent: "no", retryAfterMs: "never" };

const cases: Record<Exclude<keyof typeof targets, "log">, Case> = {
  telegram: {
    target: (timeoutMs) => createTelegram({ timeoutMs }),
    extra: { chat_id: "-1001234567890", thread_id: "77" },
    elsewhere: { chat_id: "42" },
    start: startTelegram,
    skip: false,
    expected: {
      ok: delivered,
      lost: unknownTaken,
      refused: never,
      limited: { copies: 0, sent: "no", retryAfterMs: 7000 },
      broken: unknownNotTaken,
      reset: unknownTaken,
      hang: unknownNotTaken,
      garbage: unknownNotTaken,
      huge: unknownTaken,
    },
  },
  github_comment: {
    target: (timeoutMs) => createGithubComment({ timeoutMs }),
    extra: { repo: "owner/name", number: "5" },
    elsewhere: { pr_number: "6" },
    start: startGithub,
    skip: missing("gh"),
    expected: {
      ok: delivered,
      lost: unknownTaken,
      refused: never,
      limited: { copies: 0, sent: "no", retryAfterMs: 7000 },
      broken: unknownNotTaken,
      // The status line, 201, was there: GitHub has the comment.
      reset: delivered,
      hang: unknownNotTaken,
      garbage: unknownNotTaken,
      huge: delivered,
    },
  },
  email: {
    target: (timeoutMs) => createEmail({ timeoutMs }),
    extra: { to: "someone@example.com" },
    elsewhere: { chat_id: "other@example.com" },
    start: startEmail,
    skip: false,
    expected: {
      ok: delivered,
      lost: unknownTaken,
      refused: never,
      // SMTP names no time.
      limited: { copies: 0, sent: "no" },
      // An answer of SMTP is an answer, also when it is a failure: the message was not taken.
      broken: { copies: 0, sent: "no" },
      reset: unknownTaken,
      hang: unknownNotTaken,
      garbage: unknownNotTaken,
      huge: unknownTaken,
    },
  },
};

async function startTelegram(): Promise<Service> {
  const fake = await startFakeTelegram();
  return { fake, settings: { token: fake.token, base_url: fake.baseUrl }, env: {}, secret: fake.token };
}

async function startGithub(): Promise<Service> {
  const fake = await startFakeGithub();
  return { fake, settings: {}, env: { PATH: process.env.PATH, ...fake.env }, secret: fake.token };
}

async function startEmail(): Promise<Service> {
  const fake = await startFakeSmtp();
  const { user, password } = fake.login;
  const settings = { smtp_host: fake.host, smtp_port: fake.port, address: user, password };
  return { fake, settings, env: {}, secret: password };
}

function toolsFor(env: Environment, signal = new AbortController().signal): TargetTools {
  return { env, log: silentLog, signal };
}

function partOf(target: Target, extra: Record<string, string>, text: string): Part {
  const address = readAddress(target, extra, {});
  const names = { route: "ci", eventType: "push" };
  return { text, address, index: 0, count: 1, key: keyOf(text), firstTriedAt: Date.now(), ...names };
}

/** With the fake gone `gh` would ask the real GitHub, were it not for a proxy that is not there either. */
function unreachable(env: Environment): Environment {
  return { ...env, HTTPS_PROXY: "http://127.0.0.1:1" };
}

/** Runs `use` with the service, which is gone afterwards. */
async function withService(start: () => Promise<Service>, use: (service: Service) => Promise<void>): Promise<void> {
  const service = await start();
  try {
    await use(service);
  } finally {
    await service.fake.close();
  }
}

async function failureOf(sending: Promise<unknown>): Promise<DeliveryError> {
  try {
    await sending;
  } catch (error) {
    assert.ok(error instanceof DeliveryError, `not a DeliveryError: ${error}`);
    return error;
  }
  throw new assert.AssertionError({ message: "the message counts as delivered" });
}

function assertSpeaksWell(error: DeliveryError, secret: string): void {
  assert.match(error.message, /^[A-Z]/, "sentence case");
  assert.doesNotMatch(error.message, /[.\n]$/, "no full stop");
  assert.ok(error.message.length < 600, "short");
  const seen = `${error.message} ${error.stack} ${error.cause instanceof Error ? error.cause.stack : error.cause}`;
  assert.ok(!seen.includes(secret), "the secret is in the error");
}

async function tryOnce(one: Case, service: Service, mode: Mode): Promise<void> {
  service.fake.mode = mode;
  const target = one.target(mode === "hang" ? impatienceMs : patienceMs);
  const part = partOf(target, one.extra, "Build 7 has passed");
  const { copies, ...failure } = one.expected[mode];
  const sending = target.send(part, service.settings, toolsFor(service.env));
  if (failure.sent === undefined) await sending;
  else {
    const error = await failureOf(sending);
    assert.deepEqual(
      { sent: error.sent, retryAfterMs: error.retryAfterMs },
      { sent: failure.sent, retryAfterMs: failure.retryAfterMs },
      error.message,
    );
    assertSpeaksWell(error, service.secret);
  }
  assert.equal(service.fake.messages.length, copies, "copies at the service");
}

for (const [name, one] of Object.entries(cases)) {
  describe(`${name} as a target`, { skip: one.skip }, () => {
    for (const mode of Object.keys(one.expected) as Mode[]) {
      test(`tells rightly what became of a message when the service is "${mode}"`, () =>
        withService(one.start, (service) => tryOnce(one, service, mode)));
    }

    test("answers with the service's reference", () =>
      withService(one.start, async ({ settings, env }) => {
        const target = one.target(patienceMs);
        const { reference } = await target.send(partOf(target, one.extra, "Hello"), settings, toolsFor(env));
        assert.match(reference ?? "", /\S/);
      }));

    test("is sure that nothing was sent when nobody listens, and wants to try again", async () => {
      const service = await one.start();
      await service.fake.close();
      const target = one.target(patienceMs);
      const part = partOf(target, one.extra, "Hello");
      const error = await failureOf(target.send(part, service.settings, toolsFor(unreachable(service.env))));
      assert.equal(error.sent, "no", error.message);
      assert.equal(error.retryAfterMs, undefined, error.message);
      assertSpeaksWell(error, service.secret);
    });

    test("stops at once when the gateway must", () =>
      withService(one.start, async ({ fake, settings, env }) => {
        fake.mode = "hang";
        const target = one.target(patienceMs);
        const tools = toolsFor(env, AbortSignal.timeout(impatienceMs));
        const started = performance.now();
        await failureOf(target.send(partOf(target, one.extra, "Hello"), settings, tools));
        assert.ok(performance.now() - started < patienceMs / 2);
      }));

    test("delivers text of every kind whole", () =>
      withService(one.start, async ({ fake, settings, env }) => {
        const target = one.target(patienceMs);
        const text = 'Zürich 東京 👩‍👩‍👧‍👦 "quoted" \\n\n.\n..\n\n{a.b} <b> & %s $& = =3D\ttab\nlast line';
        await target.send(partOf(target, one.extra, text), settings, toolsFor(env));
        assert.equal(fake.messages[0]?.text.trimEnd(), text);
      }));

    test("delivers hostile text: lone surrogates, control characters, other directions, a megabyte", () =>
      withService(one.start, async ({ fake, settings, env }) => {
        const target = one.target(patienceMs);
        const nasty = "a\ud800b\udc00c\0d\u001b[31me\u202ef\u2066g\r\nh\ri ";
        const [text = ""] = splitText(nasty.repeat(50_000), target.limit);
        await target.send(partOf(target, one.extra, text), settings, toolsFor(env));
        assert.match(fake.messages[0]?.text ?? "", /^a\ufffdb\ufffdcd\[31mefg\nh\ni a/);
      }));

    test("says rightly what the service makes of a part that is sent again after its answer was lost", () =>
      withService(one.start, async (service) => {
        const part = await lose(one, service);
        await one.target(patienceMs).send(part, service.settings, toolsFor(service.env));
        const { repeats } = one.target(patienceMs);
        assert.equal(service.fake.messages.length, repeats === "recognised" ? 1 : 2);
      }));

    if (one.target(patienceMs).repeats === "findable") testFinding(one);
  });
}

/** Sends a part whose answer is lost. */
async function lose(one: Case, { fake, settings, env }: Service): Promise<Part> {
  const target = one.target(patienceMs);
  const part = partOf(target, one.extra, "Build 7 has passed");
  fake.upcoming.push("lost");
  await failureOf(target.send(part, settings, toolsFor(env)));
  return part;
}

function find(one: Case, { settings, env }: Service, part: Part, timeoutMs = patienceMs) {
  const target = one.target(timeoutMs);
  assert.equal(target.repeats, "findable");
  return target.find(part, settings, toolsFor(env));
}

function testFinding(one: Case): void {
  test("finds the part whose answer was lost, and leaves it at one copy", () =>
    withService(one.start, async (service) => {
      const part = await lose(one, service);
      const receipt = await find(one, service, part);
      assert.match(receipt?.reference ?? "", /\S/);
      assert.equal(service.fake.messages.length, 1);
    }));

  test("finds nothing when nothing arrived, also beside other parts with the same text", () =>
    withService(one.start, async (service) => {
      const part = await lose(one, service);
      assert.equal(await find(one, service, { ...part, key: keyOf("another") }), undefined);
      const elsewhere = { ...part, address: { ...part.address, ...one.elsewhere } };
      assert.equal(await find(one, service, elsewhere), undefined);
    }));

  for (const mode of modes.filter((mode) => mode !== "ok")) {
    test(`does not take it for missing when the service is "${mode}"`, () =>
      withService(one.start, async (service) => {
        const part = await lose(one, service);
        service.fake.mode = mode;
        const error = await failureOf(find(one, service, part, mode === "hang" ? impatienceMs : patienceMs));
        assert.equal(error.sent, "no", error.message);
        assert.equal(
          error.retryAfterMs,
          mode === "refused" || mode === "limited" ? one.expected[mode].retryAfterMs : undefined,
        );
        assertSpeaksWell(error, service.secret);
        assert.equal(service.fake.messages.length, 1);
      }));
  }

  test("does not take it for missing when nobody listens", async () => {
    const service = await one.start();
    const part = await lose(one, service);
    await service.fake.close();
    const error = await failureOf(find(one, { ...service, env: unreachable(service.env) }, part));
    assert.deepEqual([error.sent, error.retryAfterMs], ["no", undefined], error.message);
    assertSpeaksWell(error, service.secret);
  });
}

describe("the registry of targets", () => {
  const all = Object.entries(targets);

  test("names each target as it exports it", () => {
    for (const [name, target] of all) assert.equal(target.name, name);
  });

  test("finds nothing under a name that is no target", () => {
    for (const name of ["constructor", "__proto__", "toString", "default", "Telegram"]) {
      assert.equal(name in targets, false, name);
    }
  });

  test("has a case in this suite for each target", () => {
    assert.deepEqual(Object.keys(targets), [...Object.keys(cases), "log"].sort());
  });

  test("says of each target what becomes of a repeated part, and has `find` where it says so", () => {
    for (const [name, target] of all) {
      assert.ok(["recognised", "findable", "doubled"].includes(target.repeats), name);
      assert.equal("find" in target, target.repeats === "findable", name);
    }
  });

  test("gives paces that can be kept, in places that an address names", () => {
    for (const [name, { pace, address }] of all) {
      for (const one of [pace?.overall, pace?.perPlace]) {
        if (one === undefined) continue;
        assert.ok(Number.isInteger(one.count) && one.count > 0, name);
        assert.ok(Number.isInteger(one.everyMs) && one.everyMs > 0, name);
      }
      if (pace?.perPlace) assert.ok(pace.perPlace.field in address, name);
    }
  });

  test("describes settings and address fields in words, and reads environment names in capitals", () => {
    for (const [name, target] of all) {
      for (const [key, field] of [...Object.entries(target.settings), ...Object.entries(target.address)]) {
        assert.match(field.help, /^\S.*[^.\s]$/, `${name}.${key}`);
        assert.match(key, /^[a-z][a-z0-9_]*$/, `${name}.${key}`);
      }
      for (const setting of Object.values(target.settings)) {
        for (const variable of setting.env ?? []) assert.match(variable, /^[A-Z][A-Z0-9_]+$/);
      }
    }
  });

  test("says of each target without settings what is missing, and of each address too", () => {
    for (const [name, target] of all) {
      const required = Object.values(target.settings).filter((setting) => setting.required);
      const read = readSettings(target, undefined, {});
      assert.equal("problems" in read ? read.problems.length : 0, required.length, name);
      const needed = Object.values(target.address).filter((field) => field.required || field.homeChannel);
      assert.equal(checkAddress(target, {}, {}).length, needed.length, name);
    }
  });

  test("has no pattern that takes long on a hostile value", () => {
    for (const [name, target] of all) {
      for (const [key, field] of Object.entries(target.address)) {
        for (const value of ["a".repeat(100_000), "a@".repeat(50_000), "a@a.".repeat(25_000), "-1,".repeat(30_000)]) {
          const started = performance.now();
          field.pattern.test(`${value}!`);
          assert.ok(performance.now() - started < 1000, `${name}.${key}`);
        }
      }
    }
  });
});

test("log writes the whole message with its route and event at level info", async () => {
  const lines: unknown[] = [];
  const log = { ...silentLog, info: (fields: unknown, message: string) => lines.push([fields, message]) };
  const text = "x".repeat(1_000_000);
  const part = partOf(targets.log, {}, text);
  assert.deepEqual(await targets.log.send(part, {}, { ...toolsFor({}), log }), {});
  assert.deepEqual(lines, [[{ target: "log", route: "ci", event: "push", text }, "Delivered to the log"]]);
});
