import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { checkAddress, type KeyProblem, readAddress } from "../../src/target/address.ts";
import { createHttp, http } from "../../src/target/http.ts";
import { readSettings } from "../../src/target/settings.ts";
import type { SettingValues, TargetOptions } from "../../src/target/target.ts";
import { delivered, jsonService } from "../conformance/target/case.ts";
import { failureOf, partOf, testTarget, toolsFor } from "../conformance/target/suite.ts";
import { type FakeReceiver, startFakeReceiver } from "../fakes/receiver.ts";

testTarget("http", {
  create: createHttp,
  extra: {},
  start: async () => {
    const fake = await startFakeReceiver();
    const settings = { url: `${fake.url}?key=fakeKeyInTheAddress`, secret: fake.secret, allow_private: true };
    return { fake, settings, secret: "fakeKeyInTheAddress" };
  },
  // Any success is one, whoever says so; and what is lost of the body behind it does not matter.
  expected: {
    ...jsonService,
    reset: delivered,
    huge: delivered,
    garbage: { copies: 0 },
  },
});

/** Tries with a receiver that is gone afterwards. */
async function withReceiver(
  use: (
    fake: FakeReceiver,
    send: (settings?: SettingValues, options?: TargetOptions) => Promise<unknown>,
  ) => Promise<void>,
  secret?: string,
) {
  const fake = await startFakeReceiver(secret);
  const send = (settings: SettingValues = {}, options: TargetOptions = {}) => {
    const values = { url: fake.url, secret: fake.secret, allow_private: true, ...settings };
    return createHttp(options).send(partOf(http, { settings: values }, {}, "Build 7 has passed"), values, toolsFor({}));
  };
  try {
    await use(fake, send);
  } finally {
    await fake.close();
  }
}

