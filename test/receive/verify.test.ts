import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { Rejection } from "../../src/core/errors.ts";
import { INSECURE_NO_AUTH } from "../../src/core/names.ts";
import { signGithub, verify } from "../../src/receive/verify.ts";
import { headersOf } from "../core/event.ts";

type Headers = Record<string, string | string[]>;

const secret = "a secret of some length";
const body = Buffer.from('{"action":"opened"}');
const nowMs = 1_614_265_330_000;
const seconds = String(nowMs / 1000);
const hex = (key: string, ...parts: (string | Buffer)[]) => {
  const digest = createHmac("sha256", key);
  for (const part of parts) digest.update(part);
  return digest.digest("hex");
};
const base64 = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest("base64");

/** The reason of the refusal, or `undefined` when the request is let through. */
function refusal(headers: Headers, secrets: readonly string[] = [secret], raw = body, now = nowMs): string | undefined {
  try {
    verify({ headers: headersOf(headers), body: raw, secrets, nowMs: now });
    return undefined;
  } catch (error) {
    assert.ok(error instanceof Rejection && error.code === "invalid_signature");
    return error.message;
  }
}

test("GitHub's published example verifies (docs.github.com, Validating webhook deliveries)", () => {
  const published = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
  const words = "It's a Secret to Everybody";
  const hello = Buffer.from("Hello, World!");
  assert.equal(signGithub(words, hello), `sha256=${published}`);
  assert.equal(refusal({ "x-hub-signature-256": `sha256=${published}` }, [words], hello), undefined);
});

const publishedId = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const publishedBody = Buffer.from('{"test": 2432232314}');
const publishedKey = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const publishedSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

for (const family of ["webhook", "svix"]) {
  const published = (fields: Headers = {}) => ({
    [`${family}-id`]: publishedId,
    [`${family}-timestamp`]: seconds,
    [`${family}-signature`]: publishedSignature,
    ...fields,
  });

  test(`Svix's published example verifies under the ${family}- headers (svix go/webhook_test.go)`, () => {
    assert.equal(refusal(published(), [publishedKey], publishedBody), undefined);
  });

  test(`any v1 signature of the ${family} list verifies, others are passed over`, () => {
    const wrong = `v1,${"A".repeat(43)}=`;
    const list = `v1a,xyz ${wrong} v2,abc  ${publishedSignature}`;
    assert.equal(refusal(published({ [`${family}-signature`]: list }), [publishedKey], publishedBody), undefined);
    assert.match(
      refusal(published({ [`${family}-signature`]: wrong }), [publishedKey], publishedBody)!,
      /digest differs/,
    );
    assert.match(
      refusal(published({ [`${family}-signature`]: "v1a,xyz" }), [publishedKey], publishedBody)!,
      /no signature/,
    );
    assert.match(
      refusal(published({ [`${family}-signature`]: "v1,QUJD" }), [publishedKey], publishedBody)!,
      /32 bytes/,
    );
  });

  for (const name of [`${family}-id`, `${family}-timestamp`]) {
    test(`the header ${name} must be there once`, () => {
      assert.match(refusal(published({ [name]: "" }), [publishedKey], publishedBody)!, /is missing/);
      assert.match(refusal(published({ [name]: [seconds, seconds] }), [publishedKey], publishedBody)!, /is repeated/);
    });
  }
}

test("a Standard Webhooks secret without its prefix is used as its raw bytes", () => {
  const signed = `v1,${base64(secret, `id.${seconds}.${body}`)}`;
  const headers = { "webhook-id": "id", "webhook-timestamp": seconds, "webhook-signature": signed };
  assert.equal(refusal(headers), undefined);
  const odd = "whsec_not base64!";
  const oddSigned = `v1,${base64(odd, `id.${seconds}.${body}`)}`;
  assert.equal(refusal({ ...headers, "webhook-signature": oddSigned }, [odd]), undefined);
});

for (const empty of ["whsec_", "whsec_=", "whsec_A"]) {
  test(`the secret "${empty}" holds no key, so nothing can be signed with it`, () => {
    const signed = `v1,${base64(Buffer.alloc(0), `id.${seconds}.${body}`)}`;
    const headers = { "webhook-id": "id", "webhook-timestamp": seconds, "webhook-signature": signed };
    assert.match(refusal(headers, [empty])!, /holds no key/);
  });
}

