import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { DeliveryError } from "../../../src/core/errors.ts";
import { keyOf } from "../../../src/core/id.ts";
import { cut } from "../../../src/gateway/transmit.ts";
import { silentLog } from "../../../src/lib/log.ts";
import { readAddress } from "../../../src/target/address.ts";
import type { Part, Receipt, Target, TargetTools } from "../../../src/target/target.ts";
import { type Mode, modes } from "../../fakes/mode.ts";
import { aRule } from "../../tools/terms.ts";
import { fakeSecret, hostileTexts } from "../../vectors/hostile-texts.ts";
import type { Expected, Service, TargetCase } from "./case.ts";
import { makeMemory } from "./memory.ts";
import { Judge } from "./verdict.ts";
import { testWhole } from "./whole.ts";

/** Long enough for an answer over loopback on a busy machine, short enough to wait for when none comes. */
const patienceMs = 20_000;
const impatienceMs = 700;
/** A service may take a moment to show what it took, and it is asked before the next try. */
const readBackMs = 5000;

/** The suite of the port: every target is the same to the gateway, whatever its service. */
export function testTarget(name: string, one: TargetCase): void {
  describe(`${name} as a target`, { skip: one.skip ?? false }, () => {
    testFates(one);
    testTexts(one);
    testManners(one);
    testWhole(one);
    if (one.create({}).repeats !== "findable") return;
    if (one.isBlind) testBlindness(one);
    else if (one.isRecognised) testRecognition(one);
    else testFinding(one);
  });
}

export function toolsFor({ env = {} }: Pick<Service, "env">, signal = new AbortController().signal): TargetTools {
  return { env, log: silentLog, signal, memory: makeMemory() };
}

export function partOf(
  target: Target,
  service: Pick<Service, "settings">,
  extra: TargetCase["extra"],
  text: string,
): Part {
  const address = readAddress(target, extra, service.settings);
  const names = { route: "ci", eventType: "push" };
  return { text, address, index: 0, count: 1, key: keyOf(text), firstTriedAt: Date.now(), ...names };
}

/** Runs `use` with the service, which is gone afterwards, and sees that each request was one that the service has. */
async function withService(one: TargetCase, use: (service: Service) => Promise<void>): Promise<void> {
  const service = await one.start();
  try {
    await use(service);
    assert.deepEqual(service.fake.mismatches ?? [], [], "requests that the service's API does not have");
  } finally {
    await service.fake.close();
  }
}

