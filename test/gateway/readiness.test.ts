import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Config } from "../../src/config/load.ts";
import { Readiness } from "../../src/gateway/readiness.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { silentLog } from "../../src/lib/log.ts";
import { fakeSandbox } from "../agent/surroundings.ts";
import { makeClock } from "../tools/clock.ts";
import { puppet } from "../tools/crew.ts";
import { leaseMs } from "../tools/scene.ts";

/** What a gateway knows of its agents, with what it asks of its ledger. */
function makeReadiness({ isShared = false, reason = undefined as string | undefined } = {}) {
  const clock = makeClock();
  const asked: string[] = [];
  const said: string[] = [];
  const agent = puppet();
  agent.reason = reason;
  const looks = { count: 0 };
  const blocked = agent.blocked;
  agent.blocked = (context) => {
    looks.count += 1;
    return blocked(context);
  };
  const ledger = {
    isShared,
    park: async (why: string) => asked.push(`park: ${why}`) && 1,
    unpark: async () => asked.push("unpark") && 0,
  } as unknown as Ledger;
  const readiness = new Readiness({
    ...{ agent, ledger, leaseMs, config: { agent: {}, env: {} } as Config, sandbox: fakeSandbox(), now: clock.now },
    log: { ...silentLog, warn: (_, message) => said.push(message), info: (_, message) => said.push(message) },
  });
  return { clock, asked, said, agent, looks, readiness, allow: (due?: number) => readiness.allow(4, due) };
}

describe("a gateway whose agents can run", () => {
  test("takes what is due, and back what was set aside before", async () => {
    const { asked, clock, allow } = makeReadiness();
    assert.equal(await allow(clock.now()), 4);
    assert.deepEqual(asked, ["unpark"]);
    assert.equal(await allow(clock.now()), 4);
    assert.deepEqual(asked, ["unpark"]);
  });

  test("does not find out again whether they can for nothing, nor more often than every five seconds", async () => {
    const { looks, clock, allow } = makeReadiness();
    assert.equal(await allow(), 4);
    assert.equal(looks.count, 1);
    clock.advance(3_600_000);
    assert.equal(await allow(), 0);
    assert.equal(await allow(clock.now() + 1), 0);
    assert.equal(looks.count, 1);
    assert.equal(await allow(clock.now()), 4);
    assert.equal(looks.count, 2);
    clock.advance(4_999);
    await allow(clock.now());
    assert.equal(looks.count, 2);
    clock.advance(1);
    await allow(clock.now());
    assert.equal(looks.count, 3);
  });

  test("takes back every few seconds what another gateway has set aside", async () => {
    const { asked, clock, allow } = makeReadiness({ isShared: true });
    await allow(clock.now());
    clock.advance(4_999);
    await allow();
    assert.deepEqual(asked, ["unpark"]);
    clock.advance(1);
    await allow();
    assert.deepEqual(asked, ["unpark", "unpark"]);
  });

  test("takes nothing back while it is alone: nobody else sets aside", async () => {
    const { asked, clock, allow } = makeReadiness();
    await allow(clock.now());
    clock.advance(60_000);
    await allow();
    assert.deepEqual(asked, ["unpark"]);
  });
});

describe("a gateway whose agents cannot run", () => {
  const reason = "no model configured";

  test("takes nothing and sets aside what there is, with the reason, and says so once", async () => {
    const { asked, said, clock, allow } = makeReadiness({ reason });
    assert.equal(await allow(), 0);
    assert.deepEqual(asked, []);
    assert.equal(await allow(clock.now() + 60_000), 0);
    assert.deepEqual(asked, [`park: ${reason}`]);
    assert.deepEqual(new Set(said), new Set(["Agents cannot run; jobs wait"]));
    const before = said.length;
    for (let count = 0; count < 10; count += 1) await allow();
    assert.equal(said.length, before);
  });

  test("takes it back when they can, five seconds later at most, or at once with another configuration", async () => {
    const { asked, said, clock, agent, readiness, allow } = makeReadiness({ reason });
    await allow(clock.now());
    agent.reason = undefined;
    assert.equal(await allow(), 0);
    clock.advance(5_000);
    assert.equal(await allow(), 4);
    assert.deepEqual([asked.at(-1), said.at(-1)], ["unpark", "Agents can run again"]);
    agent.reason = "bwrap is missing";
    readiness.reconsider();
    assert.equal(await allow(clock.now()), 0);
    assert.equal(asked.at(-1), "park: bwrap is missing");
  });

  test("leaves jobs to the other gateways first, where there are any", async () => {
    const { asked, clock, allow } = makeReadiness({ reason, isShared: true });
    const due = clock.now();
    assert.equal(await allow(due), 0);
    clock.advance(leaseMs - 1);
    await allow(due);
    assert.deepEqual(asked, []);
    clock.advance(1);
    await allow(due);
    assert.deepEqual(asked, [`park: ${reason}`]);
    await allow(due);
    clock.advance(leaseMs - 1);
    await allow(due);
    assert.equal(asked.length, 1, "one of the others may have taken them back");
    clock.advance(1);
    await allow(due);
    assert.equal(asked.length, 2);
  });
});
