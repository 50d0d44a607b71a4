import type { IncomingMessage } from "node:http";

/**
 * Why a proxy in front of us may read the end, or the host, of a request otherwise than we do, or `undefined`: what we take for
 * the next request could then be a part of this one (RFC 9112 sections 3.2, 6.1 and 11.2). Node refuses the other forms itself.
 */
export function ambiguityOf({ headers, rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "chunked") return "Transfer-Encoding is not just chunked";
  if (coding !== undefined && httpVersion !== "1.1") return `Transfer-Encoding has no meaning in HTTP/${httpVersion}`;
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === "host");
  return hosts.length > 1 ? `Host is there ${hosts.length} times` : undefined;
}
