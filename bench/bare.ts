// The least that any webhook receiver does: read, HMAC, parse, answer. What Postern does beyond this is its cost.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { secret } from "./load.ts";

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const bytes = Buffer.concat(chunks);
    const expected = createHmac("sha256", secret).update(bytes).digest();
    const given = Buffer.from(String(request.headers["x-hub-signature-256"]).slice(7), "hex");
    const isRight = given.length === expected.length && timingSafeEqual(given, expected);
    const { action } = JSON.parse(bytes.toString("utf8")) as { action: string };
    const text = JSON.stringify({ status: isRight ? "accepted" : "refused", action });
    response.writeHead(isRight ? 202 : 401, { "content-type": "application/json", "content-length": text.length });
    response.end(text);
  });
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
