import { keyOf } from "../core/id.ts";
import { truncate } from "../core/text.ts";
import { permanent } from "./failure.ts";
import { format, homeChannel } from "./fields.ts";
import { markdownToHtml } from "./markup/html.ts";
import { oneLine, plainText } from "./neutralise.ts";
import { logIn, mailFailure, smtpOptions, within } from "./smtp.ts";
import type { Part, Receipt, SettingValues, Target, TargetOptions, TargetTools } from "./target.ts";

const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
/** Stricter than RFC 5321: no quoted names, no braces (an unresolved template token), no leading dash. */
const mailbox = `[A-Za-z0-9_][A-Za-z0-9._%+'=~-]{0,63}@${label}(?:\\.${label}){0,20}`;
const mailboxes = new RegExp(`${mailbox}(?:\\s*,\\s*${mailbox}){0,49}`);
/** RFC 5322 section 3.6.4, without what is quoted there and without braces. */
const messageId = /<?[\w!#$%&'*+./=?^`|~-]{1,200}@[\w.:[\]-]{1,200}>?/;
const longestSubject = 250;

const settings: Target["settings"] = {
  smtp_host: { kind: "string", help: "SMTP server", env: ["EMAIL_SMTP_HOST"], required: true },
  smtp_port: {
    kind: "integer",
    help: "Its port: 465 speaks TLS from the start, any other by STARTTLS",
    env: ["EMAIL_SMTP_PORT"],
    default: 587,
  },
  address: {
    kind: "string",
    help: 'The sender\'s address, such as "postern@example.com"',
    env: ["EMAIL_ADDRESS"],
    pattern: new RegExp(mailbox),
    required: true,
  },
  password: { kind: "secret", help: "Password of the login; without it there is none", env: ["EMAIL_PASSWORD"] },
  username: { kind: "string", help: "Name of the login if it is not the address", env: ["EMAIL_USERNAME"] },
  home_channel: homeChannel("EMAIL_HOME_ADDRESS", "Address"),
};

const address: Target["address"] = {
  chat_id: {
    help: 'an e-mail address such as "a@example.com", or several with commas',
    pattern: mailboxes,
    alternatives: ["to"],
    homeChannel: true,
  },
  subject: { help: "the subject; the route and the event when not set", pattern: /[\s\S]*/ },
  reply_to: { help: "the e-mail address that answers go to; the sender's when not set", pattern: new RegExp(mailbox) },
  in_reply_to: {
    help: 'the Message-ID of the e-mail to answer to, such as "<1234@example.com>"',
    pattern: messageId,
  },
  thread_key: {
    help: 'what e-mails of one thread have in common, such as "{repository.full_name}#{number}"',
    pattern: /[^{}\p{Cc}]{1,300}/u,
    alternatives: ["thread_id"],
  },
  format,
};

/**
 * E-mail through an SMTP server: the text as it is, and beside it as HTML made of its Markdown. The Message-ID is made from
 * the part's key, so that a mailbox that drops doubles keeps one copy when a lost answer made the gateway send again.
 *
 * E-mails of one `thread_key` answer to the same Message-ID, which nobody ever sent: readers put them together under it. Some
 * (Gmail) do so only where the subjects are the same, too.
 *
 * When the server takes the message for some recipients only, it counts as delivered: a second try would reach those
 * again who have it. The others are named in the receipt and in a warning.
 */
export function createEmail(options: TargetOptions = {}): Target {
  const { timeoutMs = 30_000 } = options;
  return {
    name: "email",
    isPlatform: true,
    settings,
    address,
    limit: { unit: "utf16", max: 1_000_000, parts: 1 },
    markup: "plain text, and HTML beside it",
    retried: "replies 4yz",
    // Whether a mailbox drops the copy with the same Message-ID is its own affair.
    repeats: "doubled",
    send: (part, settings, tools) => send(part, settings, tools, timeoutMs),
    check: (settings, tools) => check(settings, tools, timeoutMs),
  };
}

/** The target of the registry. */
export const email: Target = createEmail();

async function send(part: Part, settings: SettingValues, tools: TargetTools, timeoutMs: number): Promise<Receipt> {
  const from = sender(settings);
  const options = smtpOptions(settings, timeoutMs);
  const { createTransport } = await import("nodemailer");
  const progress = { isWritten: false };
  const transport = createTransport({ ...options, logger: watch(progress) });
  try {
    const info = await within(timeoutMs, tools.signal, (signal) => transport.sendMail({ ...mail(part, from), signal }));
    return receipt(info.messageId, info.rejected, part, tools);
  } catch (error) {
    throw mailFailure("Cannot send e-mail", error, progress.isWritten, settings);
  } finally {
    transport.close();
  }
}

function sender({ address }: SettingValues): string {
  const from = String(address ?? "");
  if (new RegExp(`^(?:${mailbox})$`).test(from)) return from;
  throw permanent('Cannot send e-mail: the setting "address" is no e-mail address; correct it');
}

async function check(settings: SettingValues, tools: TargetTools, timeoutMs: number): Promise<readonly string[]> {
  const from = sender(settings);
  const options = smtpOptions(settings, timeoutMs);
  try {
    await within(timeoutMs, tools.signal, (signal) => logIn(options, signal));
  } catch (error) {
    throw mailFailure("Cannot use e-mail", error, false, settings);
  }
  const how = options.auth === undefined ? "without a login" : `with the login "${options.auth.user}"`;
  const known = `The mail server "${settings.smtp_host}" talks to the gateway ${how}`;
  const recipients = settings.home_channel === undefined ? "recipients" : `mail for "${settings.home_channel}"`;
  return [known, `Whether it takes mail from "${from}", and ${recipients}, cannot be tried without sending`];
}

/**
 * Notices when the end of the message was handed to the connection: nodemailer then logs an entry of kind `message`. A
 * server must not take a message whose end it did not see (RFC 5321 section 4.1.1.4), so only from then on it may have.
 */
function watch(progress: { isWritten: boolean }) {
  const ignore = () => {};
  const info = (entry: unknown) => {
    if (typeof entry === "object" && entry !== null && "tnx" in entry && entry.tnx === "message") {
      progress.isWritten = true;
    }
  };
  return { trace: ignore, debug: ignore, info, warn: ignore, error: ignore, fatal: ignore };
}

function mail(part: Part, from: string) {
  const text = plainText(part.text);
  const domain = from.slice(from.lastIndexOf("@") + 1);
  return {
    from: mailboxOf(from),
    to: (part.address.chat_id ?? "").split(",").map(mailboxOf),
    ...(part.address.reply_to === undefined ? {} : { replyTo: mailboxOf(part.address.reply_to) }),
    subject: subjectOf(part),
    text,
    ...(part.address.format === "plain" ? {} : { html: pageOf(text) }),
    messageId: `<${part.key}@${domain}>`,
    ...threadOf(part, domain),
    headers: {
      // So that no vacation notice answers a program (RFC 3834; the second is what Exchange heeds).
      "Auto-Submitted": "auto-generated",
      "X-Auto-Response-Suppress": "All",
      "List-Id": listOf(part, domain),
    },
    xMailer: false as const,
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

function mailboxOf(address: string) {
  return { name: "", address: address.trim() };
}

function subjectOf({ address, route, eventType }: Part): string {
  const subject = truncate(oneLine(address.subject ?? ""), longestSubject);
  return subject || truncate(oneLine(`[${route}] ${eventType}`), longestSubject);
}

function pageOf(text: string): string {
  return `<!DOCTYPE html>\n<html><body>\n${markdownToHtml(text)}\n</body></html>\n`;
}

/** RFC 5322 section 3.6.4. */
function threadOf({ address: { thread_key: key, in_reply_to: parent } }: Part, domain: string) {
  const root = key === undefined ? undefined : `<thread.${keyOf("thread", key)}@${domain}>`;
  const answered = parent === undefined ? undefined : `<${parent.replaceAll(/[<>]/g, "")}>`;
  const references = [root, answered].filter((id) => id !== undefined);
  return references.length === 0 ? {} : { inReplyTo: references.at(-1), references };
}

/** What mailboxes can sort by (RFC 2919): one name for each route. */
function listOf({ route }: Part, domain: string): string {
  const label = oneLine(route)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "")
    .slice(0, 60);
  return `<${label || "route"}.postern.${domain}>`;
}

function receipt(messageId: string, rejected: readonly string[], part: Part, tools: TargetTools): Receipt {
  if (rejected.length === 0) return { reference: messageId };
  tools.log.warn(
    { target: "email", route: part.route, event: part.eventType, rejected },
    "The mail server took the message for some recipients only",
  );
  return { reference: `${messageId}, not taken for ${rejected.join(", ")}` };
}
