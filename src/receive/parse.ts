import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { Rejection } from "../core/errors.ts";
import { isObject, parseJson } from "../core/json.ts";
import { header, shortEventName } from "../core/names.ts";
import { truncate } from "../core/text.ts";
import type { Event, HeaderMap, Json, JsonObject } from "../core/types.ts";
import { formFields } from "./form.ts";

/** A verified request, and what an event needs beside it. */
export interface Verified {
  readonly headers: HeaderMap;
  readonly body: Buffer;
  readonly route: string;
  /** Unix time in milliseconds. */
  readonly nowMs: number;
  /** Makes the event's id, see `core/id.ts`. */
  readonly newId: (nowMs: number) => string;
}

/** Where senders put their id of a delivery, first one first (contract section 2). */
const idHeaders = ["x-github-delivery", "x-request-id", "webhook-id", "svix-id", "idempotency-key"];

/** Longer ids are kept as a digest of themselves. */
const longestId = 256;

/** Longer event types are cut: they are a stranger's, and stand in replies and logs. */
const longestType = 256;

/**
 * Makes the event of a verified request: a JSON object, or a form (`application/x-www-form-urlencoded`).
 * @throws Rejection `malformed_json` for text that is not JSON, not UTF-8 or too deep; `not_an_object` for other JSON.
 */
export function parse({ headers, body, route, nowMs, newId }: Verified): Event {
  const payload = readPayload(headers, body);
  const id = newId(nowMs);
  return {
    id,
    route,
    ...eventType(headers, payload),
    deliveryId: deliveryId(headers) ?? `${nowMs}-${id.slice(-12)}`,
    payload,
    headers,
    body,
    receivedAt: nowMs,
  };
}

function readPayload(headers: HeaderMap, body: Buffer): JsonObject {
  if (!isUtf8(body)) throw new Rejection("malformed_json", "The body is not UTF-8");
  const text = body.subarray(0, 3).equals(byteOrderMark) ? body.subarray(3) : body;
  const mediaType = header(headers, "content-type")?.split(";", 1)[0]?.trim().toLowerCase();
  if (mediaType !== "application/x-www-form-urlencoded") return parseObject(text);
  const fields = formFields(text.toString());
  const embedded = Object.hasOwn(fields, "payload") ? fields.payload : undefined;
  // GitHub sends its JSON as one field of a form. A field of that name in any other form is a field like all others.
  if (typeof embedded === "string" && embedded.trimStart().startsWith("{")) return parseObject(embedded);
  return fields;
}

const byteOrderMark = Buffer.from("\ufeff");

function parseObject(source: string | Buffer): JsonObject {
  const value = parseOrReject(source);
  if (!isObject(value)) throw new Rejection("not_an_object", "The body is JSON but not an object");
  return value;
}

function parseOrReject(source: string | Buffer): Json {
  try {
    return parseJson(source);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    // The parser's own message quotes the payload, which has no place in a log; so it is not the cause either.
    const why = cause.message.startsWith("JSON is nested") ? "is nested too deep" : "is not JSON";
    throw new Rejection("malformed_json", `The body ${why}`);
  }
}

function eventType(headers: HeaderMap, payload: JsonObject): Pick<Event, "type" | "typeNames"> {
  const github = header(headers, "x-github-event");
  const gitlab = github === undefined ? header(headers, "x-gitlab-event") : undefined;
  const named = github ?? gitlab ?? word(payload, "event_type") ?? word(payload, "type") ?? "unknown";
  const type = truncate(named, longestType);
  const short = gitlab === undefined ? undefined : shortEventName(type);
  return { type, typeNames: short === undefined ? [type] : [type, short] };
}

function word(payload: JsonObject, key: string): string | undefined {
  const value = Object.hasOwn(payload, key) ? payload[key] : undefined;
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}

function deliveryId(headers: HeaderMap): string | undefined {
  for (const name of idHeaders) {
    const id = header(headers, name);
    if (id === undefined) continue;
    return id.length <= longestId ? id : `sha256:${createHash("sha256").update(id).digest("hex")}`;
  }
  return undefined;
}