describe("http", () => {
  test("says in its body whose message it is, and says the same in every try", () =>
    withReceiver(async (fake) => {
      const values = { url: fake.url, secret: fake.secret, allow_private: true };
      const whole = partOf(http, { settings: values }, {}, "Build 7 has passed");
      const part = { ...whole, index: 1, count: 3, firstTriedAt: 1_700_000_000_000 };
      for (let tries = 0; tries < 2; tries += 1) await http.send(part, values, toolsFor({}));
      const id = `msg_${part.key}`;
      assert.deepEqual(JSON.parse(fake.heard[0]!.body), {
        id,
        type: "postern.message",
        timestamp: "2023-11-14T22:13:20.000Z",
        data: { text: "Build 7 has passed", route: "ci", event: "push", part: { index: 1, count: 3 } },
      });
      assert.deepEqual([fake.heard[1]!.body, fake.heard[1]!.headers["webhook-id"]], [fake.heard[0]!.body, id]);
    }));

  test("signs each try with the time of the try", () =>
    withReceiver(async (fake, send) => {
      const now = Math.floor(Date.now() / 1000);
      await send({}, { now: () => now * 1000 });
      await send({}, { now: () => (now + 60) * 1000 });
      const stamps = fake.messages.map(({ headers }) => headers["webhook-timestamp"]);
      assert.deepEqual(stamps, [String(now), String(now + 60)]);
    }));

  test("takes a secret without whsec_ for the key itself", () =>
    withReceiver(
      async (fake, send) => {
        await send({ secret: "a plain secret" });
        assert.equal(fake.messages.length, 1);
      },
      `whsec_${Buffer.from("a plain secret").toString("base64")}`,
    ));

  for (const secret of ["whsec_", "whsec_not base64", "whsec_==", "whsec_YWJjZ", "whsec_YWJj=", "whsec_YWJj-_"]) {
    test(`refuses the key ${JSON.stringify(secret)} when the configuration is read`, () => {
      for (const settings of [{ secret }, { secret: "whsec_YWJj", previous_secret: secret }]) {
        const read = readSettings(http, settings, {});
        assert.ok("problems" in read);
        const [{ key, message }, ...others] = read.problems as [KeyProblem];
        assert.equal(key, "previous_secret" in settings ? "previous_secret" : "secret");
        assert.match(message, /^Expected (?:the )?key .*"whsec_" and base64.*, found other text$/);
        assert.deepEqual(others, []);
      }
    });
  }

  for (const secret of [
    "whsec_YWJj",
    "whsec_YQ==",
    "whsec_YQ",
    "whsec_YWI=",
    "a plain secret\nof two lines",
    "WHSEC_!",
  ]) {
    test(`takes the key ${JSON.stringify(secret)}`, () => {
      assert.ok("values" in readSettings(http, { secret, previous_secret: secret }, {}));
    });
  }

  test("is taken by a receiver that knows either secret while they change", () =>
    withReceiver(async (fake, send) => {
      await send({ secret: "whsec_bmV3IHNlY3JldA==", previous_secret: fake.secret });
      const [{ headers }] = fake.messages as [FakeReceiver["messages"][0]];
      const body = fake.heard[0]!.body;
      for (const secret of ["whsec_bmV3IHNlY3JldA==", fake.secret])
        new Webhook(secret).verify(body, headers as Record<string, string>);
      assert.throws(() => new Webhook("whsec_b3RoZXI=").verify(body, headers as Record<string, string>));
    }));

  test("sends the headers of the settings, and never those that are not theirs to set", () =>
    withReceiver(async (fake, send) => {
      await send({ headers: "Authorization: Bearer a:b\n\nX-Team:  ops " });
      const { authorization, "x-team": team } = fake.messages[0]!.headers;
      assert.deepEqual([authorization, team], ["Bearer a:b", "ops"]);
      for (const headers of [
        "Host: x",
        "webhook-id: 1",
        "Content-Length: 3",
        "no colon",
        "A: ü",
        ": x",
        "Bad name: x",
      ]) {
        const error = await failureOf(send({ headers }));
        assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"], headers);
      }
      assert.equal(fake.heard.length, 1);
    }));

  test("refuses private addresses and plain http for good unless the operator allows them", () =>
    withReceiver(async (fake, send) => {
      const urls = [
        "http://example.com/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://169.254.169.254/",
        fake.url,
      ];
      for (const url of urls) {
        const error = await failureOf(send({ url, allow_private: false }));
        assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"], error.message);
        assert.match(error.message, /^Cannot post the message: the address is refused: .*set "allow_private"/);
        await assert.rejects(
          http.check({ url, secret: "x", allow_private: false }, toolsFor({})),
          /address is refused/,
        );
      }
      assert.equal(fake.heard.length, 0);
    }));

  test("refuses the metadata of a cloud whatever the operator allows", () =>
    withReceiver(async (_, send) => {
      const error = await failureOf(send({ url: "http://169.254.169.254/latest/meta-data/", allow_private: true }));
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
      assert.match(error.message, /not a public address; correct it$/);
    }));

  test("refuses a name that stands for a private address", () =>
    withReceiver(async (fake) => {
      const { port } = new URL(fake.url);
      const target = createHttp({
        resolve: (_name, _options, answer) => answer(null, [{ address: "127.0.0.1", family: 4 }]),
      });
      const values = { secret: fake.secret, allow_private: false };
      const part = partOf(target, { settings: values }, { url: `https://example.com:${port}/hook` }, "x");
      const error = await failureOf(target.send(part, values, toolsFor({})));
      assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
      assert.match(error.message, /"example\.com" stands for 127\.0\.0\.1/);
    }));

  const fates: [status: number, sent: "no" | "maybe", wait: number | "never" | undefined][] = [
    ...([400, 401, 403, 404, 405, 409, 422, 425].map((status) => [status, "no", undefined]) as [
      number,
      "no",
      undefined,
    ][]),
    [408, "maybe", undefined],
    [410, "no", "never"],
    [413, "no", "never"],
    [301, "no", "never"],
    [304, "no", "never"],
    [500, "maybe", undefined],
    [503, "maybe", undefined],
  ];
  for (const [status, sent, wait] of fates) {
    test(`is right about when to try again after ${status}`, () =>
      withReceiver(async (fake, send) => {
        fake.mode = "refused";
        fake.answer = { status, text: status === 304 ? "" : "Sorry" };
        const error = await failureOf(send());
        assert.deepEqual([error.sent, error.retryAfterMs], [sent, wait], error.message);
      }));
  }

  test("takes any success for one", () =>
    withReceiver(async (fake, send) => {
      fake.mode = "refused";
      for (const status of [200, 201, 202, 204]) {
        fake.answer = { status, text: "" };
        assert.match(JSON.stringify(await send()), new RegExp(`answered ${status}`));
      }
    }));

  test("gives up on a name that is not there only after its tries", async () => {
    const unknown = Object.assign(new Error("getaddrinfo ENOTFOUND a.invalid"), { code: "ENOTFOUND" });
    const target = createHttp({ resolve: (_name, _options, answer) => answer(unknown, []) });
    const values = { url: "https://a.invalid/", secret: "x", allow_private: false };
    const error = await failureOf(target.send(partOf(target, { settings: values }, {}, "x"), values, toolsFor({})));
    assert.deepEqual([error.sent, error.retryAfterMs], ["no", undefined]);
    await assert.rejects(target.check(values, toolsFor({})), /Cannot use the receiver: .*ENOTFOUND/);
  });

  test("needs an address, of the route or of the settings", () => {
    assert.equal(checkAddress(http, {}, {}).length, 1);
    assert.deepEqual(checkAddress(http, {}, { url: "https://example.com/" }), []);
    assert.deepEqual(readAddress(http, { url: "https://example.com/a?b=c" }, { url: "https://other.example/" }), {
      url: "https://example.com/a?b=c",
    });
  });

  const good = [
    "https://a.example",
    "http://localhost:3000/x",
    "https://[2606:4700::1]:8443/a",
    "https://a_b.example/%20?x=y&z",
  ];
  for (const url of good) test(`takes the address ${url}`, () => assert.deepEqual(checkAddress(http, { url }, {}), []));

  const bad = [
    ...["ftp://a.example/", "https://", "https:///x", "https://u:p@a.example/", "https://a.example@b.example/"],
    ...[
      "https://a.example/\nx",
      "https://a b.example/",
      "//a.example",
      "javascript:x",
      "https://a.example/#x",
      "https://a.example:x/",
    ],
    ...["https://a.example\\@b.example/", "https://-a.example", "https://a.example/{x}"],
  ];
  for (const url of bad) {
    test(`refuses the address ${JSON.stringify(url)}`, () => {
      assert.throws(() => readAddress(http, { url }, {}), { sent: "no", retryAfterMs: "never" });
    });
  }
});
