import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { type Doorway, openDoorway, webhook } from "../tools/doorway.ts";
import { signed } from "../tools/scene.ts";
import { until } from "../tools/wait.ts";
import { head, type Wire } from "../tools/wire.ts";

const routes = { ci: { prompt: "Look at {what}" } };
const small = { routes, webhook: { max_body_bytes: 10_000, rate_limit: 1000 } };
const megabyte = Buffer.alloc(1_048_576, "x");

/** Writes as a sender does that looks for an answer only when all is sent: everything, as fast as the other side takes it. */
async function writeAll(wire: Wire, piece: Buffer, times: number): Promise<void> {
  for (let turn = 0; turn < times && !wire.isClosed(); turn += 1) {
    if (!wire.socket.write(piece))
      await Promise.race([once(wire.socket, "drain").catch(() => wire.closed), wire.closed]);
  }
}

function chunk(text: string | Buffer): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
}

async function isHealthy(door: Doorway): Promise<boolean> {
  return (await door.exchange(head("GET /health", { connection: "close" }))).status === 200;
}

describe("a body that is too large", () => {
  test("is refused from the head alone, and the connection closed", async (t) => {
    const door = await openDoorway(t, small);
    const wire = await door.connect();
    wire.write(head("POST /webhooks/ci", { "content-length": "99999999999999" }));
    const { status, headers } = await wire.answer();
    assert.deepEqual([status, headers.connection], [413, "close"]);
    await wire.closed;
  });

  test("is refused so that a sender which sends all of it first still reads the answer", async (t) => {
    const door = await openDoorway(t, small);
    const wire = await door.connect();
    wire.write(head("POST /webhooks/ci", { "content-length": String(3 * megabyte.length) }));
    await writeAll(wire, megabyte, 3);
    assert.equal((await wire.answer()).status, 413);
    await wire.closed;
  });

  test("is not read without end: the connection is closed on a sender that never stops", async (t) => {
    const door = await openDoorway(t, small);
    const wire = await door.connect({ stubborn: true });
    wire.write(head("POST /webhooks/ci", { "content-length": "99999999999999" }));
    await writeAll(wire, megabyte, 1_000);
    await wire.closed;
    assert.ok(wire.socket.bytesWritten < 200 * megabyte.length, `${wire.socket.bytesWritten} bytes were taken`);
    assert.equal(await isHealthy(door), true);
  });

  test("in chunks is refused while it is read, and the connection closed", async (t) => {
    const door = await openDoorway(t, small);
    const wire = await door.connect();
    wire.write(head("POST /webhooks/ci", { "transfer-encoding": "chunked" }));
    for (let turn = 0; turn < 11; turn += 1) wire.write(chunk("x".repeat(1000)));
    const { status, headers } = await wire.answer();
    assert.deepEqual([status, headers.connection], [413, "close"]);
    wire.write(chunk("more"), "0\r\n\r\n");
    await wire.closed;
    assert.equal(wire.rest(), "", "one answer, not two");
  });

  test("in chunks of which one is broken after the refusal gets one answer", async (t) => {
    const door = await openDoorway(t, small);
    const wire = await door.connect();
    wire.write(head("POST /webhooks/ci", { "transfer-encoding": "chunked" }), chunk("x".repeat(10_001)));
    assert.equal((await wire.answer()).status, 413);
    wire.write("this is no chunk\r\n");
    await wire.closed;
    assert.equal(wire.rest(), "");
  });

  test("exactly as long as the limit is taken", async (t) => {
    const door = await openDoorway(t, small);
    const text = JSON.stringify({ what: "x".repeat(10_000 - 11) });
    assert.equal(text.length, 10_000);
    assert.equal((await door.post({ body: text })).status, 202);
  });
});

describe("a body in chunks", () => {
  test("is taken, whatever its pieces", async (t) => {
    const door = await openDoorway(t, small);
    const { text, headers } = signed({ body: { what: "Zürich" } });
    const wire = await door.connect();
    wire.write(head("POST /webhooks/ci", { "transfer-encoding": "chunked", ...headers }));
    for (const byte of Buffer.from(text)) wire.write(chunk(Buffer.from([byte])));
    wire.write("0\r\n\r\n");
    assert.equal((await wire.answer()).status, 202);
    assert.match((await door.events())[0]?.jobs[0]?.plan ?? "", /Zürich/);
  });
});