test("the first family of a Standard Webhooks request decides as a whole", () => {
  const good = { "svix-id": publishedId, "svix-timestamp": seconds, "svix-signature": publishedSignature };
  const bad = `v1,${"A".repeat(43)}=`;
  const both = { ...good, "webhook-id": publishedId, "webhook-timestamp": seconds, "webhook-signature": bad };
  assert.match(refusal(both, [publishedKey], publishedBody)!, /digest differs/);
  assert.match(
    refusal({ ...good, "webhook-signature": publishedSignature }, [publishedKey], publishedBody)!,
    /"webhook-id" is missing/,
  );
  assert.equal(refusal({ ...good, "webhook-signature": "" }, [publishedKey], publishedBody), undefined);
});

/** Genuine headers of each scheme. */
const genuine: Record<string, Headers> = {
  github: { "x-hub-signature-256": `sha256=${hex(secret, body)}` },
  gitlab: { "x-gitlab-token": secret },
  "gitlab, neutral name": { "x-hostb-token": secret },
  generic: { "x-webhook-signature": hex(secret, body) },
  standard: {
    "webhook-id": "id",
    "webhook-timestamp": seconds,
    "webhook-signature": `v1,${base64(secret, `id.${seconds}.${body}`)}`,
  },
  generic_v2: { "x-webhook-signature-v2": hex(secret, `${seconds}.`, body), "x-webhook-timestamp": seconds },
};

for (const [scheme, headers] of Object.entries(genuine)) {
  test(`${scheme}: a genuine request is let through`, () => assert.equal(refusal(headers), undefined));

  test(`${scheme}: another secret is refused`, () => assert.match(refusal(headers, ["another secret"])!, /differs/));

  test(`${scheme}: any of several secrets verifies while they are changed`, () => {
    assert.equal(refusal(headers, ["the new one", secret]), undefined);
    assert.equal(refusal(headers, [secret, "the new one"]), undefined);
    assert.match(refusal(headers, ["the new one", "the old one"])!, /with each of 2 secrets/);
  });

  if (!scheme.startsWith("gitlab")) {
    test(`${scheme}: a changed body is refused`, () => {
      assert.match(refusal(headers, [secret], Buffer.from(`${body} `))!, /digest differs/);
    });
  }

  const [signatureName = "", signature = ""] = Object.entries(headers).find(([name]) => /signature|token/.test(name))!;

  test(`${scheme}: a repeated signature header is refused, even with two good values`, () => {
    assert.match(refusal({ ...headers, [signatureName]: [String(signature), String(signature)] })!, /there 2 times/);
    assert.match(refusal({ ...headers, [signatureName]: ["", String(signature)] })!, /there 2 times/);
  });

  for (const empty of ["", " ", "\t"]) {
    test(`${scheme}: the empty value ${JSON.stringify(empty)} counts as absent`, () => {
      assert.match(refusal({ ...headers, [signatureName]: empty })!, /No signature header/);
    });
  }

  test(`${scheme}: the reason names neither the secret nor what was expected`, () => {
    const reason = refusal(headers, ["hunter2 hunter2"]) ?? "";
    const expected = hex("hunter2 hunter2", body);
    assert.ok(!reason.includes("hunter2") && !reason.includes(expected) && !reason.includes(String(signature)));
  });

  for (const blank of [[], [""], ["  "]]) {
    test(`${scheme}: the blank secret ${JSON.stringify(blank)} verifies nothing`, () => {
      const forged: Headers = { "x-hub-signature-256": `sha256=${hex(blank[0] ?? "", body)}` };
      assert.match(refusal(forged, blank)!, /no secret/);
      assert.match(refusal(headers, blank)!, /no secret/);
    });
  }
}

const inOrder = ["github", "gitlab", "generic", "standard", "generic_v2"];
const forged: Record<string, Headers> = {
  github: { "x-hub-signature-256": `sha256=${"0".repeat(64)}` },
  gitlab: { "x-gitlab-token": "wrong" },
  generic: { "x-webhook-signature": "0".repeat(64) },
  standard: { ...genuine.standard, "webhook-signature": `v1,${"A".repeat(43)}=` },
};
for (const [index, first] of inOrder.entries()) {
  for (const second of inOrder.slice(index + 1)) {
    test(`a forged ${first} header is not rescued by a genuine ${second} one, and the other way round it does not matter`, () => {
      assert.match(refusal({ ...genuine[second], ...forged[first] })!, new RegExp(`\\(${first}\\)`));
      assert.equal(refusal({ ...forged[second], ...genuine[first] }), undefined);
    });
  }
}

test("both names of the GitLab token at once are refused", () => {
  assert.match(refusal({ "x-gitlab-token": secret, "x-hostb-token": secret })!, /there 2 times/);
});

