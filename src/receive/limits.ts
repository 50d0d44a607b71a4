import { Rejection } from "../core/errors.ts";
import { truncate } from "../core/text.ts";
import type { HeaderMap } from "../core/types.ts";

/**
 * Refuses a request that declares more than `maxBytes`, before any of its body is read (specification section 8). A body
 * without a declared length passes here and is counted while it is read.
 * @throws Rejection `payload_too_large`, or `bad_request` when the length is not a number.
 */
export function checkDeclaredSize(headers: HeaderMap, maxBytes: number): void {
  for (const value of headers.get("content-length") ?? []) {
    if (!/^\d+$/.test(value)) throw new Rejection("bad_request", "Content-Length is not a number");
    if (Number(value) > maxBytes) {
      throw new Rejection(
        "payload_too_large",
        `Content-Length is ${truncate(value, 20)}, more than the ${maxBytes} bytes allowed`,
      );
    }
  }
}

/**
 * Refuses compressed bodies: signatures are over the bytes that were sent, and a small body may unpack to a huge one.
 * @throws Rejection `unsupported_encoding`
 */
export function checkEncoding(headers: HeaderMap): void {
  const codings = (headers.get("content-encoding") ?? []).flatMap((value) => value.split(","));
  if (codings.every((coding) => ["", "identity"].includes(coding.trim().toLowerCase()))) return;
  throw new Rejection("unsupported_encoding", "Content-Encoding is not identity, send the body uncompressed");
}
