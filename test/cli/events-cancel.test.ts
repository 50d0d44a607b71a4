import assert from "node:assert/strict";
import { test } from "node:test";
import { makeHome } from "../tools/home.ts";
import { aClaim } from "../tools/rows.ts";
import { keys, run, runJson, typist } from "./command.ts";
import { arrive, elsewhere, makePast, replaced, send, work } from "./events.ts";

test("cancel stops what waits, and says what will not be sent", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past);
  const { code, out } = await run(past.home, ["events", "cancel", id]);
  assert.deepEqual([code, out], [0, `${id}  cancelled: 1 message will not be sent\n`]);
  const { state, jobs } = await past.read(id);
  assert.deepEqual([state, jobs[0]?.messages[0]?.state], ["cancelled", "cancelled"]);
});

test("cancel says what had been sent already, and what is being sent at this moment", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past, { chats: ["1", "2", "3"] });
  await work(past);
  await send(past);
  await past.store.claimMessages(aClaim({ now: Date.now(), limit: 1, leaseUntil: Date.now() + 60_000 }));
  const { out } = await run(past.home, ["events", "cancel", id]);
  const fates =
    "1 message will not be sent, 1 message had been sent already, 1 message is being sent at this moment, and not tried again";
  assert.equal(out, `${id}  cancelled: ${fates}\n`);
  assert.deepEqual(
    (await past.read(id)).jobs[0]?.messages.map(({ state }) => state),
    ["sent", "sending", "cancelled"],
  );
});

test("cancel stops what goes instead of a message that was given up", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past, { fallback: [elsewhere("8")] });
  await work(past);
  await send(past, replaced());
  const { out } = await run(past.home, ["events", "cancel", id]);
  assert.equal(out, `${id}  cancelled: 1 message will not be sent\n`);
  assert.deepEqual(
    (await past.read(id)).jobs[0]?.messages.map(({ state }) => state),
    ["replaced", "cancelled"],
  );
});

test("when all that is left is being sent, its next try is what is stopped", async (t) => {
  const past = await makePast(t);
  const id = await arrive(past);
  await work(past);
  await past.store.claimMessages(aClaim({ now: Date.now(), limit: 1, leaseUntil: Date.now() + 60_000 }));
  const { code, out } = await run(past.home, ["events", "cancel", id]);
  assert.equal(code, 0);
  const fates = "0 messages will not be sent, 1 message is being sent at this moment, and not tried again";
  assert.equal(out, `${id}  cancelled: ${fates}\n`);
});

test("what has ended, or is not there, cannot be cancelled: a line for each, and exit 1", async (t) => {
  const past = await makePast(t);
  const done = await arrive(past, { agoMs: 2000 });
  await work(past);
  await send(past);
  const queued = await arrive(past, { agoMs: 1000 });
  const { code, value } = await runJson(past.home, ["events", "cancel", done, "ffff", queued]);
  assert.equal(code, 1);
  assert.deepEqual(value, [
    { id: done, result: "failed", reason: "There is nothing to stop: it is done" },
    {
      id: "ffff",
      result: "failed",
      reason: 'No single event begins with "ffff"; see "postern events list", and give more of the id',
    },
    { id: queued, result: "cancelled", jobs: 1, messages: { cancelled: 1, sent: 0, sending: 0 } },
  ]);
});

test("by filter only what is under way counts, and nothing is stopped before somebody says yes", async (t) => {
  const past = await makePast(t);
  const done = await arrive(past, { agoMs: 3000 });
  await work(past);
  await send(past);
  const queued = [await arrive(past, { agoMs: 2000 }), await arrive(past, { agoMs: 1000 })];
  const all = ["events", "cancel", "--route", "reviews"];
  const states = () => Promise.all([done, ...queued].map(async (id) => (await past.read(id)).state));

  const nobody = await run(past.home, all);
  assert.equal(nobody.code, 2);
  assert.match(nobody.err, /Cancel 2 events\? There is no terminal to ask at; add --yes/);
  const no = typist([["Cancel 2 events?", keys.enter]]);
  const declined = await run(past.home, all, no);
  assert.deepEqual([declined.code, declined.err], [1, "postern: Nothing was cancelled\n"]);
  assert.deepEqual(await states(), ["done", "queued", "queued"]);

  const yes = typist([["Cancel 2 events?", "y"]]);
  const { code, out } = await run(past.home, all, yes);
  assert.equal(code, 0);
  assert.deepEqual(
    out.split("\n").map((line) => line.split("  ")[0]),
    [...queued, ""],
  );
  assert.deepEqual(await states(), ["done", "cancelled", "cancelled"]);
  assert.deepEqual(await run(past.home, [...all, "--yes"]), { code: 0, out: "", err: "0 events\n" });
});

for (const [what, args] of [
  ["nothing to cancel", []],
  ["ids and filters", ["019a", "--state", "queued"]],
] as const) {
  test(`cancel with ${what} is wrong usage`, async (t) => {
    const { code, err } = await run(await makeHome(t), ["events", "cancel", ...args]);
    assert.equal(code, 2);
    assert.match(err, /name events by their ids/);
  });
}

test("on a home without a ledger there is nothing to cancel, and none is made", async (t) => {
  const home = await makeHome(t);
  assert.equal((await run(home, ["events", "cancel", "019a"])).code, 1);
  assert.equal((await run(home, ["events", "cancel", "--state", "queued", "--yes"])).code, 0);
  await assert.rejects(home.read("data/ledger.db"), { code: "ENOENT" });
});
