import { truncate } from "../core/text.ts";
import { permanent } from "./failure.ts";
import { oneLine, plainText } from "./neutralise.ts";
import { mailFailure, smtpOptions } from "./smtp.ts";
import type { Part, Receipt, SettingValues, Target, TargetTools } from "./target.ts";

/** Options for tests. */
export interface EmailOptions {
  /** From the name lookup to the server's last answer; 30 seconds when not set. */
  readonly timeoutMs?: number;
}

const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
/** Stricter than RFC 5321: no quoted names, no braces (an unresolved template token), no leading dash. */
const mailbox = `[A-Za-z0-9_][A-Za-z0-9._%+'=~-]{0,63}@${label}(?:\\.${label}){0,20}`;
const mailboxes = new RegExp(`${mailbox}(?:\\s*,\\s*${mailbox}){0,49}`);
const longestSubject = 250;

const settings: Target["settings"] = {
  smtp_host: { kind: "string", help: "SMTP server", env: ["EMAIL_SMTP_HOST"], required: true },
  smtp_port: {
    kind: "integer",
    help: "Its port: 465 speaks TLS from the start, any other by STARTTLS",
    env: ["EMAIL_SMTP_PORT"],
    default: 587,
  },
  address: { kind: "string", help: "The sender's address", env: ["EMAIL_ADDRESS"], required: true },
  password: { kind: "secret", help: "Password of the login; without it there is none", env: ["EMAIL_PASSWORD"] },
  username: { kind: "string", help: "Name of the login if it is not the address", env: ["EMAIL_USERNAME"] },
  home_channel: {
    kind: "string",
    help: "Address that messages go to when a route names none",
    env: ["EMAIL_HOME_ADDRESS"],
  },
};

const address: Target["address"] = {
  chat_id: {
    help: 'an e-mail address such as "a@example.com", or several with commas',
    pattern: mailboxes,
    alternatives: ["to"],
    homeChannel: true,
  },
  subject: { help: "the subject; the route and the event when not set", pattern: /[\s\S]*/ },
};

/**
 * E-mail through an SMTP server, as plain text. The Message-ID is made from the part's key, so that a mailbox that drops
 * doubles keeps one copy when a lost answer made the gateway send again.
 *
 * When the server takes the message for some recipients only, it counts as delivered: a second try would reach those
 * again who have it. The others are named in the receipt and in a warning.
 */
export function createEmail(options: EmailOptions = {}): Target {
  const timeoutMs = options.timeoutMs ?? 30_000;
  return {
    name: "email",
    isPlatform: true,
    settings,
    address,
    limit: { unit: "utf16", max: 1_000_000, parts: 1 },
    // Whether a mailbox drops the copy with the same Message-ID is its own affair.
    repeats: "doubled",
    send: (part, settings, tools) => send(part, settings, tools, timeoutMs),
  };
}

/** The target of the registry. */
export const email: Target = createEmail();

async function send(part: Part, settings: SettingValues, tools: TargetTools, timeoutMs: number): Promise<Receipt> {
  const from = String(settings.address ?? "");
  if (!new RegExp(`^(?:${mailbox})$`).test(from)) {
    throw permanent('Cannot send e-mail: the setting "address" is no e-mail address; correct it');
  }
  const options = smtpOptions(settings, timeoutMs);
  const { createTransport } = await import("nodemailer");
  const progress = { isWritten: false };
  const transport = createTransport({ ...options, logger: watch(progress) });
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const info = await transport.sendMail({ ...mail(part, from), signal: AbortSignal.any([timeout, tools.signal]) });
    return receipt(info.messageId, info.rejected, part, tools);
  } catch (error) {
    const what = timeout.aborted ? `no answer within ${timeoutMs} ms` : undefined;
    throw mailFailure(error, progress.isWritten, settings, what);
  } finally {
    transport.close();
  }
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
  const subject = truncate(oneLine(part.address.subject ?? ""), longestSubject);
  return {
    from: { name: "", address: from },
    to: (part.address.chat_id ?? "").split(",").map((address) => ({ name: "", address: address.trim() })),
    subject: subject || truncate(oneLine(`[${part.route}] ${part.eventType}`), longestSubject),
    text: plainText(part.text),
    messageId: `<${part.key}@${from.slice(from.lastIndexOf("@") + 1)}>`,
    // So that no vacation notice answers a program (RFC 3834; the second is what Exchange heeds).
    headers: { "Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All" },
    xMailer: false as const,
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

function receipt(messageId: string, rejected: readonly string[], part: Part, tools: TargetTools): Receipt {
  if (rejected.length === 0) return { reference: messageId };
  tools.log.warn(
    { target: "email", route: part.route, event: part.eventType, rejected },
    "The mail server took the message for some recipients only",
  );
  return { reference: `${messageId}, not taken for ${rejected.join(", ")}` };
}
