import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { DeliveryError } from "../../src/core/errors.ts";
import type { LogFields } from "../../src/lib/log.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createEmail, email } from "../../src/target/email.ts";
import { readAddress } from "../../src/target/settings.ts";
import { smtpOptions } from "../../src/target/smtp.ts";
import { type FakeSmtp, startFakeSmtp } from "../fakes/smtp.ts";

const key = "0123456789abcdef0123456789abcdef";
const event = { route: "ci", eventType: "push" };
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
    const part = { text, address, index: 0, count: 1, key, firstTriedAt: 0, route: "ci", eventType: "push", ...names };
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

  const stages = ["greeting", "EHLO", "AUTH", "MAIL", "RCPT", "DATA"] as const;
  const isSilent = () => {};
  const faults: [what: string, does: (socket: Socket) => void, wait: DeliveryError["retryAfterMs"]][] = [
    ["says nothing more", isSilent, undefined],
    ["goes away", (socket) => socket.destroy(), undefined],
    ["says later", (socket) => socket.write("454 4.3.0 Try again later\r\n"), undefined],
    ["says never", (socket) => socket.write("550 5.7.1 Not for you\r\n"), "never"],
  ];
  for (const stage of stages) {
    for (const [what, does, wait] of faults) {
      test(`is sure that nothing was sent when the server ${what} at ${stage}`, async () => {
        const error = await failureAt(stage, does);
        assert.deepEqual([error.sent, error.retryAfterMs], ["no", wait], error.message);
      });
    }
  }

  test("is sure that nothing was sent when the server goes away in the middle of the message", async () => {
    const goOn = (socket: Socket) => socket.write("354 go\r\n", () => socket.resetAndDestroy());
    const error = await failureAt("DATA", goOn, "東".repeat(500_000));
    assert.deepEqual([error.sent, error.retryAfterMs], ["no", undefined], error.message);
  });

  test("is not sure any more once the end of the message is written", async () => {
    const cut = await failureAt(".", (socket) => socket.destroy());
    assert.deepEqual([cut.sent, cut.retryAfterMs], ["maybe", undefined]);
    const refused = await failureAt(".", (socket) => socket.write("451 4.3.0 Try again later\r\n"));
    assert.deepEqual([refused.sent, refused.retryAfterMs], ["no", undefined]);
  });

  /** Sends to a server that behaves until `stage`. */
  async function failureAt(stage: string, does: (socket: Socket) => void, text = "x"): Promise<DeliveryError> {
    const { server, port } = await startServer(stage, does);
    const { user: address, password } = fake.login;
    const settings = { smtp_host: "127.0.0.1", smtp_port: port, address, password };
    const part = { text, address: { chat_id: "a@b.c" }, index: 0, count: 1, key, firstTriedAt: 0, ...event };
    // Where an answer is waited for, a busy machine has time to give it.
    const target = createEmail({ timeoutMs: does === isSilent ? 200 : 20_000 });
    return failure(target.send(part, settings, tools)).finally(() => server.close());
  }

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
});

const replies: Record<string, string> = { EHLO: "250-hello\r\n250 AUTH PLAIN", AUTH: "235 ok", DATA: "354 go" };

/**
 * An SMTP server that does `does` in place of its answer to the command `stage`, or of its greeting; `.` is the end of a
 * message.
 */
async function startServer(stage: string, does: (socket: Socket) => void): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    if (stage === "greeting") return does(socket);
    let isBody = false;
    socket.write("220 ready\r\n");
    createInterface(socket).on("line", (line) => {
      if (isBody && line !== ".") return;
      const [word = ""] = line.toUpperCase().replace("HELO", "EHLO").split(/[ :]/);
      isBody = word === "DATA";
      if (word === stage) does(socket);
      else socket.write(`${replies[word] ?? "250 ok"}\r\n`);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return { server, port: typeof address === "object" && address !== null ? address.port : 0 };
}

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
