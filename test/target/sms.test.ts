import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { segmentCount } from "../../src/core/segments.ts";
import { splitText } from "../../src/core/split.ts";
import { readAddress } from "../../src/target/address.ts";
import { readSettings } from "../../src/target/settings.ts";
import { createSms, sms } from "../../src/target/sms.ts";
import type { Receipt, SettingValues } from "../../src/target/target.ts";
import { jsonService } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeTwilio, startFakeTwilio } from "../fakes/twilio.ts";

const from = "+15005550006";
const extra = { chat_id: "+4915112345678" };

testTarget("sms from a number", {
  create: createSms,
  extra,
  start: async () => {
    const fake = await startFakeTwilio();
    const login = { account_sid: fake.account, auth_token: fake.authToken };
    return { fake, settings: { ...login, from, base_url: fake.baseUrl }, secret: fake.authToken };
  },
  expected: jsonService,
});

testTarget("sms by a messaging service, with an API key", {
  create: createSms,
  extra,
  start: async () => {
    const fake = await startFakeTwilio();
    const login = { account_sid: fake.account, api_key: fake.apiKey, api_secret: fake.apiSecret };
    const settings = { ...login, messaging_service_sid: `MG${"a".repeat(32)}`, base_url: fake.baseUrl };
    return { fake, settings, secret: fake.apiSecret };
  },
  expected: jsonService,
});

type Send = (text: string, settings?: SettingValues, address?: object) => Promise<Receipt>;

/** Tries with a fake that is gone afterwards. */
async function withTwilio(use: (fake: FakeTwilio, send: Send) => Promise<void>) {
  const fake = await startFakeTwilio();
  const values = { account_sid: fake.account, auth_token: fake.authToken, from, base_url: fake.baseUrl };
  try {
    await use(fake, (text, settings = {}, address = {}) => {
      const all = { ...values, ...settings };
      return sms.send(partOf(sms, { settings: all }, { ...extra, ...address }, text), all, toolsFor({}));
    });
    assert.deepEqual(fake.mismatches, []);
  } finally {
    await fake.close();
  }
}

