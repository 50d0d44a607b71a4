import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { StoreUnavailable } from "../../src/core/errors.ts";
import { jobMoves, messageMoves } from "../../src/store/states.ts";
import { watchMoves } from "../tools/moves.ts";
import { anAgentEvent } from "../tools/rows.ts";
import { makeGrounds, type StoreName, violations } from "../tools/stores.ts";
import { testAccepting } from "./store/accepting.ts";
import { testDirectDeliveries } from "./store/direct.ts";
import { testFallbacks } from "./store/fallbacks.ts";
import { testByHand } from "./store/hand.ts";
import { testHealth } from "./store/health.ts";
import { testImporting } from "./store/importing.ts";
import { testJobs } from "./store/jobs.ts";
import { testKeeping } from "./store/keeping.ts";
import { testLanes } from "./store/lanes.ts";
import { testLeases } from "./store/leases.ts";
import { testLooking } from "./store/looking.ts";
import { testMessages } from "./store/messages.ts";
import { testSeveral } from "./store/several.ts";
import { testSharing } from "./store/sharing.ts";
import type { Suite } from "./store/suite.ts";
import { testTexts } from "./store/texts.ts";

// Each theme of the port has a file of its own in store/; all are tried on every store.
const themes = {
  accepting: testAccepting,
  jobs: testJobs,
  messages: testMessages,
  lanes: testLanes,
  fallbacks: testFallbacks,
  "a target's health": testHealth,
  "direct deliveries": testDirectDeliveries,
  leases: testLeases,
  "by hand": testByHand,
  importing: testImporting,
  looking: testLooking,
  "keeping in bounds": testKeeping,
  sharing: testSharing,
  texts: testTexts,
  "several gateways": testSeveral,
} satisfies Record<string, (suite: Suite) => void>;

for (const [kind, ground] of Object.entries(makeGrounds())) {
  const seen = new Set<string>();

  describe(`${kind} as a store`, { skip: ground.skip }, () => {
    const suite: Suite = {
      kind: kind as StoreName,
      on: (title, body) =>
        test(title, async (t) => {
          const place = await ground.clear(t);
          await body(watchMoves(place.store, place.query, seen), place);
          assert.deepEqual(await violations(place), []);
        }),
    };
    for (const [theme, define] of Object.entries(themes)) describe(theme, () => define(suite));

    test("calls a call that makes no sense a bug, not an outage, and goes on", async (t) => {
      const { store } = await ground.clear(t);
      for (const call of [store.accept({} as never), store.claimMessages(undefined as never)]) {
        await assert.rejects(call, (error) => error instanceof Error && !(error instanceof StoreUnavailable));
      }
      assert.equal((await store.accept(anAgentEvent())).duplicate, false);
    });

    test("carries out what was asked before it closes, and nothing after", async (t) => {
      const store = await (await ground.clear(t)).open();
      const asked = Array.from({ length: 20 }, () => store.accept(anAgentEvent()));
      await Promise.all([store.close(), store.close()]);
      for (const answer of await Promise.all(asked)) assert.equal(answer.duplicate, false);
      await assert.rejects(store.accept(anAgentEvent()), StoreUnavailable);
      await assert.rejects(store.listEvents({ limit: 1 }), StoreUnavailable);
      await store.close();
    });

    test("makes every move of the tables in the course of this suite, each by the operation it belongs to", () => {
      const all = [
        ...Object.keys(jobMoves).map((move) => `job.${move}`),
        ...Object.keys(messageMoves).map((move) => `message.${move}`),
      ];
      assert.deepEqual([...seen].sort(), all.sort());
    });
  });
}
