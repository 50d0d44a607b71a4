import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { useGateway } from "./gateway.ts";

const gateway = useGateway(() => ({ routes: { plain: {} } }));

test('9 "No version numbers, compatibility rules or version headers are given": a request needs none', async () => {
  assert.equal((await gateway.post("plain")).status, 202);
  assert.equal((await gateway.post("../v1/webhooks/plain")).status, 404);
});

test('9 "No version headers": a reply says nothing of the program or its version', async () => {
  const answers = [
    await gateway.post("plain"),
    await gateway.post("plain", { secret: null }),
    await gateway.post("nope"),
  ];
  const known = ["connection", "content-length", "content-type", "date", "keep-alive"];
  for (const { headers } of answers) {
    assert.deepEqual(
      [...headers.keys()].filter((name) => !known.includes(name)),
      [],
    );
  }
});

test("9 the program tells its own version", async (t) => {
  const { version } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  const { code, out } = await gateway.command(t, "--version");
  assert.deepEqual([code, out.trim()], [0, version]);
});
