import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { DeliveryError } from "../../src/core/errors.ts";
import type { LogFields } from "../../src/lib/log.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createEmail, email } from "../../src/target/email.ts";
import { readAddress } from "../../src/target/settings.ts";
import { smtpOptions } from "../../src/target/smtp.ts";
import { type FakeSmtp, startFakeSmtp } from "../fakes/smtp.ts";

const key = "0123456789abcdef0123456789abcdef";
const warnings: LogFields[] = [];
const log = { ...silentLog, warn: (fields: LogFields) => warnings.push(fields) };
const tools = { env: {}, log, signal: new AbortController().signal };

describe("email", () => {
  let fake: FakeSmtp;
  before(async () => {
    fake = await startFakeSmtp();
  });
  after(() => fake.close());

  function send(text: string, extra: Record<string, string> = {}, settings = {}, names = {}) {
    const address = readAddress(email, { chat_id: "a@example.com", ...extra }, {});
    const part = { text, address, index: 0, count: 1, key, route: "ci", eventType: "push", ...names };
    const basics = { smtp_host: fake.host, smtp_port: fake.port, address: fake.login.user };
    return email.send(part, { ...basics, ...settings }, tools);
  }

  async function failure(sending: Promise<unknown>): Promise<DeliveryError> {
    const error = await sending.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof DeliveryError, String(error));
    return error;
  }

  test("writes a message that says who, what and that a program wrote it", async () => {
    const receipt = await send("Grüße\n\n.\nend", { subject: "Bericht für Müller" });
    const mail = fake.messages.at(-1)!;
    assert.equal(mail.from, "bot@example.com");
    assert.deepEqual(mail.to, ["a@example.com"]);
    assert.equal(mail.text, "Grüße\n\n.\nend");
    const headers = Object.fromEntries(mail.headers);
    assert.ok(!Number.isNaN(Date.parse(headers.date ?? "")));
    assert.deepEqual(
      [headers.from, headers.to, headers.subject, headers["auto-submitted"], headers["x-auto-response-suppress"]],
      ["bot@example.com", "a@example.com", "Bericht für Müller", "auto-generated", "All"],
    );
    assert.match(headers["content-type"] ?? "", /^text\/plain; charset=utf-8/);
    assert.equal(headers["message-id"], `<${key}@example.com>`);
    assert.equal(receipt.reference, `<${key}@example.com>`);
    assert.equal(headers["x-mailer"], undefined);
  });

  test("keeps the Message-ID when it tries again", async () => {
    fake.upcoming.push("lost", "ok");
    await failure(send("twice"));
    await send("twice");
    const [first, second] = fake.messages.slice(-2).map((mail) => mail.headers.get("message-id"));
    assert.equal(first, second);
  });

  test("makes a subject of the route and the event, in one line", async () => {
    await send("x");
    assert.equal(fake.messages.at(-1)!.headers.get("subject"), "[ci] push");
    await send("x", {}, {}, { route: "a\r\nBcc: evil@example.com", eventType: "p\u0000u\u2028sh" });
    assert.equal(fake.messages.at(-1)!.headers.get("subject"), "[a Bcc: evil@example.com] p u sh");
  });

  const subjects: [written: string, sent: string][] = [
    ["a\r\nBcc: evil@example.com\r\n\r\nbody", "a Bcc: evil@example.com body"],
    ["a\nb\rc\u0000d\u0085e\u2028f\u2029g", "a b c d e f g"],
    ["\u202egnp.exe", "gnp.exe"],
    ["lone \ud800 surrogate", "lone \ufffd surrogate"],
    ["=?UTF-8?Q?=0d=0aBcc:?=", "\r\nBcc:"],
    ["x".repeat(5000), "x".repeat(250)],
    ["\r\n", "[ci] push"],
  ];
  for (const [written, sent] of subjects) {
    test(`keeps the subject ${JSON.stringify(written.slice(0, 40))} in its header`, async () => {
      await send("body", { subject: written });
      const mail = fake.messages.at(-1)!;
      assert.deepEqual(mail.to, ["a@example.com"]);
      assert.equal(mail.headers.has("bcc"), false);
      assert.equal(mail.text.trim(), "body");
      // A subject that looks encoded is decoded by readers too; what matters is that no header line begins.
      assert.equal(mail.headers.get("subject")?.trim(), sent.trim());
    });
  }

  test("refuses recipients that are none", () => {
    const bad = [
      ...[
        "a",
        "a@",
        "@b.c",
        "a@b@c",
        "a@b.c\nBcc: x@y.z",
        "a@b..c",
        "a@-b.c",
        "-a@b.c",
        '"a b"@c.d',
        "A <a@b.c>",
        "a@b.c;d@e.f",
      ],
      ...["{user}@example.com", "a@b.c,", ",a@b.c", "a@b.c, ", "ä@b.c", "a@[127.0.0.1]", "a@b.c x@y.z", "a\0@b.c"],
    ];
    for (const to of bad) assert.throws(() => readAddress(email, { to }, {}), DeliveryError, to);
    for (const to of ["a@b.c", "a.b+tag@sub.example.com", "root@localhost", "a@b.c, d@e.f,g@h.i"]) {
      assert.equal(readAddress(email, { to }, {}).chat_id, to);
    }
  });

  test("logs in where there is a password, by the address unless another name is set", async () => {
    await send("x", {}, { password: fake.login.password });
    assert.equal(fake.messages.at(-1)!.user, fake.login.user);
    await send("x", {}, { password: fake.login.password, username: fake.login.user, address: "other@example.com" });
    assert.equal(fake.messages.at(-1)!.user, fake.login.user);
    await send("x");
    assert.equal(fake.messages.at(-1)!.user, undefined);
  });

  test("gives up when the login is refused, without showing the password", async () => {
    const error = await failure(send("x", {}, { password: "wrong-password" }));
    assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
    assert.match(error.message, /535 .*; check "username" and "password"$/);
    assert.ok(!error.message.includes("wrong-password"));
  });

  test("counts as delivered what some recipients got, and names the others", async () => {
    fake.refused.add("gone@example.com");
    const { reference } = await send("x", { chat_id: "a@example.com, gone@example.com" });
    assert.deepEqual(fake.messages.at(-1)!.to, ["a@example.com"]);
    assert.equal(reference, `<${key}@example.com>, not taken for gone@example.com`);
    assert.deepEqual(warnings.at(-1)?.rejected, ["gone@example.com"]);
  });

  test("gives up when no recipient is taken", async () => {
    fake.refused.add("gone@example.com");
    const error = await failure(send("x", { chat_id: "gone@example.com" }));
    assert.deepEqual([error.sent, error.retryAfterMs], ["no", "never"]);
    assert.match(error.message, /550 5\.1\.1 No such user here"$/);
  });

  test("is sure that nothing was sent when the server dies before the message ends", async () => {
    const server = createServer((socket) => socket.end("220 hello\r\n").on("error", () => {}));
    const { promise, resolve } = Promise.withResolvers<void>();
    server.listen(0, "127.0.0.1", resolve);
    await promise;
    const address = server.address();
    const smtp_port = typeof address === "object" ? address?.port : undefined;
    const error = await failure(send("x", {}, { smtp_port }));
    server.close();
    assert.deepEqual([error.sent, error.retryAfterMs], ["no", undefined]);
  });

  test("refuses settings that cannot work before it connects", async () => {
    for (const settings of [
      { address: "bot" },
      { address: "a@b.c\r\nx" },
      { smtp_host: "a b" },
      { smtp_port: 0 },
      { smtp_port: 70_000 },
    ]) {
      const error = await failure(send("x", {}, settings));
      assert.equal(error.retryAfterMs, "never");
    }
  });

  test("never takes text for a file or an address to fetch", async () => {
    await send('{"path":"/etc/passwd"}', { subject: "file:///etc/passwd" });
    assert.equal(fake.messages.at(-1)!.text.trim(), '{"path":"/etc/passwd"}');
  });

  test("gives up waiting as a whole, also when the server never greets", async () => {
    const server = createServer((socket) => socket.on("error", () => {}));
    const { promise, resolve } = Promise.withResolvers<void>();
    server.listen(0, "127.0.0.1", resolve);
    await promise;
    const address = server.address();
    const smtp_port = typeof address === "object" ? address?.port : undefined;
    const part = { text: "x", address: { chat_id: "a@b.c" }, index: 0, count: 1, key, route: "ci", eventType: "push" };
    const settings = { smtp_host: "127.0.0.1", smtp_port, address: "a@b.c" };
    const error = await failure(createEmail({ timeoutMs: 200 }).send(part, settings, tools));
    server.close();
    assert.equal(error.sent, "no");
  });
});

