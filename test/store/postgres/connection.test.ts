import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { StoreUnavailable } from "../../../src/core/errors.ts";
import { openPostgres } from "../../../src/store/postgres.ts";

/** A message of PostgreSQL's protocol, version 3: its type, its length, its content. */
function message(type: string, ...content: (number | string)[]): Buffer {
  const parts = content.map((one) => (typeof one === "string" ? Buffer.from(`${one}\0`) : int32(one)));
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

const welcome = message("R", 0);
const ready = Buffer.concat([Buffer.from("Z"), int32(5), Buffer.from("I")]);
const goodbye = message("E", "SFATAL", "VFATAL", "C57P01", "Mterminating connection due to administrator command", "");

/** A server that lets everyone in and ends the connection in the same breath. */
async function startRestless(t: TestContext): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(Buffer.concat([welcome, ready, goodbye])));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `postgres://postern@127.0.0.1:${(server.address() as AddressInfo).port}/postgres`;
}

test("a connection that the server ends in the moment in which it was made fails the call, not the process", async (t) => {
  const url = await startRestless(t);
  await assert.rejects(openPostgres({ url, schema: "postern", readOnly: false }), StoreUnavailable);
});
