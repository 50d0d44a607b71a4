import assert from "node:assert/strict";
import type { LookupAddress } from "node:dns";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import {
  AddressRefused,
  checkDestination,
  type Guard,
  guardedExchange,
  type Resolve,
} from "../../src/lib/guarded-http.ts";
import { HttpFailure, type HttpRequest } from "../../src/lib/http.ts";

const request: HttpRequest = { method: "POST", body: "hello", timeoutMs: 10_000, maxBytes: 1_000 };
const open: Guard = { allowPrivate: true };

async function listen(t: TestContext, server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const serve = (t: TestContext, listener: RequestListener) => listen(t, createHttpServer(listener));

/** A server that does something to each connection as soon as bytes come. */
const serveRaw = (t: TestContext, onData: (socket: Socket) => void) =>
  listen(
    t,
    createServer((socket) => socket.once("data", () => onData(socket))),
  );

/** A name server that gives these addresses, one list for each question. */
function answering(...answers: (readonly string[])[]): { resolve: Resolve; questions: string[] } {
  const questions: string[] = [];
  const resolve: Resolve = (name, _options, callback) => {
    const addresses = answers[Math.min(questions.push(name), answers.length) - 1] ?? [];
    const family = (address: string) => (address.includes(":") ? 6 : 4);
    queueMicrotask(() =>
      callback(
        null,
        addresses.map((address): LookupAddress => ({ address, family: family(address) })),
      ),
    );
  };
  return { resolve, questions };
}

async function failureOf(exchange: Promise<unknown>): Promise<HttpFailure> {
  const error = await exchange.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof HttpFailure, String(error));
  return error;
}

