import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Doorway, openDoorway, webhook } from "../tools/doorway.ts";
import { globalSecret, type LogLine, type RequestParts } from "../tools/scene.ts";
import { head, type WireAnswer } from "../tools/wire.ts";

const options = {
  routes: {
    ci: { prompt: "Look at {what}", events: ["push"] },
    picky: { filters: [{ field: "action", equals: "opened" }] },
    direct: { prompt: "Hello", deliver: "telegram", deliver_only: true },
    off: { enabled: false },
  },
  webhook: { max_body_bytes: 10_000, rate_limit: 2 },
};

type Send = (door: Doorway) => Promise<WireAnswer>;

function posted(parts: RequestParts & { readonly path?: string }): Send {
  return (door) => door.post({ event: "push", id: "42", ...parts });
}

/** Lines about requests. */
function requestLines(door: Doorway): readonly LogLine[] {
  return door.lines.filter(({ status }) => status !== undefined);
}

const cases: [what: string, level: string, message: RegExp, status: number, send: Send][] = [
  ["accepted", "info", /^Event accepted$/, 202, posted({})],
  ["ignored because of its type", "debug", /^Event ignored/, 200, posted({ event: "ping" })],
  ["declined by a filter", "info", /^Event ignored$/, 200, posted({ route: "picky" })],
  ["delivered", "info", /^Event delivered$/, 200, posted({ route: "direct" })],
  [
    "not delivered",
    "warn",
    /^Delivery failed$/,
    502,
    (door) => {
      door.telegram.mode = "refused";
      return door.post({ route: "direct" });
    },
  ],
  ["without a signature", "warn", /^Invalid signature$/, 401, posted({ secret: null })],
  ["with a bad signature", "warn", /^Invalid signature$/, 401, posted({ secret: "another" })],
  ["no JSON", "info", /^Request refused$/, 400, posted({ body: "{" })],
  ["for a route that is not there", "info", /^Request refused$/, 404, posted({ route: "nope" })],
  ["for a disabled route", "info", /^Request refused$/, 403, posted({ route: "off" })],
  ["too large", "info", /^Request refused$/, 413, posted({ body: { text: "x".repeat(10_000) } })],
  ["in another method", "info", /^Request refused$/, 405, (door) => door.exchange(head("GET /webhooks/ci"))],
  [
    "not kept",
    "error",
    /^Temporarily unavailable$/,
    503,
    (door) => {
      door.outage.failing.add("accept");
      return door.post({ event: "push" });
    },
  ],
  [
    "the victim of a bug",
    "error",
    /should not/,
    500,
    (door) => {
      door.outage.hooks.set("accept", () => {
        throw new Error("a bug");
      });
      return door.post({ event: "push" });
    },
  ],
];

describe("a request has one line in the log", () => {
  for (const [what, level, message, status, send] of cases) {
    test(`when it is ${what}: at level ${level}, with its status, time and sender`, async (t) => {
      const door = await openDoorway(t, options);
      assert.equal((await send(door)).status, status);
      const lines = requestLines(door);
      assert.equal(lines.length, 1, JSON.stringify(lines));
      const [line] = lines;
      assert.deepEqual([line?.level, line?.status, line?.ip], [level, status, "127.0.0.1"]);
      assert.match(line?.msg ?? "", message);
      assert.ok(typeof line?.ms === "number" && line.ms >= 0);
      assert.match(String(line?.path), /^\/webhooks\//);
    });
  }

  test("that names the event and leads to its record", async (t) => {
    const door = await openDoorway(t, options);
    const [, body] = webhook({ event: "push" });
    await door.post({ event: "push", id: "42" });
    const line = requestLines(door)[0]!;
    const [event] = await door.events();
    const { route, event: type, delivery, id, bytes, method, path } = line;
    assert.deepEqual(
      { route, type, delivery, id, bytes, method, path },
      {
        route: "ci",
        type: "push",
        delivery: "42",
        id: event?.id,
        bytes: body.length,
        method: "POST",
        path: "/webhooks/ci",
      },
    );
  });

  test("that says why a signature was not taken", async (t) => {
    const door = await openDoorway(t, options);
    await door.post({ secret: null });
    await door.post({ secret: "another" });
    const reasons = requestLines(door).map(({ reason }) => String(reason));
    assert.match(reasons[0] ?? "", /No signature header/);
    assert.match(reasons[1] ?? "", /the digest differs/);
  });

  test("except for failed verifications beyond the limit, which are not worth a line each", async (t) => {
    const door = await openDoorway(t, options);
    for (let turn = 0; turn < 10; turn += 1) await door.post({ secret: "another" });
    const levels = requestLines(door).map(({ level }) => level);
    assert.deepEqual(levels, ["warn", "warn", ...Array.from({ length: 8 }, () => "debug")]);
  });

  test("and a probe of its health has none", async (t) => {
    const door = await openDoorway(t, options);
    assert.equal((await door.exchange(head("GET /health"))).status, 200);
    assert.deepEqual(requestLines(door), []);
  });
});

test("no line holds a secret, a payload, a signature or a token of the address", async (t) => {
  const door = await openDoorway(t, options);
  const body = { what: "payload-marker", action: "payload-marker" };
  const parts = { event: "push", body, path: "/webhooks/ci?token=query-marker" };
  const [top] = webhook(parts);
  const signature = /x-webhook-signature: (\w+)/.exec(top)?.[1] ?? "";
  assert.equal(signature.length, 64);
  await door.post(parts);
  await door.post({ ...parts, secret: "another" });
  await door.post({ ...parts, headers: { authorization: "Bearer header-marker" } });
  door.clock.advance(60_000);
  await door.post({ ...parts, body: '{"payload-marker"' });
  await door.post({ body, route: "picky" });
  door.telegram.upcoming.push("refused");
  await door.post({ body, route: "direct" });
  await door.post({ body, route: "direct", path: "/webhooks/direct?x=query-marker" });
  door.clock.advance(60_000);
  door.outage.hooks.set("accept", () => {
    throw new Error(`a bug that holds ${globalSecret}`);
  });
  await door.post(parts);
  const text = door.lines.map((line) => JSON.stringify(line)).join("\n");
  assert.equal(requestLines(door).length, 8);
  for (const marker of [
    globalSecret,
    "payload-marker",
    "query-marker",
    "header-marker",
    signature,
    door.telegram.token,
  ]) {
    assert.ok(!text.includes(marker), `"${marker}" is in the log`);
  }
});
