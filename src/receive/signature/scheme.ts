import type { HeaderMap } from "../../core/types.ts";

/** What a scheme looks at. */
export interface SignedRequest {
  readonly headers: HeaderMap;
  /** The raw bytes, before any parsing. */
  readonly body: Buffer;
  /** Never blank. */
  readonly secret: string;
  /** Unix time in milliseconds. */
  readonly nowMs: number;
}

/** One way senders prove who they are. One file each, listed in `registry.ts`; `verify.ts` reads this data. */
export interface Scheme {
  /** Equal to the export's name. */
  readonly name: string;
  /** Lowest first: the first scheme whose header is present decides alone. */
  readonly order: number;
  /** Lower-case names of the header that carries the signature, in every dialect. */
  readonly headers: readonly string[];
  /** `undefined` when the request is genuine, else the reason, which holds neither secrets nor expected values. */
  verify(request: SignedRequest): string | undefined;
}

/** Most seconds between a signed timestamp and our clock, either way (specification of Standard Webhooks; contract section 4). */
export const toleranceSeconds = 300;