describe("a guarded exchange", () => {
  test("sends method, headers and body, and gives status, headers and text", async (t) => {
    const seen: unknown[] = [];
    const port = await serve(t, async (request, response) => {
      const body = Buffer.concat(await request.toArray()).toString();
      seen.push(request.method, request.url, request.headers["x-a"], request.headers.host, body);
      response.writeHead(207, { "x-b": "2" }).end("Zürich");
    });
    const { resolve } = answering(["127.0.0.1"]);
    const url = `http://example.test:${port}/a?b=c`;
    const answer = await guardedExchange(
      url,
      { ...request, body: "東京", headers: { "x-a": "1" } },
      { ...open, resolve },
    );
    assert.deepEqual(seen, ["POST", "/a?b=c", "1", `example.test:${port}`, "東京"]);
    assert.deepEqual([answer.status, answer.headers.get("x-b"), answer.text], [207, "2", "Zürich"]);
  });

  test("goes to no private address unless it may, whatever the name", async (t) => {
    let requests = 0;
    const port = await serve(t, (_, response) => {
      requests += 1;
      response.end();
    });
    for (const answer of [["127.0.0.1"], ["::1"], ["10.1.2.3", "fd00::1"], ["::ffff:127.0.0.1"], []]) {
      const guard = { allowPrivate: false, ...answering(answer) };
      const error = await failureOf(guardedExchange(`https://example.com:${port}/`, request, guard));
      assert.ok(error instanceof AddressRefused, error.message);
      assert.equal(error.sent, "no");
      assert.match(error.message, /^"example\.com" stands for .*not a public address$/);
    }
    assert.equal(requests, 0);
  });

  test("goes to no metadata, link-local or reserved address even when it may go to private ones", async () => {
    for (const address of ["169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "100.100.100.200"]) {
      const guard = { ...open, ...answering([address]) };
      assert.ok((await failureOf(guardedExchange("http://example.com/", request, guard))) instanceof AddressRefused);
    }
  });

  test("asks the name server once, so that no second answer can differ", async (t) => {
    const port = await serve(t, (_, response) => response.end("here"));
    const names = answering(["127.0.0.1"], ["169.254.169.254"]);
    const answer = await guardedExchange(`http://example.com:${port}/`, request, { ...open, ...names });
    assert.equal(answer.text, "here");
    assert.deepEqual(names.questions, ["example.com"]);
  });

  test("leaves out of several addresses those that it may not go to", async (t) => {
    let requests = 0;
    const port = await serve(t, (_, response) => {
      requests += 1;
      response.end("here");
    });
    const url = `http://example.com:${port}/`;
    const mixed = answering(["169.254.169.254", "127.0.0.1"]);
    assert.equal((await guardedExchange(url, request, { ...open, ...mixed })).text, "here");
    // The first one reaches this machine, and at the second one nobody listens.
    const tempting = answering(["0.0.0.0", "127.0.0.2"]);
    const error = await failureOf(guardedExchange(url, request, { ...open, ...tempting }));
    assert.deepEqual([error.sent, requests], ["no", 1]);
  });

  const literals = [
    ...["https://127.0.0.1/", "https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://127.1/"],
    ...["https://①②⑦.0.0.1/", "https://127.0.0.1./", "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://0/"],
    ...["https://[::ffff:7f00:1]/", "https://10.0.0.1/", "https://169.254.169.254/latest/", "https://[fd00::1]/"],
    ...[
      "https://[fe80::1]/",
      "https://[::]/",
      "https://192.168.1.1:8443/",
      "https://100.64.0.1/",
      "https://224.0.0.1/",
    ],
  ];
  for (const url of literals) {
    test(`goes to no private address written as ${url}`, async () => {
      const names = answering(["8.8.8.8"]);
      const error = await failureOf(guardedExchange(url, request, { allowPrivate: false, ...names }));
      assert.ok(error instanceof AddressRefused, error.message);
      assert.deepEqual([error.sent, names.questions], ["no", []]);
      await assert.rejects(checkDestination(url, { allowPrivate: false, ...names }), AddressRefused);
    });
  }

  const others = [
    "http://example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "data:,x",
    "https://u:p@example.com/",
  ];
  for (const url of [...others, "//example.com", "example.com", ""]) {
    test(`asks nobody at ${JSON.stringify(url)}`, async () => {
      const names = answering(["8.8.8.8"]);
      const error = await failureOf(guardedExchange(url, request, { allowPrivate: false, ...names }));
      assert.ok(error instanceof AddressRefused, error.message);
      assert.deepEqual(names.questions, []);
    });
  }

  test("follows no redirect", async (t) => {
    const paths: unknown[] = [];
    const port = await serve(t, ({ url }, response) => {
      paths.push(url);
      response.writeHead(307, { location: "/internal" }).end();
    });
    assert.equal((await guardedExchange(`http://127.0.0.1:${port}/a`, request, open)).status, 307);
    assert.deepEqual(paths, ["/a"]);
  });

  test("is sure that nothing was sent when nobody listens, when the name is unknown, and when the handshake fails", async (t) => {
    const port = await serve(t, (_, response) => response.end());
    const unknown: Resolve = (_name, _options, callback) =>
      callback(Object.assign(new Error("getaddrinfo ENOTFOUND example.com"), { code: "ENOTFOUND" }), []);
    for (const exchange of [
      () => guardedExchange("http://127.0.0.1:1/", request, open),
      () => guardedExchange("http://example.com/", request, { ...open, resolve: unknown }),
      () => guardedExchange(`https://127.0.0.1:${port}/`, request, open),
    ]) {
      const error = await failureOf(exchange());
      assert.deepEqual([error.sent, error instanceof AddressRefused], ["no", false], error.message);
    }
  });

  test("does not know what became of a request whose connection ended", async (t) => {
    const closed = await serveRaw(t, (socket) => socket.destroy());
    const switched = await serveRaw(t, (socket) =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
    );
    const strange = await serveRaw(t, (socket) => socket.end("SSH-2.0-OpenSSH\r\n"));
    for (const port of [closed, switched, strange]) {
      assert.equal((await failureOf(guardedExchange(`http://127.0.0.1:${port}/`, request, open))).sent, "maybe");
    }
  });

  test("takes the status for the answer also when the body breaks off or has no end", async (t) => {
    const broken = await serveRaw(t, (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", () => socket.destroy());
    });
    assert.deepEqual((await guardedExchange(`http://127.0.0.1:${broken}/`, request, open)).status, 200);
    const endless = await serve(t, (_, response) => {
      const write = () => response.write("x".repeat(10_000), (error) => error ?? setImmediate(write));
      write();
    });
    const startedAt = performance.now();
    const answer = await guardedExchange(`http://127.0.0.1:${endless}/`, request, open);
    assert.deepEqual([answer.status, answer.text], [200, "x".repeat(1000)]);
    assert.ok(performance.now() - startedAt < request.timeoutMs / 2);
  });

  test("waits no longer than its time, for the head and for the body", async (t) => {
    const silent = await serveRaw(t, () => {});
    const slow = await serveRaw(t, (socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"));
    const hasty = { ...request, timeoutMs: 300 };
    const error = await failureOf(guardedExchange(`http://127.0.0.1:${silent}/`, hasty, open));
    assert.deepEqual([error.message, error.sent], ["no answer within 300 ms", "maybe"]);
    assert.equal((await guardedExchange(`http://127.0.0.1:${slow}/`, hasty, open)).text, "half");
    const never: Resolve = () => {};
    const unresolved = await failureOf(guardedExchange("http://example.com/", hasty, { ...open, resolve: never }));
    assert.deepEqual([unresolved.message, unresolved.sent], ["no answer within 300 ms", "no"]);
  });

  test("ends when it is told to", async (t) => {
    const silent = await serveRaw(t, () => {});
    const signal = AbortSignal.timeout(200);
    const error = await failureOf(guardedExchange(`http://127.0.0.1:${silent}/`, { ...request, signal }, open));
    assert.equal(error.sent, "maybe");
  });
});

test("a destination is judged without a request", async () => {
  await checkDestination("https://example.com/", { allowPrivate: false, ...answering(["8.8.8.8"]) });
  await checkDestination("http://127.0.0.1/", open);
  const inner = checkDestination("https://example.com/", { allowPrivate: false, ...answering(["10.0.0.1"]) });
  await assert.rejects(inner, AddressRefused);
});
