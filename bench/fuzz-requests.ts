import { createHmac } from "node:crypto";
import { maxBodyBytes, type SignedRoute, secrets } from "./fuzz-home.ts";
import { hostileForm, hostilePayload } from "./fuzz-payloads.ts";
import { makeRandom, type Random } from "./fuzz-random.ts";
import type { Delivery } from "./fuzz-wire.ts";

/** One request of the run, with what may come back. */
export interface FuzzRequest extends Delivery {
  readonly family: string;
  /** Statuses that each answer may have; anything below 500 when not set. */
  readonly expected?: readonly number[];
  /** All statuses, in rising order: exactly these. */
  readonly exactly?: readonly number[];
  /** The delivery id that the ledger holds afterwards. */
  readonly kept?: string;
}

/** Ids of deliveries that must never be in the ledger begin so. */
export const forbidden = ["forged-", "smuggled-"] as const;

type Header = readonly [name: string, value: string];
type Family = (random: Random, index: number) => Omit<FuzzRequest, "family">;

const routes = Object.keys(secrets) as SignedRoute[];

/** Families of requests and how often they come, out of a hundred. */
const families: readonly (readonly [share: number, name: string, make: Family])[] = [
  [12, "valid event", validEvent],
  [1, "valid event sent twice", repeatedEvent],
  [2, "health check", healthCheck],
  [28, "hostile body", hostileBody],
  [6, "hostile form", formBody],
  [13, "forged signature", forged],
  [8, "path trick", pathTrick],
  [4, "method", oddMethod],
  [5, "content type or encoding", oddContent],
  [5, "odd headers", oddHeaders],
  [5, "broken framing", brokenFraming],
  [3, "smuggling", smuggling],
  [2, "too large", tooLarge],
  [1, "expectation", expectation],
  [3, "chunked or slow", inPieces],
  [2, "aborted", aborted],
];

/** The request of this index: the same for the same seed, but for what signs the time. */
export function makeRequest(seed: number, index: number): FuzzRequest {
  const random = makeRandom(seed, index);
  let left = random.below(100);
  for (const [share, family, make] of families) {
    if (left < share) return { family, ...make(random, index) };
    left -= share;
  }
  throw new Error("The shares of the families are less than a hundred");
}

/** Requests that never end, for connections of their own. */
export function stalledRequest(index: number): Buffer {
  const whole = framed("POST /webhooks/agent", [["content-length", "100"]], "");
  return whole.subarray(0, [5, 40, whole.length - 2, whole.length][index % 4]);
}

