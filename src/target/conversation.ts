import { DeliveryError } from "../core/errors.ts";
import { isObject, parseJson } from "../core/json.ts";
import { redact } from "../core/text.ts";
import type { Json, JsonObject } from "../core/types.ts";
import { exchange, type HttpRequest, type HttpResponse, retryAfterMs } from "../lib/http.ts";
import { permanent, quote, withoutAnswer } from "./failure.ts";

export interface ConversationOptions {
  /** The service's name, as a person says it: `Slack`. */
  readonly service: string;
  /** Opens the sentence of an error, for example `Cannot send to Slack`. */
  readonly action: string;
  /** Never to be seen in an error. */
  readonly secrets: readonly string[];
  /** All exchanges together. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Unix time in milliseconds; the real clock when not set. */
  readonly now?: () => number;
  /** Which setting to look at when something else than the service answers; `base_url` when not set. */
  readonly addressSetting?: string;
  /** How a request goes out; by `fetch` when not set. */
  readonly exchange?: typeof exchange;
}

export interface Question {
  readonly method: HttpRequest["method"];
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as `application/json; charset=utf-8`. */
  readonly json?: unknown;
  /** Sent as `application/x-www-form-urlencoded`. */
  readonly form?: Readonly<Record<string, string>> | URLSearchParams;
  /** A longer answer is an error; 256 KiB when not set. */
  readonly maxBytes?: number;
  /** Exchanges that send nothing (a token, a look) leave no doubt whether something was sent. */
  readonly sends: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body, when it is a JSON object. */
  readonly json: JsonObject | undefined;
  /** What `Retry-After` asks for, in milliseconds. */
  readonly waitMs: number | undefined;
  readonly sends: boolean;
}

const maxAnswerBytes = 262_144;

/**
 * One call of a target: a few exchanges with its service that together keep a time limit, and the words for what came of
 * them. Every error is a `DeliveryError`, holds none of the secrets, and says whether the message may have been taken.
 */
export class Conversation {
  readonly #options: ConversationOptions;
  readonly #endsAt: number;

  constructor(options: ConversationOptions) {
    this.#options = options;
    this.#endsAt = performance.now() + options.timeoutMs;
  }

  /**
   * The service's answer, whatever its status.
   * @throws DeliveryError when there is none.
   */
  async ask(question: Question): Promise<Answer> {
    const { action, secrets, signal, timeoutMs } = this.#options;
    const { method, url, sends, maxBytes = maxAnswerBytes } = question;
    const leftMs = Math.ceil(this.#endsAt - performance.now());
    if (leftMs <= 0) throw new DeliveryError(`${action}: no answer within ${timeoutMs} ms`, { sent: "no" });
    const { headers, body } = content(question);
    try {
      const all = { method, headers, ...(body === undefined ? {} : { body }), signal };
      const send = this.#options.exchange ?? exchange;
      return this.#read(await send(url, { ...all, timeoutMs: leftMs, maxBytes }), sends);
    } catch (error) {
      throw sends ? withoutAnswer(action, error, secrets) : unsent(withoutAnswer(action, error, secrets));
    }
  }

  /**
   * Throws unless the status is a success (2xx). `words` are the service's own, `advice` says what to do about a refusal that
   * lasts, by status. Success is not always success: then the adapter reads the body.
   */
  expectSuccess(answer: Answer, words: string | undefined, advice: Readonly<Record<number, string>> = {}): void {
    const { status } = answer;
    if (status >= 200 && status < 300) return;
    if (status >= 500 || status === 408) throw this.unclear(answer, words);
    if (status === 429) throw this.later(answer, words);
    if (status < 400) throw this.#redirected(answer);
    if (words === undefined) throw this.#notTheService(answer);
    throw this.refused(answer, words, advice[status]);
  }

  /** The service will never take it. `advice` says what to do next. */
  refused(answer: Answer, words: string | undefined, advice?: string): DeliveryError {
    return permanent(`${this.#said(answer, words)}${advice === undefined ? "" : `; ${advice}`}`);
  }

  /** The service did not take it now; `waitMs` when it named a time other than by `Retry-After`. */
  later(answer: Answer, words: string | undefined, waitMs: number | undefined = answer.waitMs): DeliveryError {
    return new DeliveryError(this.#said(answer, words), { sent: "no", retryAfterMs: waitMs });
  }

  /** Nobody knows whether the service took it. */
  unclear(answer: Answer, words?: string): DeliveryError {
    const error = new DeliveryError(`${this.#said(answer, words)}, so it may have arrived all the same`, {
      sent: "maybe",
      retryAfterMs: answer.waitMs,
    });
    return answer.sends ? error : unsent(error);
  }

  /** A success without what a success of the service holds: something between answered, and may have passed it on. */
  notAnAnswer(answer: Answer): DeliveryError {
    const { action, service } = this.#options;
    const said = `${action} for certain: the answer ${answer.status} is not one of ${service}`;
    return answer.sends ? new DeliveryError(said, { sent: "maybe" }) : new DeliveryError(said, { sent: "no" });
  }

  #redirected({ status }: Answer): DeliveryError {
    const { action, addressSetting = "base_url" } = this.#options;
    return permanent(
      `${action}: the answer was ${status}, a redirect, which is never followed; correct "${addressSetting}"`,
    );
  }

  #notTheService({ status }: Answer): DeliveryError {
    const { action, service, addressSetting = "base_url" } = this.#options;
    const how = `check "${addressSetting}" and the network's proxy`;
    return permanent(`${action}: the answer ${status} is not one of ${service}; ${how}`);
  }

