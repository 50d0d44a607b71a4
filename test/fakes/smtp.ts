import type { Socket } from "node:net";
import { SMTPServer, type SMTPServerSession } from "smtp-server";
import { type Fake, type Mode, takes, tenMegabytes } from "./mode.ts";

export interface Mail {
  readonly from: string;
  /** Recipients of the envelope that it took. */
  readonly to: readonly string[];
  /** By lower-case name, unfolded and decoded. */
  readonly headers: ReadonlyMap<string, string>;
  /** Decoded, newlines as LF, without the one that ends every mail. */
  readonly text: string;
  /** The same as HTML, when the mail has it. */
  readonly html: string | undefined;
  /** What a reader's program would act on: the subject, and the HTML where there is some. */
  readonly raw: string;
  /** As it came. */
  readonly source: string;
  /** The name of the login, if there was one. */
  readonly user: string | undefined;
}

export interface FakeSmtp extends Fake<Mail> {
  readonly host: "127.0.0.1";
  readonly port: number;
  /** The one login that it takes; mail without a login is taken too. */
  readonly login: { readonly user: string; readonly password: string };
  /** Recipients that it refuses with 550. */
  readonly refused: Set<string>;
}

/** An SMTP server on a free port of 127.0.0.1, without TLS, that checks what it gets. */
export async function startFakeSmtp(): Promise<FakeSmtp> {
  const login = { user: "bot@example.com", password: "fake-smtp-password" };
  const messages: Mail[] = [];
  const upcoming: Mode[] = [];
  const refused = new Set<string>();
  const server: SMTPServer = createServer(login, refused, (mail, sessionId, done) => {
    fake.tries += 1;
    const fault = faultOf(mail);
    if (fault !== undefined) return done(reply(554, fault));
    const mode = upcoming.shift() ?? fake.mode;
    if (takes(mode)) messages.push(mail);
    answer(mode, socketOf(server, sessionId), done);
  });
  const port = await listening(server);
  const close = () => stop(server);
  const service = { host: "127.0.0.1" as const, port, login, refused };
  const fake = { ...service, messages, upcoming, mode: "ok" as Mode, tries: 0, close };
  return fake;
}

type Done = (error?: Error | null, message?: string) => void;

function createServer(
  login: FakeSmtp["login"],
  refused: ReadonlySet<string>,
  take: (mail: Mail, sessionId: string, done: Done) => void,
): SMTPServer {
  return new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    disableReverseLookup: true,
    disabledCommands: ["STARTTLS"],
    logger: false,
    onAuth(auth, _session, done) {
      const isKnown = auth.username === login.user && auth.password === login.password;
      if (isKnown) done(null, { user: login.user });
      else done(reply(535, "5.7.8 Authentication credentials invalid"));
    },
    onRcptTo(address, _session, done) {
      done(refused.has(address.address) ? reply(550, "5.1.1 No such user here") : undefined);
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => take(mailOf(session, Buffer.concat(chunks).toString("utf8")), session.id, done));
    },
  });
}

function mailOf(session: SMTPServerSession, source: string): Mail {
  const { mailFrom, rcptTo } = session.envelope;
  const from = mailFrom === false ? "" : mailFrom.address;
  const to = rcptTo.map((recipient) => recipient.address);
  return { from, to, ...readMail(source), source, user: session.user as string | undefined };
}

function reply(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode });
}

/** The answer to the end of the message. */
function answer(mode: Mode, socket: Socket, done: Done): void {
  if (mode === "ok") done(null, "2.0.0 Ok: queued as 1");
  else if (mode === "refused") done(reply(550, "5.7.1 Message refused as spam"));
  else if (mode === "limited") done(reply(451, "4.7.1 Greylisted, try again later"));
  else if (mode === "broken") done(reply(421, "4.3.2 Service shutting down"));
  else if (mode === "redirect") done(reply(450, "4.2.1 Try another server"));
  else if (mode === "lost") socket.destroy();
  else if (mode === "reset") socket.write("25", () => socket.destroy());
  else if (mode === "garbage") socket.write("<html>Hello from the proxy</html>\r\n");
  else if (mode === "huge") socket.write(`250 ${tenMegabytes}`);
}