function framed(line: string, headers: readonly Header[], body: Buffer | string, version = "HTTP/1.1"): Buffer {
  const head = [`${line} ${version}`, "host: localhost", ...headers.map(([name, value]) => `${name}: ${value}`)];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`, "latin1"), Buffer.from(body)]);
}

/** A well-framed request, in one piece on a connection that may be used again. */
function clean(line: string, headers: readonly Header[], body: Buffer): Delivery {
  const length: Header = ["content-length", String(body.length)];
  const pieces = [framed(line, [length, ...headers], body)];
  return { pieces, isClean: true, ending: "answer", answers: 1, isHead: line.startsWith("HEAD ") };
}

/** Something that is not, on a connection of its own. */
function raw(bytes: Buffer | string, ending: Delivery["ending"] = "end"): Delivery {
  const pieces = [typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes];
  return { pieces, isClean: false, ending, answers: 1, isHead: false };
}

function hmac(secret: string | Buffer, ...parts: (string | Buffer)[]): Buffer {
  const digest = createHmac("sha256", secret);
  for (const part of parts) digest.update(part);
  return digest.digest();
}

const schemes: readonly ((route: SignedRoute, body: Buffer, id: string) => Header[])[] = [
  (route, body) => [["x-hub-signature-256", `sha256=${hmac(secrets[route], body).toString("hex")}`]],
  (route) => [["x-gitlab-token", secrets[route]]],
  (route, body) => [["x-webhook-signature", hmac(secrets[route], body).toString("hex")]],
  (route, body, id) => standard("webhook", route, body, id),
  (route, body, id) => standard("svix", route, body, id),
  (route, body) => {
    const time = String(Math.floor(Date.now() / 1000));
    const digest = hmac(secrets[route], `${time}.`, body).toString("hex");
    return [
      ["x-webhook-timestamp", time],
      ["x-webhook-signature-v2", digest],
    ];
  },
];

function standard(family: string, route: SignedRoute, body: Buffer, id: string): Header[] {
  const time = String(Math.floor(Date.now() / 1000));
  const secret = secrets[route];
  const key = secret.startsWith("whsec_") ? Buffer.from(secret.slice(6), "base64") : secret;
  return [
    [`${family}-id`, id],
    [`${family}-timestamp`, time],
    [`${family}-signature`, `v1,${hmac(key, `${id}.${time}.`, body).toString("base64")}`],
  ];
}

function signature(random: Random, route: SignedRoute, body: Buffer, id: string): Header[] {
  return [...random.pick(schemes)(route, body, id), ["x-request-id", id]];
}

const json: Header = ["content-type", "application/json"];

function validEvent(random: Random, index: number): Omit<FuzzRequest, "family"> {
  const id = `valid-${index}`;
  const route = random.pick([...routes, "open"] as const);
  const passes = random.percent(70);
  const title = `fix: the ${random.below(1000)}th bug`;
  const event = {
    ...{ action: passes ? "opened" : "closed", title, user: { login: "ada" }, list: [{ x: index }] },
    ...{ labels: ["urgent"], draft: false, number: 14, pass: passes, message: "hello" },
  };
  const body = Buffer.from(JSON.stringify(event));
  const signed = route === "open" ? [["x-request-id", id] as Header] : signature(random, route, body, id);
  const headers: Header[] = [json, ["x-github-event", "pull_request"], ["user-agent", "fuzz"], ...signed];
  const isIgnored = !passes && (route === "review" || route === "open");
  const expected = [route === "direct" || isIgnored ? 200 : 202];
  return { ...clean(`POST /webhooks/${route}`, headers, body), expected, kept: id };
}

/** One id twice on one connection, without waiting: one effect, and both are answered. */
function repeatedEvent(random: Random, index: number): Omit<FuzzRequest, "family"> {
  const id = `valid-${index}`;
  const body = Buffer.from('{"title":"again"}');
  const one = clean("POST /webhooks/agent", [json, ...signature(random, "agent", body, id)], body).pieces[0]!;
  return { ...raw(Buffer.concat([one, one]), "answer"), answers: 2, exactly: [200, 202], kept: id };
}

function healthCheck(random: Random): Omit<FuzzRequest, "family"> {
  const method = random.pick(["GET", "HEAD"]);
  const path = random.pick(["/health", "/health?x=%00", "http://localhost/health"]);
  return { ...clean(`${method} ${path}`, [], Buffer.alloc(0)), expected: [200] };
}

function hostileBody(random: Random, index: number): Omit<FuzzRequest, "family"> {
  const body = hostilePayload(random);
  const route = random.pick([...routes, "open"] as const);
  const signed = route === "open" ? [] : signature(random, route, body, `hostile-${index}`);
  const event: Header[] = random.percent(50) ? [["x-github-event", random.pick(["pull_request", "push", "\xff"])]] : [];
  const size = body.length > maxBodyBytes ? [413] : [200, 202, 400];
  return { ...clean(`POST /webhooks/${route}`, [json, ...event, ...signed], body), expected: size };
}

function formBody(random: Random, index: number): Omit<FuzzRequest, "family"> {
  const body = hostileForm(random);
  const route = random.pick(routes);
  const type: Header = ["content-type", random.pick(formTypes)];
  const signed = signature(random, route, body, `form-${index}`);
  const expected = body.length > maxBodyBytes ? [413] : [200, 202, 400];
  return { ...clean(`POST /webhooks/${route}`, [type, ...signed], body), expected };
}

const formTypes = [
  "application/x-www-form-urlencoded",
  "application/x-www-form-urlencoded; charset=utf-8",
  "APPLICATION/X-WWW-FORM-URLENCODED;boundary=x",
];

/** Changes of right signature headers after which they must not be taken. */
const forgeries: readonly ((headers: Header[], random: Random) => readonly Header[])[] = [
  () => [],
  (headers) => headers.map(([name]) => [name, ""]),
  (headers) => headers.map(([name, value]) => [name, name.includes("timestamp") ? value : `${value}0`]),
  (headers) => headers.map(([name, value]) => [name, name.includes("timestamp") ? value : value.slice(0, -6)]),
  (headers, random) => headers.map(([name]) => [name, random.bytes(40).toString("hex")]),
  (headers) => [...headers, ...headers],
  (headers) => headers.map(([name, value]) => [name, `${value}, ${value}`]),
  (headers) => [["x-hub-signature-256", "sha256="], ...headers],
  (headers) => [
    ["x-hub-signature-256", `sha256=${"0".repeat(64)}`],
    ...headers.filter(([name]) => !name.includes("hub")),
  ],
  (headers) => headers.map(([name]) => [name, "INSECURE_NO_AUTH"]),
  (headers) => headers.map(([name]) => [name, "undefined"]),
  (headers, random) =>
    headers.map(([name]) => [name, random.pick(["sha256=é", "v1,", "\xff\xfe", "[object Object]", "0"])]),
];

function forged(random: Random, index: number): Omit<FuzzRequest, "family"> {
  const id = `forged-${index}`;
  const route = random.pick(routes);
  const body = random.percent(50) ? Buffer.from('{"title":"forged","action":"opened"}') : hostilePayload(random);
  if (body.length > maxBodyBytes) return hostileBody(random, index);
  const right = random.pick(schemes)(route, body, id);
  const other = random.pick(schemes)(random.pick(routes.filter((name) => name !== route)), body, id);
  const headers = random.percent(20) ? other : random.pick(forgeries)(right, random);
  const all: Header[] = [json, ["x-request-id", id], ["x-github-event", "pull_request"], ...headers];
  return { ...clean(`POST /webhooks/${route}`, all, body), expected: [401] };
}

const lostPaths = [
  ...["/webhooks/../agent", "/webhooks/%2e%2e", "/webhooks/..", "/webhooks/.", "/webhooks/%00", "/webhooks/agent%00"],
  ...["/webhooks/constructor", "/webhooks/__proto__", "/webhooks/toString", "/webhooks/hasOwnProperty", "/webhooks/"],
  ...[
    "/webhooks",
    "/",
    "//webhooks/agent",
    "/webhooks//agent",
    "/webhooks/agent/",
    "/webhooks/Agent",
    "/webhooks/agent;x=1",
  ],
  ...[
    "/webhooks/%61gent/",
    "/webhooks/%ff",
    "/webhooks/%",
    "/webhooks/%zz",
    "/webhooks/agent%2f..%2fopen",
    "/webhooks/agent%20",
  ],
  ...[
    "/webhooks/a\\..\\b",
    "/health/",
    "/HEALTH",
    "/health%00",
    "/metrics",
    "/ready",
    "/admin",
    "/.env",
    "/config.yaml",
  ],
  ...["/webhooks/..%2f..%2f.env", "/webhooks/%c0%ae%c0%ae", "/webhooks/webhook_subscriptions.json"],
  ...["http://evil.example/webhooks/nope", "http://x/", "https://localhost/webhooks/../agent"],
];

function pathTrick(random: Random, index: number): Omit<FuzzRequest, "family"> {
  const body = Buffer.from('{"title":"x"}');
  const headers = [json, ...signature(random, "agent", body, `forged-${index}`)];
  const long = `/webhooks/${random.pick(["a", "%2e", "../", "%c3%a9"]).repeat(random.below(1500))}x`;
  const path = random.percent(10) ? long : random.pick(lostPaths);
  if (random.percent(5)) return { ...clean("POST /webhooks/off", headers, body), expected: [403] };
  return { ...clean(`POST ${path}`, headers, body), expected: [404] };
}

function oddMethod(random: Random, index: number): Omit<FuzzRequest, "family"> {
  const known = ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "MKCOL", "PURGE", "SEARCH"];
  const body = Buffer.from('{"title":"x"}');
  const signed = signature(random, "agent", body, `forged-${index}`);
  if (random.percent(70)) {
    const path = random.pick(["/webhooks/agent", "/webhooks/nope", "/webhooks/open"]);
    return { ...clean(`${random.pick(known)} ${path}`, signed, body), expected: [405] };
  }
  const line = random.pick([
    ...[
      "CONNECT localhost:443",
      "FOO /webhooks/agent",
      "post /webhooks/agent",
      "POST",
      "POST  /webhooks/agent",
      "\0 /",
    ],
    ...["* *", "OPTIONS *", "PRI *", "POST /webhooks/agent HTTP/1.1 x", "GET /health\thttp", "POST /webhooks/\xe9"],
  ]);
  return raw(framed(line, signed, body, random.pick(["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9.9", "http/1.1", ""])));
}

function oddContent(random: Random, index: number): Omit<FuzzRequest, "family"> {
  const body = Buffer.from('{"title":"fix: x","action":"opened"}');
  const signed = signature(random, "agent", body, `content-${index}`);
  if (random.percent(50)) {
    const coding = random.pick(["gzip", "br", "deflate", "identity, gzip", "x-gzip", "*", "zstd", "gzip\t"]);
    return { ...clean("POST /webhooks/agent", [json, ["content-encoding", coding], ...signed], body), expected: [415] };
  }
  const type = random.pick([
    ...[
      "text/plain",
      "application/xml",
      "multipart/form-data; boundary=x",
      "",
      ";",
      "\xff",
      "application/json;charset=utf-16",
    ],
    ...["a".repeat(5000), "application/json, text/plain", "application/json\t; x"],
  ]);
  const headers: Header[] = [
    ["content-type", type],
    ["content-encoding", random.pick(["", "identity", "Identity, "])],
  ];
  return { ...clean("POST /webhooks/agent", [...headers, ...signed], body), expected: [202] };
}

function oddHeaders(random: Random, index: number): Omit<FuzzRequest, "family"> {
  const body = Buffer.from('{"title":"fix: x","action":"opened","user":{"login":"ada"}}');
  const signed = signature(random, "review", body, `headers-${index}`);
  const odd: readonly Header[] = random.pick<readonly Header[]>([
    Array.from({ length: 300 }, (_, at): Header => [`x-${at}`, "y"]),
    [["x-long", "x".repeat(12_000)]],
    [["x-github-event", "x".repeat(8000)]],
    [
      ["x-github-event", "pull_request"],
      ["x-github-event", "push"],
    ],
    [["x-github-delivery", "d".repeat(8000)]],
    [["x-github-delivery", `${index}\t\xff\x80`]],
    [
      ["x-gitlab-event", "Merge Request Hook"],
      ["x-github-event", " "],
    ],
    [
      ["__proto__", "x"],
      ["constructor", "y"],
      ["hasownproperty", "z"],
    ],
    [
      ["connection", "upgrade"],
      ["upgrade", "websocket"],
    ],
    [
      ["connection", "keep-alive, close, x"],
      ["keep-alive", "timeout=999999"],
    ],
    [
      ["forwarded", "for=127.0.0.1"],
      ["x-forwarded-for", "127.0.0.1"],
      ["x-original-url", "/webhooks/open"],
    ],
    [
      ["x-http-method-override", "DELETE"],
      ["cookie", "a=b; __proto__=1"],
      ["authorization", "Basic AAAA"],
    ],
    [
      ["te", "trailers"],
      ["trailer", "x-hub-signature-256"],
      ["range", "bytes=0-1"],
      ["if-none-match", "*"],
    ],
    [["user-agent", "\x80\xff".repeat(500)]],
  ]);
  return { ...clean("POST /webhooks/review", [json, ...signed, ...odd], body), expected: [200, 202] };
}

function brokenFraming(random: Random, index: number): Omit<FuzzRequest, "family"> {
  const body = '{"title":"x"}';
  const signed = signature(random, "agent", Buffer.from(body), `forged-${index}`);
  const post = (headers: readonly Header[], text = body, version?: string) =>
    framed("POST /webhooks/agent", [...headers, ...signed], text, version);
  const length = (value: string): Header => ["content-length", value];
  const chunked = (text: string) => post([["transfer-encoding", "chunked"]], text);
  const bytes = random.pick<() => Buffer | string>([
    () => post([length("13"), length("14")]),
    () => post([length("13, 13")]),
    () => post([length("-13")]),
    () => post([length("+13")]),
    () => post([length("0x0d")]),
    () => post([length("13 13")]),
    () => post([length("99999999999999999999999999")]),
    () => post([length("13.0")]),
    () => post([length("")]),
    () => post([length("20")]),
    () => chunked("zz\r\n{}\r\n0\r\n\r\n"),
    () => chunked(`ffffffffffffffffff\r\n${body}\r\n0\r\n\r\n`),
    () => chunked(`-1\r\n${body}\r\n0\r\n\r\n`),
    () => chunked(`d\n${body}\n0\n\n`),
    () => chunked(`d\r\n${body}0\r\n\r\n`),
    () => chunked(`d;${"x".repeat(20_000)}\r\n${body}\r\n0\r\n\r\n`),
    () => chunked(`c\r\n${body}\r\n0\r\n\r\n`),
    () => chunked(`d\r\n${body}\r\n`),
    () => post([["transfer-encoding", "chunked, chunked"]], `d\r\n${body}\r\n0\r\n\r\n`),
    () => post([["transfer-encoding", "gzip"]], body),
    () => post([["transfer-encoding", "chunked"]], `d\r\n${body}\r\n0\r\n\r\n`, "HTTP/1.0"),
    () => post([["host", "other"], length("13")]),
    () =>
      post(
        [
          ["Host", "localhost"],
          ["transfer-encoding", "chunked"],
        ],
        `d\r\n${body}\r\n0\r\n\r\n`,
      ),
    () => post([["transfer-encoding", "xchunked"]], body),
    () => post([["a b", "c"], length("13")]),
    () => post([["", "c"], length("13")]),
    () => post([["x", "a\0b"], length("13")]),
    () => post([["x", "a\nb: c"], length("13")]),
    () => post([["x", "a\r b"], length("13")]),
    () => post([["x\u00a0", "y"], length("13")]),
    () => post([[" x", "y"], length("13")]),
    () => post([["x-long", "x".repeat(20_000)], length("13")]),
    () => post(Array.from({ length: 3000 }, (): Header => ["x", "y"])),
    () =>
      post([length("13")])
        .toString("latin1")
        .replaceAll("\r\n", "\n"),
    () =>
      post([length("13")])
        .toString("latin1")
        .replaceAll("\r\n", "\r"),
    () =>
      post([length("13")])
        .toString("latin1")
        .replace("host: localhost\r\n", ""),
    () => `\r\n\r\n\r\n${post([length("20")]).toString("latin1")}`,
    () => "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    () => random.bytes(1 + random.below(2000)),
    () => mutilated(post([length("13")]), random),
    () => mutilated(post([length("13")]), random),
  ])();
  return raw(bytes, random.percent(90) ? "end" : "reset");
}

/** Never so small a change that a right request is left: its head is broken in several places. */
function mutilated(bytes: Buffer, random: Random): Buffer {
  const copy = Buffer.from(bytes);
  const line = copy.indexOf("\r\n");
  for (let turn = 0; turn < 5; turn += 1) copy[random.below(copy.length)] = random.below(256);
  copy[random.below(line)] = random.pick([0, 0x0a, 0x0d, 0xff]);
  return copy;
}

/** A request inside another: were the two of us and a proxy not of one mind, the inner one would be carried out. */
function smuggling(random: Random, index: number): Omit<FuzzRequest, "family"> {
  const inner = framed(
    "POST /webhooks/open",
    [json, ["x-request-id", `smuggled-${index}`], ["content-length", "13"]],
    '{"pass":true}',
  );
  const text = inner.toString("latin1");
  const size = text.length.toString(16);
  const both: Header[] = [
    ["content-length", "4"],
    ["transfer-encoding", "chunked"],
  ];
  const post = (headers: readonly Header[], body: string) => framed("POST /webhooks/agent", headers, body);
  const bytes = random.pick<() => Buffer>([
    () => post(both, `0\r\n\r\n${text}`),
    () => post([both[1]!, both[0]!], `0\r\n\r\n${text}`),
    () =>
      post(
        [
          ["transfer-encoding", "identity"],
          ["content-length", String(text.length)],
        ],
        text,
      ),
    () =>
      post(
        [
          ["transfer-encoding", " chunked "],
          ["content-length", "6"],
        ],
        `0\r\n\r\n${text}`,
      ),
    () =>
      post(
        [
          ["transfer-encoding", "\x0bchunked"],
          ["content-length", "6"],
        ],
        `0\r\n\r\n${text}`,
      ),
    () =>
      post(
        [
          ["transfer_encoding", "chunked"],
          ["content-length", String(text.length + 5)],
        ],
        `0\r\n\r\n${text}`,
      ),
    () =>
      post(
        [
          ["Transfer-Encoding", "x"],
          ["Transfer-Encoding", "chunked"],
        ],
        `0\r\n\r\n${text}`,
      ),
    () =>
      post(
        [
          ["content-length", "0"],
          ["content-length", String(text.length)],
        ],
        text,
      ),
    () => post([["content-length", String(text.length)]], text),
    () => post([["transfer-encoding", "chunked"]], `${size};x=\n${text}\r\n0\r\n\r\n`),
    () => post([["transfer-encoding", "chunked"]], `0${size}\r\n${text}\r\n0\r\n\r\n`),
    () =>
      post(
        [
          ["x", `a\n\n${text}`],
          ["content-length", "0"],
        ],
        "",
      ),
    () => framed("GET /health", [["content-length", String(text.length)]], text),
    () => framed("HEAD /health", [["content-length", String(text.length)]], text),
  ])();
  return raw(bytes);
}

function tooLarge(random: Random): Omit<FuzzRequest, "family"> {
  if (random.percent(50)) {
    const declared = random.pick(["65537", "1000000", "99999999999999"]);
    const bytes = framed("POST /webhooks/agent", [["content-length", declared]], "x".repeat(random.below(3000)));
    return { ...raw(bytes, "answer"), expected: [413] };
  }
  const chunk = "x".repeat(4096);
  const body = `1000\r\n${chunk}\r\n`.repeat(20);
  const bytes = framed("POST /webhooks/agent", [["transfer-encoding", "chunked"]], `${body}0\r\n\r\n`);
  return { ...raw(bytes, "answer"), expected: [413] };
}

function expectation(random: Random, index: number): Omit<FuzzRequest, "family"> {
  const body = Buffer.from('{"title":"x"}');
  const [wish, status] = random.pick([
    ["100-continue", 202],
    ["100-Continue", 202],
    ["x", 417],
    ["100-continue, x", 417],
  ] as const);
  const headers = [json, ["expect", wish] as Header, ...signature(random, "agent", body, `expect-${index}`)];
  const [whole = Buffer.alloc(0)] = clean("POST /webhooks/agent", headers, body).pieces;
  const end = whole.length - body.length;
  return { ...raw(whole, "answer"), pieces: [whole.subarray(0, end), whole.subarray(end)], expected: [status, 202] };
}

/** A right request, a few bytes at a time or in chunks. */
function inPieces(random: Random, index: number): Omit<FuzzRequest, "family"> {
  const id = `valid-${index}`;
  const body = Buffer.from(JSON.stringify({ title: "in pieces 🦊", message: "x".repeat(random.below(300)) }));
  const headers = [json, ...signature(random, "agent", body, id)];
  const [whole = Buffer.alloc(0)] = clean("POST /webhooks/agent", headers, body).pieces;
  const size = 1 + random.below(3);
  const chunks = Array.from({ length: Math.ceil(body.length / size) }, (_, at) =>
    body.subarray(at * size, (at + 1) * size),
  );
  const text = Buffer.concat([
    ...chunks.flatMap((chunk) => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n")]),
    Buffer.from("0\r\n\r\n"),
  ]);
  const bytes = random.percent(50)
    ? whole
    : framed("POST /webhooks/agent", [...headers, ["transfer-encoding", "chunked"]], text);
  const cut = Math.ceil(bytes.length / (2 + random.below(20)));
  const pieces = Array.from({ length: Math.ceil(bytes.length / cut) }, (_, at) =>
    bytes.subarray(at * cut, (at + 1) * cut),
  );
  return { ...raw(bytes, "answer"), pieces, expected: [202], kept: id };
}

/** A sender that goes away in the middle. */
function aborted(random: Random, index: number): Omit<FuzzRequest, "family"> {
  const body = Buffer.from(JSON.stringify({ title: "x".repeat(2000) }));
  const headers = [json, ...signature(random, "agent", body, `forged-${index}`)];
  const [whole = Buffer.alloc(0)] = clean("POST /webhooks/agent", headers, body).pieces;
  return raw(whole.subarray(0, random.below(whole.length)), random.pick(["end", "reset"]));
}