describe("a sender that waits for 100 Continue", () => {
  test("gets it, and then the answer to what it sent", async (t) => {
    const door = await openDoorway(t, small);
    const wire = await door.connect();
    const [top, body] = webhook({ headers: { expect: "100-continue" } });
    wire.write(top);
    assert.equal((await wire.answer()).status, 100);
    wire.write(body);
    assert.equal((await wire.answer()).status, 202);
  });

  const refused: [what: string, status: number, path: string, headers: Record<string, string>][] = [
    ["its body is too large", 413, "/webhooks/ci", { "content-length": "10001" }],
    ["its route is not known", 404, "/webhooks/nope", { "content-length": "10" }],
    ["its body is compressed", 415, "/webhooks/ci", { "content-length": "10", "content-encoding": "gzip" }],
  ];
  for (const [what, status, path, headers] of refused) {
    test(`is refused without it when ${what}`, async (t) => {
      const door = await openDoorway(t, small);
      const wire = await door.connect();
      wire.write(head(`POST ${path}`, { expect: "100-continue", ...headers }));
      assert.equal((await wire.answer()).status, status);
    });
  }
});

describe("what is no proper request", () => {
  const both = { "content-length": "4", "transfer-encoding": "chunked" };
  const cases: [what: string, text: string, status: number][] = [
    ["two lengths", `${head("POST /webhooks/ci", { "content-length": ["2", "3"] })}{}`, 400],
    ["two equal lengths", `${head("POST /webhooks/ci", { "content-length": ["2", "2"] })}{}`, 400],
    ["a length and chunks", `${head("POST /webhooks/ci", both)}0\r\n\r\n`, 400],
    ["a negative length", `${head("POST /webhooks/ci", { "content-length": "-1" })}{}`, 400],
    ["a length that is no number", `${head("POST /webhooks/ci", { "content-length": "1e3" })}{}`, 400],
    ["a broken chunk", `${head("POST /webhooks/ci", { "transfer-encoding": "chunked" })}zz\r\n{}\r\n`, 400],
    ["chunks under another coding", `${head("POST /webhooks/ci", { "transfer-encoding": "chunked, gzip" })}{}`, 400],
    ["no HTTP at all", "hello, is anybody there?\r\n\r\n", 400],
    ["TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400],
    ["no host", "GET /health HTTP/1.1\r\n\r\n", 400],
    ["a header without a name", "GET /health HTTP/1.1\r\nhost: a\r\n: x\r\n\r\n", 400],
    ["a NUL in a header", "GET /health HTTP/1.1\r\nhost: a\r\nx: a\0b\r\n\r\n", 400],
    ["a line that ends in a bare LF", "GET /health HTTP/1.1\nhost: a\n\n", 400],
    ["a head that is too long", head("GET /health", { "x-long": "x".repeat(20_000) }), 431],
    ["very many headers", head("GET /health", { x: Array.from({ length: 4000 }, () => "y") }), 431],
    ["an address that is too long", head(`GET /${"x".repeat(20_000)}`), 431],
  ];
  for (const [what, text, status] of cases) {
    test(`(${what}) is answered ${status} in JSON, the connection closed, and nothing crashes`, async (t) => {
      const door = await openDoorway(t, small);
      const wire = await door.connect();
      wire.write(Buffer.from(text, "latin1"));
      const answer = await wire.answer();
      assert.equal(answer.status, status, answer.text);
      assert.equal(typeof JSON.parse(answer.text || "{}").error, answer.text ? "string" : "undefined");
      await wire.closed;
      assert.equal(await isHealthy(door), true);
      assert.deepEqual(await door.events(), []);
    });
  }

  test("goes on for megabytes and its sender still reads the answer", async (t) => {
    const door = await openDoorway(t, small);
    const wire = await door.connect();
    wire.write("GET /health HTTP/1.1\r\nx: ");
    await writeAll(wire, megabyte, 3);
    assert.equal((await wire.answer()).status, 431);
    await wire.closed;
    assert.equal(wire.rest(), "", "one answer, not two");
  });

  test("does not get its answer mixed up with the answer to the request before it", async (t) => {
    const direct = { ci: { prompt: "Hi", deliver: "telegram", deliver_only: true } };
    const door = await openDoorway(t, { ...small, routes: direct });
    door.telegram.mode = "hang";
    const wire = await door.connect();
    wire.write(...webhook({ id: "42" }));
    await until("the direct delivery", () => door.telegram.tries === 1);
    wire.write("no request\r\n\r\n");
    await wire.closed;
    assert.equal(wire.rest(), "", "an answer came that the sender would take for that to its webhook");
  });
});

describe("a connection that is too slow", () => {
  const quick = { headersTimeout: 300, requestTimeout: 600, connectionsCheckingInterval: 50 };

  test("with its head is cut", async (t) => {
    const door = await openDoorway(t, small, quick);
    const wire = await door.connect();
    wire.write("POST /webhooks/ci HTTP/1.1\r\nhost: a\r\n");
    assert.equal((await wire.answer()).status, 408);
    await wire.closed;
  });

  test("with its body is cut, and leaves no trace", async (t) => {
    const door = await openDoorway(t, small, quick);
    const [top, body] = webhook();
    const wire = await door.connect();
    wire.write(top, body.slice(0, 5));
    assert.equal((await wire.answer()).status, 408);
    await wire.closed;
    assert.deepEqual([...door.outage.asked.keys()], []);
  });

  test("is cut off for good even when the sender does not hang up itself", async (t) => {
    const door = await openDoorway(t, small, quick);
    const wire = await door.connect({ stubborn: true });
    wire.write("POST /webhooks/ci HTTP/1.1\r\nhost: a\r\n");
    await wire.closed;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    wire.socket.on("error", resolve);
    // Nobody is there any more: what is written fails.
    const writing = setInterval(() => wire.socket.write("x-a: b\r\n"), 50);
    t.after(() => clearInterval(writing));
    await promise;
  });

  test("and three hundred more of them do not keep others from being answered, and are all cut", async (t) => {
    const door = await openDoorway(t, small, { ...quick, headersTimeout: 2000, requestTimeout: 3000 });
    const wires = await Promise.all(Array.from({ length: 300 }, () => door.connect()));
    for (const [index, wire] of wires.entries()) {
      const [top] = webhook();
      wire.write(index % 2 === 0 ? "POST /webhooks/ci HTTP/1.1\r\n" : top);
    }
    const startedAt = performance.now();
    assert.equal(await isHealthy(door), true);
    assert.equal((await door.post()).status, 202);
    assert.ok(performance.now() - startedAt < 3000);
    assert.ok(
      wires.some((wire) => !wire.isClosed()),
      "they were answered only when the others were gone",
    );
    await Promise.all(wires.map(({ closed }) => closed));
  });
});

describe("a sender that hangs up", () => {
  for (const how of ["end", "resetAndDestroy"] as const) {
    test(`in the middle of its body (${how}) leaves no trace and costs no budget`, async (t) => {
      const door = await openDoorway(t, { ...small, webhook: { rate_limit: 1 } });
      const [top, body] = webhook();
      const wire = await door.connect();
      wire.write(top, body.slice(0, 5));
      // The half is there when a request that came after it is answered.
      assert.equal(await isHealthy(door), true);
      wire.socket[how]();
      await until("the line in the log", () => door.lines.some(({ msg }) => msg === "The sender hung up"));
      assert.deepEqual([...door.outage.asked.keys()], []);
      assert.deepEqual(
        door.lines.filter(({ level }) => level !== "debug"),
        [],
      );
      assert.equal((await door.post()).status, 202);
    });
  }

  test("before its body is looked at is noticed", async (t) => {
    const door = await openDoorway(t, small);
    const { promise, resolve } = Promise.withResolvers<void>();
    const find = door.routes.find.bind(door.routes);
    let asked = 0;
    door.routes.find = async (name) => {
      asked += 1;
      await promise;
      return find(name);
    };
    const wire = await door.connect();
    wire.write(webhook()[0]);
    await until("the route is looked up", () => asked === 1);
    wire.socket.resetAndDestroy();
    assert.equal(await isHealthy(door), true);
    resolve();
    await until("the line in the log", () => door.lines.some(({ msg }) => msg === "The sender hung up"));
  });

  test("before it has its answer gets its event done all the same", async (t) => {
    const door = await openDoorway(t, small);
    const { promise, resolve } = Promise.withResolvers<void>();
    door.outage.delays.set("accept", promise);
    const wire = await door.connect();
    wire.write(...webhook({ id: "42" }));
    await until("the accept", () => door.outage.asked.get("accept") === 1);
    wire.socket.resetAndDestroy();
    await isHealthy(door);
    resolve();
    await until("the event", async () => (await door.events()).length === 1);
    door.outage.delays.clear();
    assert.equal((await door.post({ id: "42" })).status, 200);
    assert.equal(await isHealthy(door), true);
  });
});

describe("the server", () => {
  test("answers many at the same time, each with its own", async (t) => {
    const door = await openDoorway(t, small);
    const ids = Array.from({ length: 100 }, (_, index) => `id-${index}`);
    const answers = await Promise.all(ids.map((id) => door.post({ id })));
    assert.deepEqual(
      answers.map(({ status }) => status),
      ids.map(() => 202),
    );
    assert.deepEqual(
      answers.map(({ text }) => (JSON.parse(text) as { delivery_id: string }).delivery_id),
      ids,
    );
    assert.equal((await door.events()).length, 100);
  });

  test("listens on IPv6", async (t) => {
    const door = await openDoorway(t, { ...small, webhook: { host: "::1" } });
    const wire = await door.connect({ host: "::1" });
    wire.write(...webhook());
    assert.equal((await wire.answer()).status, 202);
    assert.equal(door.lines.at(-1)?.ip, "::1");
  });

  test("says in words why it cannot listen", async (t) => {
    const door = await openDoorway(t, small);
    const taken = { ...small, webhook: { port: door.port } };
    await assert.rejects(openDoorway(t, taken), {
      name: "UserError",
      message: /^Port \d+ on 127\.0\.0\.1 is in use; /,
    });
    await assert.rejects(openDoorway(t, { ...small, webhook: { host: "192.0.2.1" } }), {
      name: "UserError",
      message: /EADDRNOTAVAIL.*"host"/,
    });
  });

  test("that is told to stop lets the request under way end, and does not wait for idle connections", async (t) => {
    const door = await openDoorway(t, small);
    const { promise, resolve } = Promise.withResolvers<void>();
    door.outage.delays.set("accept", promise);
    const idle = await door.connect();
    idle.write(head("GET /health"));
    await idle.answer();
    const busy = await door.connect();
    busy.write(...webhook());
    await until("the accept", () => door.outage.asked.get("accept") === 1);
    const startedAt = performance.now();
    const stopping = door.listening.close(30_000);
    await idle.closed;
    await assert.rejects(door.connect(), "it takes no new connections");
    resolve();
    assert.equal((await busy.answer()).status, 202);
    await stopping;
    assert.ok(performance.now() - startedAt < 5000, "it waited for a connection on which nothing came any more");
  });

  test("that is told to stop cuts what takes longer than it may", async (t) => {
    const door = await openDoorway(t, small);
    const wire = await door.connect();
    const [top] = webhook();
    wire.write(top);
    assert.equal(await isHealthy(door), true);
    await door.listening.close(50);
    await wire.closed;
  });

  test("that is told to stop does not wait for connections on which nothing ever came", async (t) => {
    const door = await openDoorway(t, small);
    const silent = await door.connect();
    const started = await door.connect();
    started.write("POST /webh");
    assert.equal(await isHealthy(door), true);
    const startedAt = performance.now();
    await door.listening.close(30_000);
    await Promise.all([silent.closed, started.closed]);
    assert.ok(performance.now() - startedAt < 5000);
  });
});