export async function failureOf(sending: Promise<unknown>): Promise<DeliveryError> {
  try {
    await sending;
  } catch (error) {
    assert.ok(error instanceof DeliveryError, `not a DeliveryError: ${error instanceof Error ? error.stack : error}`);
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

/** One try by what the service does with it: copies there, and state and next try in the ledger. */
function testFates(one: TargetCase): void {
  let judge: Judge;
  before(async () => {
    judge = await Judge.open();
  });
  after(() => judge.close());

  for (const mode of modes) {
    test(`ends rightly when the service is "${mode}"`, () =>
      withService(one, async (service) => {
        service.fake.mode = mode;
        const target = one.create({ timeoutMs: mode === "hang" ? impatienceMs : patienceMs });
        const part = partOf(target, service, one.extra, "Build 7 has passed");
        const { copies, ...failure } = one.expected[mode];
        const sending = target.send(part, service.settings, toolsFor(service));
        const end = failure.sent === undefined ? await sending : await failureOf(sending);
        if (end instanceof DeliveryError) {
          const { sent, retryAfterMs } = end;
          assert.deepEqual({ sent, retryAfterMs }, { retryAfterMs: undefined, ...failure }, end.message);
          assertSpeaksWell(end, service.secret);
        }
        assert.equal(service.fake.messages.length, copies, "copies at the service");
        await assertJudged(judge, target, end, failure);
      }));
  }
}

async function assertJudged(
  judge: Judge,
  target: Target,
  end: Receipt | DeliveryError,
  { sent, retryAfterMs }: Omit<Expected, "copies">,
): Promise<void> {
  const { state, nextTryInMs, outcome } = await judge.judge(target, end);
  const states = sent === undefined ? "sent" : retryAfterMs === "never" ? "dead" : "pending";
  assert.equal(state, states);
  assert.equal(outcome, sent === undefined ? "sent" : sent === "maybe" ? "unknown" : "refused");
  if (states !== "pending") return;
  const isLookedFor = sent === "maybe" && target.repeats === "findable";
  const atLeast = Math.max(typeof retryAfterMs === "number" ? retryAfterMs : 0, isLookedFor ? readBackMs : 0);
  assert.ok(nextTryInMs !== undefined && nextTryInMs >= atLeast, `the next try is in ${nextTryInMs} ms`);
  assert.ok(nextTryInMs <= atLeast + aRule.firstDelayMs, `the next try is in ${nextTryInMs} ms`);
}

/** Sends a text as the gateway does: cut into parts, one after the other. */
async function sendText(target: Target, service: Service, extra: TargetCase["extra"], text: string): Promise<number> {
  const texts = cut(text, target, [fakeSecret]);
  assert.ok(texts.length <= target.limit.parts, "too many parts");
  for (const [index, text] of texts.entries()) {
    const whole = partOf(target, service, extra, text);
    const part = { ...whole, index, count: texts.length, key: keyOf(text, index) };
    await target.send(part, service.settings, toolsFor(service));
  }
  return texts.length;
}

function testTexts(one: TargetCase): void {
  test("delivers text of every kind whole", () =>
    withService(one, async (service) => {
      const text = 'Zürich 東京 👩‍👩‍👧‍👦 "quoted" \\n\n.\n..\n\n{a.b} <b> & %s $& = =3D last line';
      await sendText(one.create({ timeoutMs: patienceMs }), service, one.extra, text);
      const seen = service.fake.messages.map((message) => message.text).join("");
      const plain = (text: string) => text.replaceAll(/\s+/g, one.isVerbatim === false ? "" : " ").trim();
      assert.equal(plain(seen), plain(text));
      if (one.isVerbatim !== false) assert.equal(seen.trimEnd(), text);
    }));

  // One service for all: starting it for each would take longer than everything else in this suite.
  test("lets nothing of a hostile text live, and crashes at none", () =>
    withService(one, async (service) => {
      for (const { name, text } of hostileTexts) {
        const before = service.fake.messages.length;
        const parts = await sendText(one.create({ timeoutMs: patienceMs }), service, one.extra, text).catch((cause) => {
          throw new Error(`${name}: ${cause}`, { cause });
        });
        const taken = service.fake.messages.slice(before);
        assert.equal(taken.length, parts, name);
        for (const message of taken) assertHarmless(name, message.raw ?? message.text, one.live ?? []);
      }
    }));
}

/** Nothing that no service should be sent, and nothing that this one would act on. */
function assertHarmless(name: string, raw: string, live: readonly RegExp[]): void {
  assert.ok(raw.isWellFormed(), `${name}: half a character`);
  for (const pattern of [...alwaysLive, ...live]) {
    const found = pattern.exec(raw);
    if (found)
      assert.fail(
        `${name}: ${pattern} found ${JSON.stringify(raw.slice(Math.max(0, found.index - 40), found.index + 60))}`,
      );
  }
}

/** A secret, control characters, and marks that make text show in another order than it is written in. */
const alwaysLive = [/sk-fake\/9f8e/, /[^\P{Cc}\n\r\t]/u, /[\u202a-\u202e\u2066-\u2069]/u];

function testManners(one: TargetCase): void {
  test("answers with the service's reference", () =>
    withService(one, async (service) => {
      const target = one.create({ timeoutMs: patienceMs });
      const part = partOf(target, service, one.extra, "Hello");
      const { reference = "none" } = await target.send(part, service.settings, toolsFor(service));
      assert.match(reference, /\S/);
    }));

  test("is sure that nothing was sent when nobody listens, and wants to try again", async () => {
    const service = await one.start();
    await service.fake.close();
    const target = one.create({ timeoutMs: patienceMs });
    const part = partOf(target, service, one.extra, "Hello");
    const error = await failureOf(target.send(part, service.settings, toolsFor(unreachable(one, service))));
    assert.equal(error.sent, "no", error.message);
    assert.equal(error.retryAfterMs, undefined, error.message);
    assertSpeaksWell(error, service.secret);
  });

  test("stops at once when the gateway must", () =>
    withService(one, async (service) => {
      service.fake.mode = "hang";
      const target = one.create({ timeoutMs: patienceMs });
      const tools = toolsFor(service, AbortSignal.timeout(impatienceMs));
      const started = performance.now();
      await failureOf(target.send(partOf(target, service, one.extra, "Hello"), service.settings, tools));
      assert.ok(performance.now() - started < patienceMs / 2);
    }));

  test("says rightly what the service makes of a part that is sent again after its answer was lost", () =>
    withService(one, async (service) => {
      const part = await lose(one, service);
      const target = one.create({ timeoutMs: patienceMs });
      await target.send(part, service.settings, toolsFor(service));
      const isRecognised = one.isRecognised ?? target.repeats === "recognised";
      assert.equal(service.fake.messages.length, isRecognised ? 1 : 2);
    }));

  test("finds its settings right without sending anything", () =>
    withService(one, async (service) => {
      const said = await one.create({ timeoutMs: patienceMs }).check(service.settings, toolsFor(service));
      assert.ok(said.length > 0);
      for (const sentence of said) assert.match(sentence, /^\S.*[^.\s]$/);
      assert.equal(service.fake.messages.length, 0);
    }));

  test("finds its settings wrong, or says what it cannot tell, when nobody listens", async () => {
    const service = await one.start();
    await service.fake.close();
    const target = one.create({ timeoutMs: patienceMs });
    try {
      const said = await target.check(service.settings, toolsFor(unreachable(one, service)));
      assert.match(said.join("\n"), /cannot be told|not be tried|not tried/);
    } catch (error) {
      assert.ok(error instanceof DeliveryError, `not a DeliveryError: ${error}`);
      assertSpeaksWell(error, service.secret);
    }
  });
}

function unreachable(one: TargetCase, service: Service): Pick<Service, "env"> {
  const { env = {} } = service;
  return { env: one.unreachable?.(env) ?? env };
}

/** Sends a part whose answer is lost. */
async function lose(one: TargetCase, service: Service): Promise<Part> {
  const target = one.create({ timeoutMs: patienceMs });
  const part = partOf(target, service, one.extra, "Build 7 has passed");
  service.fake.upcoming.push("lost");
  await failureOf(target.send(part, service.settings, toolsFor(service)));
  return part;
}

function find(one: TargetCase, service: Service, part: Part, timeoutMs = patienceMs) {
  const target = one.create({ timeoutMs });
  assert.equal(target.repeats, "findable");
  return target.find(part, service.settings, toolsFor({ env: unreachable(one, service).env ?? {} }));
}

function testBlindness(one: TargetCase): void {
  test("says that it cannot look for a part, so that the rule decides", () =>
    withService(one, async (service) => {
      const part = await lose(one, service);
      const error = await failureOf(find({ ...one, unreachable: (env) => env }, service, part));
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"], error.message);
      assertSpeaksWell(error, service.secret);
      assert.equal(service.fake.messages.length, 1);
    }));
}

function testRecognition(one: TargetCase): void {
  test("has a part sent again without a look, as long as the service recognises it", () =>
    withService(one, async (service) => {
      const part = await lose(one, service);
      const { length } = service.fake.messages;
      assert.equal(await find({ ...one, unreachable: (env) => env }, service, part), undefined);
      assert.equal(service.fake.messages.length, length);
    }));
}

function testFinding(one: TargetCase): void {
  const reach = { ...one, unreachable: (env: Service["env"] = {}) => env };

  test("finds the part whose answer was lost, and leaves it at one copy", () =>
    withService(one, async (service) => {
      const part = await lose(one, service);
      const receipt = await find(reach, service, part);
      assert.match(receipt?.reference ?? "", /\S/);
      assert.equal(service.fake.messages.length, 1);
    }));

  test("finds nothing when nothing arrived, also beside other parts with the same text", () =>
    withService(one, async (service) => {
      const part = await lose(one, service);
      assert.equal(await find(reach, service, { ...part, key: keyOf("another") }), undefined);
      const elsewhere = { ...part, address: { ...part.address, ...one.elsewhere } };
      assert.equal(await find(reach, service, elsewhere), undefined);
    }));

  for (const mode of modes.filter((mode) => mode !== "ok")) {
    test(`does not take it for missing when the service is "${mode}"`, () =>
      withService(one, async (service) => {
        const part = await lose(one, service);
        service.fake.mode = mode;
        const error = await failureOf(find(reach, service, part, mode === "hang" ? impatienceMs : patienceMs));
        assert.equal(error.sent, "no", error.message);
        const { retryAfterMs } = one.expected[mode];
        assert.equal(error.retryAfterMs, isTold(mode) ? retryAfterMs : undefined);
        assertSpeaksWell(error, service.secret);
        assert.equal(service.fake.messages.length, 1);
      }));
  }

  test("does not take it for missing when nobody listens", async () => {
    const service = await one.start();
    const part = await lose(one, service);
    await service.fake.close();
    const error = await failureOf(find(one, service, part));
    assert.deepEqual([error.sent, error.retryAfterMs], ["no", undefined], error.message);
    assertSpeaksWell(error, service.secret);
  });
}

/** The service says when to come again, or that there is no use. */
function isTold(mode: Mode): boolean {
  return mode === "refused" || mode === "limited" || mode === "redirect";
}
