import assert from "node:assert/strict";
import { test } from "node:test";
import { makeHome } from "../tools/home.ts";
import { postern } from "../tools/program.ts";
import { globalSecret, openGateway, refusal, useGateway } from "./gateway.ts";

const gateway = useGateway(() => ({
  routes: { one: {}, other: {}, own: { secret: "a-secret-of-its-own" } },
  // As they are when nothing is said of them.
  extra: { rate_limit: undefined, max_body_bytes: undefined },
}));

const where = "platforms: { webhook:";

test('2.1 "Location: `<home>/config.yaml`, under `platforms.webhook`"', async () => {
  assert.match(await gateway.home.read("config.yaml"), /"platforms":\{"webhook":/);
  assert.equal(await gateway.verdict("own", { secret: "a-secret-of-its-own" }), "accepted");
});

test('2.1 `enabled`: "Enables the adapter", false by default', async (t) => {
  for (const config of [`${where} { extra: { secret: abc-secret } } }`, `${where} { enabled: false } }`]) {
    const { code, err } = await refusal(t, { config });
    assert.equal(code, 1);
    assert.match(err, /The webhook gateway is not enabled/);
  }
  assert.equal((await fetch(`${gateway.url}/health`)).status, 200);
});

test('2.1 `extra.host`: "Bind address"', () => assert.equal(gateway.process.host, "127.0.0.1"));

test('2.1 `extra.host`: default `0.0.0.0`, `extra.port`: "Listen port", default 8644', async (t) => {
  const home = await makeHome(t, { "config.yaml": `${where} { enabled: true } }` });
  const { out } = await postern(t, ["config", "check", "--json"], { env: { POSTERN_HOME: home.folder } });
  const { host, port } = JSON.parse(out) as Record<string, unknown>;
  assert.deepEqual([host, port], ["0.0.0.0", 8644]);
});

test('2.1 `extra.secret`: "Optional global fallback secret"', async () => {
  assert.equal(await gateway.verdict("other", { secret: globalSecret }), "accepted");
  assert.equal((await gateway.post("own", { secret: globalSecret })).status, 401);
});

test("2.1 `extra.secret`: empty by default, so that a route without its own is refused", async (t) => {
  for (const secret of ["", '{ secret: "", ']) {
    const { code, err } = await refusal(t, {
      config: `${where} { enabled: true, extra: ${secret || "{"} host: 127.0.0.1, port: 0, routes: { a: {} } } } }`,
    });
    assert.equal(code, 78);
    assert.match(err, /The route has no secret/);
  }
});

test('2.1 `extra.rate_limit`: "Requests per minute, per route. It is not a global cap", default 30', async (t) => {
  const fresh = await openGateway(t, () => ({ routes: { one: {}, other: {} }, extra: { rate_limit: undefined } }));
  const statuses = await Promise.all(Array.from({ length: 31 }, async () => (await fresh.post("one")).status));
  assert.deepEqual(statuses.toSorted(), [...Array(30).fill(202), 429]);
  assert.equal((await fresh.post("other")).status, 202);
});

test('2.1 `extra.max_body_bytes`: "Maximum request body, in bytes", default 1048576', async () => {
  const ofLength = (length: number) => JSON.stringify({ text: "x".repeat(length - 11) });
  assert.equal(ofLength(1_048_576).length, 1_048_576);
  assert.equal((await gateway.post("other", { body: ofLength(1_048_576) })).status, 202);
  assert.equal((await gateway.post("other", { body: ofLength(1_048_577) })).status, 413);
});

test('2.1 `extra.routes`: "Static routes", none by default', async (t) => {
  assert.equal(await gateway.verdict("other"), "accepted");
  const empty = await openGateway(t, () => ({ routes: undefined }));
  assert.equal((await empty.post("other")).status, 404);
});

const kinds: [key: string, value: object, complaint: RegExp][] = [
  ["enabled", { enabled: "maybe" }, /platforms\.webhook\.enabled: Expected true or false/],
  ["extra.host", { extra: { host: ["a"] } }, /platforms\.webhook\.extra\.host: Expected text/],
  ["extra.port", { extra: { port: 65_536 } }, /extra\.port: Expected a whole number from 0 to 65535/],
  ["extra.secret", { extra: { secret: { a: "b" } } }, /platforms\.webhook\.extra\.secret: Expected text/],
  ["extra.rate_limit", { extra: { rate_limit: 1.5 } }, /extra\.rate_limit: Expected a whole number/],
  ["extra.max_body_bytes", { extra: { max_body_bytes: "1MB" } }, /extra\.max_body_bytes: Expected a whole number/],
  ["extra.routes", { extra: { routes: ["a"] } }, /extra\.routes: Expected a mapping of route names to routes/],
  ["extra.rate_limt", { extra: { rate_limt: 1 } }, /extra\.rate_limt: Unknown key .*; did you mean "rate_limit"/],
];

test("2.1 keys of another type than the table's refuse to start, all of them at once, with line and column", async (t) => {
  const extra = Object.assign({}, ...kinds.map(([, value]) => ("extra" in value ? value.extra : {})));
  const config = JSON.stringify({ platforms: { webhook: { enabled: "maybe", extra } } }, null, 2);
  const { code, err } = await refusal(t, { config });
  assert.equal(code, 78);
  for (const [key, , complaint] of kinds) {
    await t.test(`2.1 \`${key}\``, () => {
      assert.match(err, complaint);
      assert.match(err, new RegExp(`config\\.yaml:\\d+:\\d+: platforms\\.webhook\\.${key.replace(".", "\\.")}`));
    });
  }
});

test('2.1 "An example in one place nests `routes` directly under a top-level `webhooks` key"', async (t) => {
  const old = await openGateway(t, () => ({ sections: { webhooks: { routes: { old: { prompt: "Old {x}" } } } } }));
  assert.equal(await old.promptOf("old", { body: { x: 1 } }), "Old 1");
  const warning = await old.logged({ level: "warn" });
  assert.match(String(warning.msg), /"webhooks\.routes" is deprecated; move it to "platforms\.webhook\.extra\.routes"/);
});

test('2.1 "The documented location is `platforms.webhook.extra.routes`": it wins, and `platforms.webhook.routes` works too', async (t) => {
  const both = await openGateway(t, () => ({
    routes: { twice: { prompt: "documented" } },
    sections: { webhooks: { routes: { twice: { prompt: "old" } } } },
  }));
  assert.equal(await both.promptOf("twice"), "documented");
  const config = `${where} { enabled: true, host: 127.0.0.1, port: 0, secret: abc-secret, routes: { flat: {} } } }`;
  const home = await makeHome(t, { "config.yaml": config });
  const { out } = await postern(t, ["config", "check", "--json"], { env: { POSTERN_HOME: home.folder } });
  assert.deepEqual((JSON.parse(out) as { routes: string[] }).routes, ["flat"]);
});
