import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openPostgres } from "../../src/store/postgres.ts";
import { missing } from "../needs.ts";
import { makeHome } from "../tools/home.ts";
import { sharedPostgres } from "../tools/postgres.ts";
import { aResult } from "../tools/rows.ts";
import { run, runJson } from "./command.ts";
import { arrive, decline, makePast, refused, send, twoRoutes, work } from "./events.ts";

describe("events in a PostgreSQL database", { skip: missing("postgres") }, () => {
  const server = sharedPostgres();

  test("come in from a home's export, are listed, replayed by its subscriptions, cancelled and exported alike", async (t) => {
    const old = await makePast(t);
    const declined = await decline(old, "filters[0]: no\u2028", { payload: { text: "ä\u2028😀" }, agoMs: 9000 });
    const dead = await arrive(old, { agoMs: 8000 });
    await work(old, { result: aResult({ inputTokens: 3, outputTokens: 4 }) });
    await send(old, refused);
    const exported = (await run(old.home, ["events", "export"])).out;

    const url = await (await server()).database(t);
    const home = await makeHome(t, { "config.yaml": JSON.stringify({ ...twoRoutes, store: { url } }) });
    const input = async function* () {
      yield Buffer.from(exported);
    };
    const imported = await run(home, ["events", "import", "-"], { input });
    assert.deepEqual(imported, { code: 0, out: "Imported 2 events\n", err: "" });
    assert.equal((await run(home, ["events", "export"])).out, exported);
    const { value } = await runJson<{ id: string }[]>(home, ["events", "list", "--text", "CHAT NOT FOUND"]);
    assert.deepEqual(
      value.map(({ id }) => id),
      [dead],
    );

    const store = await openPostgres({ url, schema: "postern", readOnly: false });
    t.after(() => store.close());
    const text = JSON.stringify({ sub: { secret: "0123456789abcdef", prompt: "Shared: {text}" } });
    assert.ok(await store.writeDocument({ name: "subscriptions", seen: 0, text }));
    const replayed = await run(home, ["events", "replay", declined, "--route", "sub"]);
    assert.equal(replayed.code, 0, replayed.out);
    const event = await store.readEvent({ id: declined });
    assert.deepEqual([event?.state, event?.ignored], ["queued", "filters[0]: no\u2028"]);
    assert.match(event?.jobs[0]?.plan ?? "", /Shared: ä\u2028😀/);
    const cancelled = await run(home, ["events", "cancel", "--state", "queued", "--yes"]);
    assert.match(cancelled.out, new RegExp(`^${declined}  cancelled: `));
  });
});
