import assert from "node:assert/strict";
import { test } from "node:test";
import { useGateway } from "./gateway.ts";

const gateway = useGateway(() => ({ routes: { health: {} } }));

test('4.1 "Returns a JSON object with `status` = `ok` and `platform` = `webhook`"', async () => {
  const response = await fetch(`${gateway.url}/health`);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "application/json");
  assert.deepEqual(await response.json(), { status: "ok", platform: "webhook" });
});

test("4.1 `GET /health` needs no secret, ignores a query, and HEAD is answered without a body", async () => {
  assert.equal((await fetch(`${gateway.url}/health?probe=1`)).status, 200);
  const response = await fetch(`${gateway.url}/health`, { method: "HEAD" });
  assert.deepEqual([response.status, await response.text()], [200, ""]);
});

test("4.1 `GET /health`: other methods and paths are something else", async () => {
  const response = await fetch(`${gateway.url}/health`, { method: "POST", body: "{}" });
  assert.deepEqual([response.status, response.headers.get("allow")], [405, "GET, HEAD"]);
  assert.equal((await fetch(`${gateway.url}/health/`)).status, 404);
  assert.equal(await gateway.verdict("health"), "accepted");
});