describe("the connection of email", () => {
  const rows: [host: string, port: number, secure: boolean, requireTLS: boolean, ignoreTLS: boolean][] = [
    ["smtp.example.com", 587, false, true, false],
    ["smtp.example.com", 25, false, true, false],
    ["smtp.example.com", 465, true, false, false],
    ["127.0.0.1", 1025, false, false, true],
    ["127.8.9.10", 25, false, false, true],
    ["localhost", 25, false, false, true],
    ["[::1]", 25, false, false, true],
    ["127.0.0.1", 465, true, false, false],
    ["127.0.0.1.example.com", 25, false, true, false],
    ["localhost.example.com", 25, false, true, false],
    ["10.0.0.1", 25, false, true, false],
    ["0.0.0.0", 25, false, true, false],
  ];
  for (const [host, port, secure, requireTLS, ignoreTLS] of rows) {
    test(`is ${ignoreTLS ? "plain" : "encrypted"} to ${host}:${port}`, () => {
      const options = smtpOptions({ smtp_host: host, smtp_port: port, address: "a@b.c", password: "x" }, 1000);
      assert.deepEqual([options.secure, options.requireTLS, options.ignoreTLS], [secure, requireTLS, ignoreTLS]);
    });
  }

  test("goes to this machine for localhost, whatever name servers say", () => {
    assert.equal(smtpOptions({ smtp_host: "localhost", smtp_port: 25 }, 1000).host, "127.0.0.1");
  });
});
