import { setTimeout as startTimer } from "node:timers";
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
 * Talks to the server up to the point at which a message would follow: encrypted where it must be, logged in where there is
 * a password.
 * @throws what nodemailer throws, or an error when the signal is aborted.
 */
export async function logIn(options: ReturnType<typeof smtpOptions>, signal: AbortSignal): Promise<void> {
  const { default: SMTPConnection } = await import("nodemailer/lib/smtp-connection");
  const { auth, ...others } = options;
  const connection = new SMTPConnection({ ...others, socketCloseTimeout: 0 });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const end = (error?: unknown) => (error ? reject(error) : resolve());
  const stop = () => reject(new Unanswered("stopped before the server had answered"));
  connection.on("error", reject);
  connection.on("end", () => reject(new Error("Connection closed")));
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  else connection.connect((error) => (error || !auth ? end(error) : connection.login({ credentials: auth }, end)));
  try {
    await promise;
    connection.quit();
  } catch (error) {
    connection.close();
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** The conversation ended on this side. */
class Unanswered extends Error {}

/**
 * Runs `use` with a signal that is aborted with `outer` and after a time. The timer ends with the call, as that of
 * `exchange` does.
 */
export async function within<Value>(
  timeoutMs: number,
  outer: AbortSignal,
  use: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const timeout = new AbortController();
  const timer = startTimer(() => timeout.abort(), timeoutMs).unref();
  try {
    return await use(AbortSignal.any([timeout.signal, outer]));
  } catch (cause) {
    // The server's answer says more than that it came late.
    if (!timeout.signal.aborted || hasAnswer(cause)) throw cause;
    throw new Unanswered(`no answer within ${timeoutMs} ms`, { cause });
  } finally {
    clearTimeout(timer);
  }
}

function hasAnswer(error: unknown): boolean {
  return error instanceof Error && "responseCode" in error && typeof error.responseCode === "number";
}

/**
 * Judges nodemailer's error by the server's answer (RFC 5321 section 4.2.1): 4yz try later, 5yz never. Without an answer
 * the message may have been taken once its end was written. `action` opens the sentence.
 */
export function mailFailure(action: string, error: unknown, isWritten: boolean, settings: SettingValues): unknown {
  if (!(error instanceof Error)) return error;
  const { code, responseCode } = error as Error & { readonly code?: unknown; readonly responseCode?: unknown };
  const words = error instanceof Unanswered ? error.message : quote(redact(error.message, secretsOf(settings)));
  const said = `${action} through "${settings.smtp_host}": ${words}`;
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

/** The password, also as the commands of a login hold it. */
function secretsOf({ password, username, address }: SettingValues): string[] {
  if (password === undefined) return [];
  const plain = `\0${username ?? address}\0${password}`;
  return [String(password), Buffer.from(String(password)).toString("base64"), Buffer.from(plain).toString("base64")];
}

function isTransient(responseCode: unknown): boolean {
  return typeof responseCode === "number" && responseCode < 500;
}