  #said({ status }: Answer, words: string | undefined): string {
    const { action, secrets } = this.#options;
    const own = words === undefined ? "" : ` ${quote(redact(words, secrets))}`;
    return `${action}: it answered ${status}${own}`;
  }

  #read({ status, headers, text }: HttpResponse, sends: boolean): Answer {
    const now = (this.#options.now ?? Date.now)();
    const waitMs = retryAfterMs(headers.get("retry-after"), now);
    return { status, headers, text, json: objectIn(text), waitMs, sends };
  }
}

function content({ headers = {}, json, form }: Question): { headers: Record<string, string>; body?: string } {
  if (json !== undefined) {
    return { headers: { "content-type": "application/json; charset=utf-8", ...headers }, body: JSON.stringify(json) };
  }
  if (form === undefined) return { headers: { ...headers } };
  const type = "application/x-www-form-urlencoded;charset=UTF-8";
  return { headers: { "content-type": type, ...headers }, body: new URLSearchParams(form).toString() };
}

/** The same failure of an exchange that sends nothing. */
export function unsent<Value>(error: Value): Value | DeliveryError {
  if (!(error instanceof DeliveryError) || error.sent === "no") return error;
  const { message, retryAfterMs, cause } = error;
  return new DeliveryError(message.replace(/, so it may have arrived all the same$/, ""), {
    sent: "no",
    retryAfterMs,
    cause,
  });
}

/** The JSON object that a text is, or `undefined` when it is none. */
export function objectIn(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Text as it is, a number by its digits, anything else not at all: ids come as either. */
export function textOf(value: Json | undefined): string | undefined {
  if (typeof value === "string") return value === "" ? undefined : value;
  if (typeof value === "number") return String(value);
  return isRaw(value) ? value.rawJSON : undefined;
}

/** A number, whether it was kept with all its digits or not. */
export function numberOf(value: Json | undefined): number | undefined {
  const number = Number(textOf(value) ?? Number.NaN);
  return Number.isFinite(number) ? number : undefined;
}

function isRaw(value: Json | undefined): value is { readonly rawJSON: string } {
  return typeof value === "object" && value !== null && "rawJSON" in value && typeof value.rawJSON === "string";
}
