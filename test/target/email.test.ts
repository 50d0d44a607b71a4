import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { DeliveryError } from "../../src/core/errors.ts";
import type { LogFields } from "../../src/lib/log.ts";
import { silentLog } from "../../src/lib/log.ts";
import { readAddress } from "../../src/target/address.ts";
import { createEmail, email } from "../../src/target/email.ts";
import { smtpOptions, within } from "../../src/target/smtp.ts";
import { delivered, later, never, type TargetCase, unknownNotTaken, unknownTaken } from "../conformance/target/case.ts";
import { makeMemory } from "../conformance/target/memory.ts";
import { testTarget } from "../conformance/target/suite.ts";
import { type FakeSmtp, startFakeSmtp } from "../fakes/smtp.ts";

const key = "0123456789abcdef0123456789abcdef";
const event = { route: "ci", eventType: "push" };
const warnings: LogFields[] = [];
const log = { ...silentLog, warn: (fields: LogFields) => warnings.push(fields) };
const tools = { env: {}, log, memory: makeMemory(), signal: new AbortController().signal };

const one: TargetCase = {
  create: createEmail,
  extra: { to: "someone@example.com" },
  start: async () => {
    const fake = await startFakeSmtp();
    const { user, password } = fake.login;
    return {
      fake,
      settings: { smtp_host: fake.host, smtp_port: fake.port, address: user, password },
      secret: password,
    };
  },
  expected: {
    ok: delivered,
    lost: unknownTaken,
    refused: never,
    // SMTP names no time.
    limited: later,
    // An answer of SMTP is an answer, also when it is a failure: the message was not taken.
    broken: later,
    redirect: later,
    reset: unknownTaken,
    hang: unknownNotTaken,
    garbage: unknownNotTaken,
    huge: unknownTaken,
  },
  // Tags and attributes that a reader's program would load, run, or follow elsewhere than to a page or a mailbox.
  live: [
    /<(?!\/?(?:html|body|p|br|h[1-6]|pre|code|blockquote|[uo]l|li|table|thead|tbody|t[rhd]|hr|strong|em|del|a)\b|!DOCTYPE html>)/i,
    /<\w+\s(?!href="(?:https?:|mailto:)[^"<>]*">|class="language-[^"<>]*">|start="\d+">)/,
  ],
};
testTarget("email", one);

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
    assert.match(headers["content-type"] ?? "", /^multipart\/alternative;/);
    assert.equal(headers["list-id"], "<ci.postern.example.com>");
    assert.equal(headers["message-id"], `<${key}@example.com>`);
    assert.equal(receipt.reference, `<${key}@example.com>`);
    assert.equal(headers["x-mailer"], undefined);
  });

  test("sends the Markdown as it is and as HTML beside it, unless the text is none", async () => {
    const text = "# Build 7\n\n**passed**, see [the log](https://ci.example/7) <img src=x>";
    await send(text);
    const { text: plain, html } = fake.messages.at(-1)!;
    assert.equal(plain, text);
    assert.match(html ?? "", /<h1>Build 7<\/h1>\n<p><strong>passed<\/strong>, see <a href="https:\/\/ci.example\/7">/);
    assert.match(html ?? "", /&#60;img src=x&#62;/);
    await send(text, { format: "plain" });
    const mail = fake.messages.at(-1)!;
    assert.deepEqual([mail.text, mail.html], [text, undefined]);
    assert.match(mail.headers.get("content-type") ?? "", /^text\/plain; charset=utf-8/);
  });

  test("puts what has one key into one thread, and what has another into another", async () => {
    await send("one", { thread_key: "owner/name#7" });
    await send("two", { thread_id: "owner/name#7" });
    await send("three", { thread_key: "owner/name#8" });
    await send("four");
    const roots = fake.messages.slice(-4).map(({ headers }) => [headers.get("references"), headers.get("in-reply-to")]);
    assert.match(roots[0]?.[0] ?? "", /^<thread\.[0-9a-f]{32}@example\.com>$/);
    assert.equal(roots[0]?.[1], roots[0]?.[0]);
    assert.deepEqual(roots[1], roots[0]);
    assert.notEqual(roots[2]?.[0], roots[0]?.[0]);
    assert.deepEqual(roots[3], [undefined, undefined]);
  });

  test("answers to a Message-ID, within a thread too, and has answers sent elsewhere", async () => {
    await send("x", { in_reply_to: "owner/name/pull/7@github.com", reply_to: "team@example.com" });
    const { headers } = fake.messages.at(-1)!;
    const parent = "<owner/name/pull/7@github.com>";
    assert.deepEqual(
      [headers.get("in-reply-to"), headers.get("references"), headers.get("reply-to")],
      [parent, parent, "team@example.com"],
    );
    await send("x", { in_reply_to: parent, thread_key: "7" });
    const both = fake.messages.at(-1)!.headers;
    assert.equal(both.get("in-reply-to"), parent);
    assert.match(
      both.get("references") ?? "",
      /^<thread\.[0-9a-f]{32}@example\.com> <owner\/name\/pull\/7@github\.com>$/,
    );
  });

  const injections: [field: string, value: string][] = [
    ["in_reply_to", "<a@b.c>\r\nBcc: evil@example.com"],
    ["in_reply_to", "a@b.c>, <d@e.f"],
    ["in_reply_to", "no id"],
    ["in_reply_to", "{message.id}@example.com"],
    ["reply_to", "a@b.c\nBcc: evil@example.com"],
    ["reply_to", "a@b.c, d@e.f"],
    ["thread_key", "7\r\nBcc: evil@example.com"],
    ["thread_key", "{repository.full_name}#7"],
  ];
  for (const [field, value] of injections) {
    test(`refuses ${field} ${JSON.stringify(value)}`, () => {
      assert.throws(() => readAddress(email, { to: "a@b.c", [field]: value }, {}), DeliveryError);
    });
  }

  test("names a list for each route that is a name, whatever the route's is", async () => {
    for (const [route, list] of [
      ["Nightly_Build.v2", "nightly-build-v2"],
      ["a\r\nBcc: evil@example.com", "a-bcc-evil-example-com"],
      ["---", "route"],
      ["x".repeat(500), "x".repeat(60)],
    ] as const) {
      await send("x", {}, {}, { route });
      assert.equal(fake.messages.at(-1)!.headers.get("list-id"), `<${list}.postern.example.com>`);
    }
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

  test("logs in to look whether it can, and says what cannot be tried", async () => {
    const basics = { smtp_host: fake.host, smtp_port: fake.port, address: fake.login.user };
    const count = fake.messages.length;
    assert.deepEqual(await email.check({ ...basics, home_channel: "ops@example.com" }, tools), [
      'The mail server "127.0.0.1" talks to the gateway without a login',
      'Whether it takes mail from "bot@example.com", and mail for "ops@example.com", cannot be tried without sending',
    ]);
    const [said] = await email.check({ ...basics, password: fake.login.password }, tools);
    assert.match(said ?? "", /with the login "bot@example.com"$/);
    const error = await failure(email.check({ ...basics, password: "wrong-password" }, tools));
    assert.match(error.message, /^Cannot use e-mail through .* 535 .*; check "username" and "password"$/);
    assert.ok(!error.message.includes("wrong-password"));
    assert.equal(fake.messages.length, count);
  });

  test("looks no longer than it may, and stops when it must", async (t) => {
    const { server, port } = await startServer("EHLO", isSilent);
    t.after(() => server.close());
    const basics = { smtp_host: "127.0.0.1", smtp_port: port, address: fake.login.user };
    const slow = await failure(createEmail({ timeoutMs: 200 }).check(basics, tools));
    assert.match(slow.message, /: no answer within 200 ms$/);
    const stop = new AbortController();
    server.once("connection", () => stop.abort());
    const stopped = await failure(createEmail().check(basics, { ...tools, signal: stop.signal }));
    assert.match(stopped.message, /: stopped before the server had answered$/);
    server.close();
    // Nothing that it opened is left.
    await once(server, "close");
  });

  test("ends nothing any more once it is over", async () => {
    const outer = new AbortController().signal;
    const kept = await within(1, outer, async (signal) => signal);
    const ended = within(20, outer, async (signal) => {
      await once(signal, "abort");
      throw new Error("aborted");
    });
    // A timer of the first call would have come before that of the second.
    await assert.rejects(ended, /^Error: no answer within 20 ms$/);
    assert.equal(kept.aborted, false);
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
    const lines = createInterface(socket);
    // The other side may go away in the middle of a line.
    lines.on("error", () => {});
    lines.on("line", (line) => {
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
