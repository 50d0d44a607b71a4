import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { startNetwork } from "./network.ts";
import { until } from "./wait.ts";
import { openWire } from "./wire.ts";

/** A server that keeps what it hears and says only what the test has it say, behind a network. */
async function setUp(t: TestContext) {
  const lines: Socket[] = [];
  let heard = "";
  const server = createServer({ allowHalfOpen: true }, (line) => {
    lines.push(line);
    line.on("error", () => {}).setEncoding("latin1");
    line.on("data", (text: string) => {
      heard += text;
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    for (const line of lines) line.destroy();
    server.close();
  });
  const network = await startNetwork((server.address() as AddressInfo).port);
  t.after(() => network.close());
  return {
    network,
    lines,
    heard: () => heard,
    async open() {
      const count = lines.length;
      const wire = await openWire(t, network.port, { stubborn: true });
      return { wire, line: await until("the connection", () => lines[count]) };
    },
  };
}

/** Fulfils when bytes that were sent before would have arrived: later ones went through another such network and back. */
async function aRoundTrip(t: TestContext): Promise<void> {
  const { open, heard } = await setUp(t);
  const { wire, line } = await open();
  wire.write("ping");
  await until("the ping", () => heard() === "ping");
  line.write("pong");
  await until("the pong", () => wire.rest() === "pong");
}

describe("a network", () => {
  test("passes bytes both ways, and the end of each way", async (t) => {
    const { open, heard } = await setUp(t);
    const { wire, line } = await open();
    wire.write("question");
    wire.socket.end();
    await until("the question and its end", () => heard() === "question" && line.readableEnded);
    line.end("answer");
    await wire.closed;
    assert.equal(wire.rest(), "answer");
  });

  test("passes much without mixing it up", async (t) => {
    const { open, heard } = await setUp(t);
    const { wire } = await open();
    const much = Array.from({ length: 200_000 }, (_, index) => `${index}\n`).join("");
    wire.write(much);
    await until("all of it", () => heard().length === much.length);
    assert.ok(heard() === much);
  });

  test("when cut, holds back what is said and the end, and delivers them when mended", async (t) => {
    const { network, open, heard } = await setUp(t);
    const [{ wire, line }, second] = [await open(), await open()];
    network.cut();
    wire.write("to the server");
    line.write("to the client");
    second.line.destroy();
    await aRoundTrip(t);
    assert.deepEqual([heard(), wire.rest(), wire.isClosed(), second.wire.isClosed()], ["", "", false, false]);
    await network.mend();
    await until("what was held back", () => heard() === "to the server" && wire.rest() === "to the client");
    await second.wire.closed;
  });

  test("when cut, lets new connections hang until it is mended", async (t) => {
    const { network, lines, heard } = await setUp(t);
    network.cut();
    network.cut();
    const wire = await openWire(t, network.port);
    wire.write("hello");
    await aRoundTrip(t);
    assert.deepEqual([lines.length, wire.isClosed()], [0, false]);
    await network.mend();
    await until("the greeting", () => heard() === "hello");
  });

  test("when severed, ends connections and refuses new ones until it is mended", async (t) => {
    const { network, open, lines } = await setUp(t);
    const { wire } = await open();
    network.sever();
    await wire.closed;
    await until("the end at the server", () => lines[0]?.readableEnded);
    await assert.rejects(openWire(t, network.port), { code: "ECONNREFUSED" });
    await network.mend();
    await open();
  });

  test("when severed after it was cut, delivers nothing of what was held back", async (t) => {
    const { network, open, heard } = await setUp(t);
    const { wire } = await open();
    network.cut();
    wire.write("lost");
    await aRoundTrip(t);
    network.sever();
    await network.mend();
    const next = await open();
    next.wire.write("kept");
    await until("the next", () => heard() === "kept");
  });

  test("ends a connection whose server cannot be reached or resets it", async (t) => {
    const { network, open } = await setUp(t);
    const { wire, line } = await open();
    line.resetAndDestroy();
    await wire.closed;
    const nowhere = await startNetwork(1);
    t.after(() => nowhere.close());
    await (await openWire(t, nowhere.port)).closed;
    await network.close();
    await once(connect(network.port, "127.0.0.1"), "error");
  });
});
