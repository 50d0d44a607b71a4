import type { RejectionCode } from "../core/errors.ts";
import type { Reply } from "../gateway/pipeline.ts";

/** A reply as it goes over the wire: the body is sent as JSON. */
export interface WireReply {
  readonly status: number;
  readonly body: Readonly<Record<string, string>>;
}

/** What a refused sender is told (contract section 3). Does not compile while a code has no reply. */
const rejections: Readonly<Record<RejectionCode, readonly [status: number, error: string]>> = {
  bad_request: [400, "Bad request"],
  malformed_json: [400, "Malformed JSON body"],
  not_an_object: [400, "Body must be a JSON object"],
  invalid_signature: [401, "Invalid signature"],
  route_disabled: [403, "Route disabled"],
  unknown_route: [404, "Unknown route"],
  method_not_allowed: [405, "Method not allowed"],
  payload_too_large: [413, "Payload too large"],
  unsupported_encoding: [415, "Unsupported content encoding"],
  rate_limited: [429, "Rate limit exceeded"],
  unavailable: [503, "Temporarily unavailable"],
};

const statuses: Readonly<Record<Reply["status"], number>> = {
  accepted: 202,
  ignored: 200,
  duplicate: 200,
  delivered: 200,
  error: 502,
};

/** Trouble below HTTP requests, by the code Node gives it (nodejs.org/api/errors.html). */
const wireTrouble: Readonly<Record<string, readonly [status: number, error: string]>> = {
  HPE_HEADER_OVERFLOW: [431, "Request header fields too large"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request timeout"],
};

export const healthReply: WireReply = { status: 200, body: { status: "ok", platform: "webhook" } };
export const internalError: WireReply = { status: 500, body: { error: "Internal error" } };
export const expectationFailed: WireReply = { status: 417, body: { error: "Expectation failed" } };

export function rejectionReply(code: RejectionCode): WireReply {
  const [status, error] = rejections[code];
  return { status, body: { error } };
}

export function wireReply(reply: Reply): WireReply {
  return { status: statuses[reply.status], body: reply };
}

/** The reply to what could not be read as a request at all. */
export function troubleReply(code: string | undefined): WireReply {
  const [status, error] = (code && wireTrouble[code]) || rejections.bad_request;
  return { status, body: { error } };
}