describe("sms", () => {
  test("says that the message is accepted, not delivered, and how many segments it takes", () =>
    withTwilio(async (_, send) => {
      const { reference = "" } = await send("a".repeat(161));
      assert.match(reference, /^SM0{32}, accepted by Twilio \(queued\), 2 segments; not yet delivered$/);
    }));

  test("cuts what would cost more segments than the operator pays for, and says so in the text", () =>
    withTwilio(async (fake, send) => {
      await send("東京 ".repeat(500));
      await send("word ".repeat(1000), { max_segments: 1 });
      await send("word ".repeat(200), { max_segments: 10 });
      const [four, one, whole] = fake.messages.map(({ text }) => text);
      assert.equal(segmentCount(four!), 4);
      assert.equal(segmentCount(one!), 1);
      for (const text of [four!, one!]) assert.match(text, /\[cut: the answer was longer\]$/);
      assert.equal(whole!.trim(), "word ".repeat(200).trim());
    }));

  test("never sends more than Twilio takes in one message", () => {
    for (const letter of ["a", "{", "東", "👩‍👩‍👧‍👦", "a\n\n"]) {
      const [part = ""] = splitText(letter.repeat(5000), sms.limit);
      assert.ok(part.length <= 1600, `${part.length} of ${letter}`);
    }
  });

  const account_sid = `AC${"0".repeat(32)}`;
  const wrong: [key: string, value: unknown][] = [
    ...[0, 11, -1, 1.5, 100].map((max): [string, unknown] => ["max_segments", max]),
    ...["AC1", `ac${"0".repeat(32)}`, `SK${"0".repeat(32)}`, `AC${"0".repeat(31)}/`].map((sid): [string, unknown] => [
      "account_sid",
      sid,
    ]),
    ["api_key", account_sid],
    ["messaging_service_sid", "+15005550006"],
  ];
  for (const [key, value] of wrong) {
    test(`refuses ${value} as ${key} when the configuration is read`, () => {
      const read = readSettings(sms, { account_sid, auth_token: "t", from, [key]: value }, {});
      assert.ok("problems" in read);
      const keys = read.problems.map((problem) => problem.key);
      assert.deepEqual(keys, [key]);
      assert.match(read.problems[0]!.message, /^Expected /);
    });
  }

  test("takes from 1 to 10 segments, and Twilio's settings by the names that others give them", () => {
    for (const max_segments of [1, 4, 10, "7"]) {
      const read = readSettings(sms, { account_sid, token: "t", phone_number: from, max_segments }, {});
      assert.deepEqual("values" in read && [read.values.auth_token, read.values.from], ["t", from]);
    }
    const env = { TWILIO_BASE_URL: "https://api.ie1.twilio.com" };
    const read = readSettings(sms, { account_sid, auth_token: "t", from }, env);
    assert.equal("values" in read && read.values.base_url, env.TWILIO_BASE_URL);
  });

  test("writes plain text", () =>
    withTwilio(async (fake, send) => {
      await send("**Build** [7](https://ci.example/7) `ok`");
      await send("**Build**", {}, { format: "plain" });
      const texts = fake.messages.map(({ text }) => text);
      assert.deepEqual(texts, ["Build 7 (https://ci.example/7) ok", "**Build**"]);
    }));

  const fates: [status: number, code: number, sent: "no" | "maybe", wait: "never" | undefined, words: RegExp][] = [
    [400, 21211, "no", "never", /correct the number$/],
    [400, 21610, "no", "never", /has answered STOP/],
    [400, 99999, "no", "never", /"Sorry \(99999\)"$/],
    [401, 20003, "no", "never", /check "account_sid"/],
    [404, 20404, "no", "never", /20404/],
    [400, 21611, "no", undefined, /21611/],
    [429, 20429, "no", undefined, /20429/],
    [403, 20429, "no", undefined, /20429/],
    [500, 20500, "maybe", undefined, /20500/],
    [503, 20429, "maybe", undefined, /20429/],
  ];
  for (const [status, code, sent, wait, words] of fates) {
    test(`is right about when to try again after ${status} with the code ${code}`, () =>
      withTwilio(async (fake, send) => {
        fake.mode = "refused";
        fake.answer = { status, body: { code, message: "Sorry", status } };
        const error = await failureOf(send("x"));
        assert.deepEqual([error.sent, error.retryAfterMs], [sent, wait], error.message);
        assert.match(error.message, words);
      }));
  }

  test("takes a message that failed at once for refused", () =>
    withTwilio(async (fake, send) => {
      fake.mode = "refused";
      fake.answer = { status: 201, body: { sid: "SM1", status: "failed", error_code: 30003 } };
      const error = await failureOf(send("x"));
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
    }));

  test("shows the login in no form when it is wrong", () =>
    withTwilio(async (fake, send) => {
      const error = await failureOf(send("x", { auth_token: "wrongAuthToken" }));
      assert.match(error.message, /20003/);
      assert.doesNotMatch(error.message, /wrongAuthToken/);
      assert.equal(fake.messages.length, 0);
    }));

  test("says that an account is closed", () =>
    withTwilio(async (fake) => {
      const values = { account_sid: fake.account, auth_token: fake.authToken, from, base_url: fake.baseUrl };
      fake.accountStatus = "suspended";
      await assert.rejects(sms.check(values, toolsFor({})), /the account is suspended/);
      await assert.rejects(sms.check({ ...values, auth_token: "x" }, toolsFor({})), /20003/);
    }));

  test("needs a login and a number or service", () => {
    const account = { TWILIO_ACCOUNT_SID: account_sid };
    const login = { TWILIO_AUTH_TOKEN: "t", TWILIO_PHONE_NUMBER: from };
    assert.ok("values" in readSettings(sms, undefined, { ...account, ...login }));
    for (const env of [account, { ...account, TWILIO_AUTH_TOKEN: "t" }, login]) {
      assert.ok("problems" in readSettings(sms, undefined, env));
    }
  });

  for (const chat_id of [
    "4915112345678",
    "+0123456",
    "+49 151 123",
    "+123456789012345678",
    "+4915112345678,+49",
    "tel:+4915112345678",
  ]) {
    test(`refuses the number ${JSON.stringify(chat_id)}`, () => {
      assert.throws(() => readAddress(sms, { chat_id }, {}), { sent: "no", retryAfterMs: "never" });
    });
  }
});
