import assert from "node:assert/strict";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { exchange, HttpFailure, type HttpRequest, retryAfterMs } from "../../src/lib/http.ts";

async function listen(t: TestContext, server: Server): Promise<string> {
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
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

function serve(t: TestContext, listener: RequestListener): Promise<string> {
  return listen(t, createHttpServer(listener));
}

/** A server that does something to each connection as soon as bytes come. */
function serveRaw(t: TestContext, onData: (socket: Socket) => void): Promise<string> {
  return listen(
    t,
    createServer((socket) => socket.once("data", () => onData(socket))),
  );
}

const plain: HttpRequest = { method: "POST", body: "hello", timeoutMs: 10_000, maxBytes: 1_000 };

async function failureOf(url: string, request: Partial<HttpRequest> = {}): Promise<HttpFailure> {
  try {
    await exchange(url, { ...plain, ...request });
  } catch (error) {
    assert.ok(error instanceof HttpFailure, `${error}`);
    return error;
  }
  throw new assert.AssertionError({ message: "there was an answer" });
}

describe("an exchange", () => {
  test("sends method, headers and body, and gives status, headers and text", async (t) => {
    const seen: unknown[] = [];
    const url = await serve(t, async (request, response) => {
      seen.push(request.method, request.headers["x-a"], Buffer.concat(await request.toArray()).toString());
      response.writeHead(207, { "x-b": "2" }).end("Zürich");
    });
    const answer = await exchange(url, { ...plain, method: "PUT", headers: { "x-a": "1" }, body: "東京" });
    assert.deepEqual(seen, ["PUT", "1", "東京"]);
    assert.deepEqual([answer.status, answer.headers.get("x-b"), answer.text], [207, "2", "Zürich"]);
  });

  test("takes every status for an answer", async (t) => {
    const url = await serve(t, (request, response) => {
      response.writeHead(Number(request.url?.slice(1))).end();
    });
    for (const status of [204, 400, 404, 429, 500, 503]) {
      assert.equal((await exchange(`${url}${status}`, plain)).status, status);
    }
  });

  test("does not follow a redirect: it could lead the secret elsewhere", async (t) => {
    let requests = 0;
    const url = await serve(t, (_request, response) => {
      requests += 1;
      response.writeHead(302, { location: "/elsewhere" }).end("moved");
    });
    const { status, text, headers } = await exchange(url, plain);
    assert.deepEqual([status, text, headers.get("location"), requests], [302, "moved", "/elsewhere", 1]);
  });

  test("takes an answer as long as it may be", async (t) => {
    const url = await serve(t, (_request, response) => void response.end("x".repeat(1_000)));
    assert.equal((await exchange(url, plain)).text.length, 1_000);
  });
});

describe("an exchange that fails", () => {
  test("because the answer is too long may have been carried out, and reads no further", async (t) => {
    let written = 0;
    const url = await serve(t, (_request, response) => {
      const more = () => {
        written += 1;
        if (written < 10_000 && !response.destroyed) response.write("x".repeat(10_000), more);
      };
      more();
    });
    const { sent, message } = await failureOf(url);
    assert.deepEqual([sent, message], ["maybe", "the answer is longer than 1000 bytes"]);
    assert.ok(written < 10_000);
  });

  test("because a small answer unpacks to a huge one is ended too", async (t) => {
    const { gzipSync } = await import("node:zlib");
    const packed = gzipSync(Buffer.alloc(5_000_000));
    const url = await serve(
      t,
      (_request, response) => void response.writeHead(200, { "content-encoding": "gzip" }).end(packed),
    );
    assert.match((await failureOf(url)).message, /longer than 1000 bytes/);
  });

  test("because no answer comes in time may have been carried out", async (t) => {
    const url = await serve(t, () => {});
    const { sent, message } = await failureOf(url, { timeoutMs: 200 });
    assert.deepEqual([sent, message], ["maybe", "no answer within 200 ms"]);
  });

  test("because the answer does not end in time may have been carried out", async (t) => {
    const url = await serve(t, (_request, response) => void response.write("beginning"));
    const { sent, message } = await failureOf(url, { timeoutMs: 300 });
    assert.deepEqual([sent, message], ["maybe", "no answer within 300 ms"]);
  });

  test("because nobody listens was certainly not sent", async (t) => {
    const server = createServer();
    const url = await listen(t, server);
    await new Promise((resolve) => server.close(resolve));
    const { sent, message } = await failureOf(url);
    assert.equal(sent, "no");
    assert.match(message, /ECONNREFUSED/);
  });

  test("because there is no such name was certainly not sent", async () => {
    assert.equal((await failureOf("http://no-such-host.invalid/")).sent, "no");
  });

  test("because the address is none was certainly not sent", async () => {
    assert.equal((await failureOf("http://")).sent, "no");
  });

  const cuts: [what: string, cut: (socket: Socket) => void][] = [
    ["the connection is reset before the answer", (socket) => socket.resetAndDestroy()],
    ["the connection is closed before the answer", (socket) => socket.end()],
    [
      "the connection is reset in the middle of the answer",
      (socket) => {
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf", () => socket.resetAndDestroy());
      },
    ],
    [
      "the connection is closed in the middle of the answer",
      (socket) => {
        socket.end("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
      },
    ],
    ["the answer is not HTTP", (socket) => void socket.end("SSH-2.0-OpenSSH_9.2\r\n")],
  ];
  for (const [what, cut] of cuts) {
    test(`because ${what} may have been carried out`, async (t) => {
      assert.equal((await failureOf(await serveRaw(t, cut))).sent, "maybe");
    });
  }

  test("because the caller stops ends at once", async (t) => {
    const controller = new AbortController();
    const url = await serve(t, () => controller.abort());
    const startedAt = performance.now();
    assert.equal((await failureOf(url, { signal: controller.signal })).sent, "maybe");
    assert.ok(performance.now() - startedAt < 5_000);
  });
});

describe("Retry-After", () => {
  const now = Date.UTC(2026, 0, 15, 12);
  const cases: [value: string | null | undefined, ms: number | undefined][] = [
    ["7", 7_000],
    ["0", 0],
    ["0.5", 500],
    [" 7 ", 7_000],
    ["Thu, 15 Jan 2026 12:00:30 GMT", 30_000],
    ["Thu, 15 Jan 2026 11:00:00 GMT", 0],
    ["-1", undefined],
    ["soon", undefined],
    ["Infinity", undefined],
    ["", undefined],
    [null, undefined],
    [undefined, undefined],
  ];
  for (const [value, ms] of cases) {
    test(`${JSON.stringify(value)} means ${ms} milliseconds`, () => assert.equal(retryAfterMs(value, now), ms));
  }
});