function socketOf(server: SMTPServer, id: string): Socket {
  for (const connection of server.connections) if (connection.id === id) return connection._socket as Socket;
  throw new Error(`no connection ${id}`);
}

async function listening(server: SMTPServer): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<void>();
  // A client that goes away in the middle is what these tests are about.
  server.on("error", () => {});
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const address = server.server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function stop(server: SMTPServer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const connection of server.connections) (connection._socket as Socket).destroy();
  server.close(() => resolve());
  await promise;
}

/** What a strict server would refuse (RFC 5322 section 3.6). */
function faultOf(mail: Pick<Mail, "headers" | "source" | "from">): string | undefined {
  const absent = ["from", "to", "subject", "date", "message-id"].find((name) => !mail.headers.has(name));
  if (absent !== undefined) return `5.6.0 header ${absent} is missing`;
  if (mail.headers.has("bcc")) return "5.6.0 bcc is not for other recipients";
  if (!/^<[^\s<>@]+@[^\s<>@]+>$/.test(mail.headers.get("message-id") ?? "")) return "5.6.0 message-id is malformed";
  if (/(?<!\r)\n|\r(?!\n)|\0/.test(mail.source)) return "5.6.0 bare CR, bare LF or NUL";
  return mail.source.split("\r\n").some((line) => line.length > 998) ? "5.6.0 line too long" : undefined;
}

function readMail(source: string): Pick<Mail, "headers" | "text" | "html" | "raw"> {
  const { headers, body } = readEntity(source);
  const [, boundary] = /boundary="([^"]+)"/.exec(headers.get("content-type") ?? "") ?? [];
  const parts = boundary === undefined ? [readEntity(source)] : partsOf(body, boundary).map(readEntity);
  const [text = "", html] = ["text/plain", "text/html"].map((type) => contentOf(parts, type));
  return { headers, text, html, raw: `${headers.get("subject")}\n${html ?? text}` };
}

interface Entity {
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

function readEntity(source: string): Entity {
  const end = source.indexOf("\r\n\r\n");
  const head = source.slice(0, end).replaceAll(/\r\n[ \t]+/g, " ");
  const headers = new Map<string, string>();
  for (const line of head.split("\r\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    if (headers.has(name)) throw new Error(`header ${name} is there twice`);
    headers.set(name, decodeWords(line.slice(colon + 1).trim()));
  }
  return { headers, body: source.slice(end + 4) };
}

/** RFC 2046 section 5.1: the line end before a boundary belongs to it. */
function partsOf(body: string, boundary: string): string[] {
  const [last = ""] = body.split(`\r\n--${boundary}--`);
  return `\r\n${last}`.split(`\r\n--${boundary}\r\n`).slice(1);
}

function contentOf(parts: readonly Entity[], type: string): string | undefined {
  const part = parts.find(({ headers }) => headers.get("content-type")?.startsWith(`${type};`));
  if (part === undefined) return undefined;
  const text = decodeBody(part.body, part.headers.get("content-transfer-encoding") ?? "7bit");
  return text.replaceAll("\r\n", "\n").replace(/\n$/, "");
}

function decodeBody(body: string, encoding: string): string {
  if (encoding === "base64") return Buffer.from(body, "base64").toString("utf8");
  return encoding === "quoted-printable" ? decodeQuoted(body.replaceAll("=\r\n", "")) : body;
}

function decodeQuoted(text: string): string {
  return text.replaceAll(/(?:=[0-9A-F]{2})+/gi, (bytes) =>
    Buffer.from(bytes.replaceAll("=", ""), "hex").toString("utf8"),
  );
}

/** RFC 2047, as far as nodemailer writes it. */
function decodeWords(value: string): string {
  return value
    .replaceAll(/\?=\s+=\?/g, "?==?")
    .replaceAll(/=\?UTF-8\?([QB])\?([^?]*)\?=/gi, (_word, kind: string, text: string) =>
      kind.toUpperCase() === "B"
        ? Buffer.from(text, "base64").toString("utf8")
        : decodeQuoted(text.replaceAll("_", " ")),
    );
}
