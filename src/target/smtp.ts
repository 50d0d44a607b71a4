import { DeliveryError } from "../core/errors.ts";
import { redact } from "../core/text.ts";
import { permanent, quote } from "./failure.ts";
import type { SettingValues } from "./target.ts";

const failed = "Cannot send e-mail";

/**
 * Connection options for nodemailer. Without TLS, also with a login, only to this very machine: there a mail server often
 * has no certificate that could be checked. Everywhere else the connection is encrypted or there is none.
 * @throws DeliveryError when the host or port cannot be one.
 */
export function smtpOptions(settings: SettingValues, timeoutMs: number) {
  const host = String(settings.smtp_host ?? "").replace(/^\[(.*)\]$/, "$1");
  const port = Number(settings.smtp_port ?? 587);
  if (!/^[A-Za-z0-9:._-]+$/.test(host))
    throw permanent(`${failed}: the setting "smtp_host" is no host name; correct it`);
  if (!(port >= 1 && port <= 65_535)) throw permanent(`${failed}: the setting "smtp_port" is no port; correct it`);
  const secure = port === 465;
  const plain = !secure && isLoopback(host);
  const user = settings.username ?? settings.address;
  return {
    // nodemailer asks name servers for "localhost", which need not say this machine.
    host: plain && host === "localhost" ? "127.0.0.1" : host,
    port,
    secure,
    requireTLS: !secure && !plain,
    ignoreTLS: plain,
    ...(settings.password ? { auth: { user: String(user), pass: String(settings.password) } } : {}),
    disableFileAccess: true,
    disableUrlAccess: true,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    maxResponseSize: 65_536,
  };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

/**
 * Judges nodemailer's error by the server's answer (RFC 5321 section 4.2.1): 4yz try later, 5yz never. Without an answer
 * the message may have been taken once its end was written. `what` replaces the error's own words.
 */
export function mailFailure(error: unknown, isWritten: boolean, settings: SettingValues, what?: string): unknown {
  if (!(error instanceof Error)) return error;
  const { code, responseCode } = error as Error & { readonly code?: unknown; readonly responseCode?: unknown };
  const words = redact(what ?? quote(error.message), [String(settings.password ?? "")]);
  const said = `${failed} through "${settings.smtp_host}": ${words}`;
  if (code === "EAUTH" && !isTransient(responseCode)) return permanent(`${said}; check "username" and "password"`);
  if (typeof responseCode === "number" && responseCode >= 400) {
    // 503 speaks of the order of the commands in this one connection, not of the message.
    if (responseCode >= 500 && responseCode !== 503) return permanent(said);
    return new DeliveryError(said, { sent: "no" });
  }
  // Refused on this side: an address or a size that the server told us it does not take.
  if (!isWritten && (code === "EENVELOPE" || code === "EMESSAGE" || code === "ECONFIG")) return permanent(said);
  return new DeliveryError(said, { sent: isWritten ? "maybe" : "no" });
}

function isTransient(responseCode: unknown): boolean {
  return typeof responseCode === "number" && responseCode < 500;
}