const malformed: [headers: Headers, reason: RegExp][] = [
  [{}, /No signature header/],
  [{ "x-hub-signature": "sha1=abc" }, /No signature header/],
  [{ "x-webhook-timestamp": seconds }, /No signature header/],
  [{ "x-hub-signature-256": hex(secret, body) }, /does not start with "sha256="/],
  [{ "x-hub-signature-256": `SHA256=${hex(secret, body)}` }, /does not start with "sha256="/],
  [{ "x-hub-signature-256": `sha256=${hex(secret, body)}0` }, /65 characters where 64 hex digits belong/],
  [{ "x-hub-signature-256": "sha256=" }, /0 characters/],
  [{ "x-hub-signature-256": `sha256=${"g".repeat(64)}` }, /not hex digits/],
  [{ "x-hub-signature-256": `sha256=${hex(secret, body)}, sha256=${hex(secret, body)}` }, /characters where/],
  [{ "x-webhook-signature": `sha256=${hex(secret, body)}` }, /bare hex digest/],
  [{ "x-webhook-signature": hex(secret, body).slice(1) }, /63 characters/],
  [{ "x-webhook-signature-v2": hex(secret, body) }, /"x-webhook-timestamp" is missing/],
  [{ ...genuine.generic_v2, "x-webhook-timestamp": "soon" }, /not a Unix time/],
  [{ ...genuine.generic_v2, "x-webhook-timestamp": `${seconds}.0` }, /not a Unix time/],
  [{ ...genuine.generic_v2, "x-webhook-timestamp": [seconds, seconds] }, /repeated/],
  [{ "x-gitlab-token": `${secret}x` }, /token differs/],
  [{ "x-gitlab-token": secret.slice(0, -1) }, /token differs/],
];
for (const [headers, reason] of malformed) {
  test(`${JSON.stringify(headers).slice(0, 100)} is refused: ${reason.source}`, () => {
    assert.match(refusal(headers)!, reason);
  });
}

test("hex digests are accepted in upper case too", () => {
  assert.equal(refusal({ "x-hub-signature-256": `sha256=${hex(secret, body).toUpperCase()}` }), undefined);
  assert.equal(refusal({ "x-webhook-signature": hex(secret, body).toUpperCase() }), undefined);
});

for (const scheme of ["standard", "generic_v2"]) {
  test(`${scheme}: 300 s either way are allowed and 301 s are not, and the reason says by how much`, () => {
    const headers = genuine[scheme]!;
    for (const drift of [300, -300]) assert.equal(refusal(headers, [secret], body, nowMs + drift * 1000), undefined);
    assert.match(refusal(headers, [secret], body, nowMs + 301_000)!, /301 s old/);
    assert.match(refusal(headers, [secret], body, nowMs - 301_000)!, /301 s ahead/);
  });
}

test("the timestamp is covered by the signature", () => {
  const later = String(nowMs / 1000 + 1);
  assert.match(refusal({ ...genuine.generic_v2, "x-webhook-timestamp": later })!, /digest differs/);
  assert.match(refusal({ ...genuine.standard, "webhook-timestamp": later })!, /digest differs/);
  assert.match(refusal({ ...genuine.standard, "webhook-id": "id2" })!, /digest differs/);
});

for (const word of ["pässwörd-日本-😀", "café au lait"]) {
  test(`the secret "${word}" works beyond ASCII, as UTF-8 on the wire`, () => {
    assert.equal(refusal({ "x-gitlab-token": Buffer.from(word).toString("latin1") }, [word]), undefined);
    assert.equal(refusal({ "x-hub-signature-256": signGithub(word, body) }, [word]), undefined);
    assert.equal(refusal({ "x-gitlab-token": word }, [word]), undefined);
    assert.match(refusal({ "x-gitlab-token": `${word}x` }, [word])!, /differs/);
  });
}

test("the secret INSECURE_NO_AUTH lets everything through, with and without headers", () => {
  assert.equal(refusal({}, [INSECURE_NO_AUTH]), undefined);
  assert.equal(refusal(forged.github!, [INSECURE_NO_AUTH]), undefined);
});

test("INSECURE_NO_AUTH among other secrets lets nothing through, not even what is signed with it", () => {
  assert.match(refusal({}, [secret, INSECURE_NO_AUTH])!, /No signature header/);
  const word = { "x-hub-signature-256": signGithub(INSECURE_NO_AUTH, body) };
  assert.match(refusal(word, [secret, INSECURE_NO_AUTH])!, /digest differs/);
  assert.match(refusal(word, [INSECURE_NO_AUTH, INSECURE_NO_AUTH])!, /no secret/);
});

test("bodies that are empty or no text are signed like all others", () => {
  for (const raw of [Buffer.alloc(0), Buffer.from([0xff, 0x00, 0xfe])]) {
    assert.equal(refusal({ "x-hub-signature-256": signGithub(secret, raw) }, [secret], raw), undefined);
  }
});
