import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";

/** How a body is kept. */
export type Codec = "none" | "zstd";

/** Smaller bodies gain nothing. */
const worthwhileBytes = 512;

const fastest = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** A webhook body shrinks to about a tenth, and so does what has to be written before the sender is answered. */
export function pack(body: Uint8Array): { readonly body: Uint8Array; readonly codec: Codec } {
  if (body.byteLength < worthwhileBytes) return { body, codec: "none" };
  const packed = zstdCompressSync(body, fastest);
  return packed.byteLength < body.byteLength ? { body: packed, codec: "zstd" } : { body, codec: "none" };
}

export function unpack(body: Uint8Array, codec: Codec): Uint8Array {
  return codec === "zstd" ? zstdDecompressSync(body) : body;
}
