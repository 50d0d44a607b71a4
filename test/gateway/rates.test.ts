import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { StoreUnavailable } from "../../src/core/errors.ts";
import { LocalRates, type Rates } from "../../src/gateway/rates.ts";
import { SharedRates } from "../../src/gateway/shared-rates.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { type Clock, makeClock } from "../tools/clock.ts";
import { makeHome } from "../tools/home.ts";
import { fc } from "../tools/property.ts";

interface Opened {
  readonly rates: Rates;
  readonly clock: Clock;
}

type Open = (t: TestContext) => Promise<(limit: number) => Opened>;

const kinds: Record<string, Open> = {
  "a gateway alone": async () => (limit) => {
    const clock = makeClock();
    return { rates: new LocalRates(limit, clock.now), clock };
  },
  // Each budget has a route of its own: the rates differ, the store is one.
  "gateways that share a store": async (t) => {
    const store = await openSqlite({ path: join((await makeHome(t)).folder, "ledger.db"), readOnly: false });
    t.after(() => store.close());
    let count = 0;
    return (limit) => {
      const clock = makeClock();
      const prefix = `${++count} `;
      const own: ConstructorParameters<typeof SharedRates>[0] = {
        spend: (args) => store.spend({ ...args, route: prefix + args.route }),
        giveBack: (args) => store.giveBack({ ...args, route: prefix + args.route }),
      };
      return { rates: new SharedRates(own, limit, clock.now), clock };
    };
  },
};

for (const [kind, prepare] of Object.entries(kinds)) {
  describe(`a budget of ${kind}`, () => {
    test("lasts for as many requests as it has, in a window that begins with the first", async (t) => {
      const { rates, clock } = (await prepare(t))(2);
      assert.equal(await rates.spend("a"), undefined);
      clock.advance(30_000);
      assert.equal(rates.spentFor("a"), undefined);
      assert.equal(await rates.spend("a"), undefined);
      assert.equal(await rates.spend("a"), 30);
      assert.equal(rates.spentFor("a"), 30);
      clock.advance(29_999);
      assert.equal(await rates.spend("a"), 1);
      clock.advance(1);
      assert.equal(rates.spentFor("a"), undefined);
      assert.equal(await rates.spend("a"), undefined);
      assert.equal(await rates.spend("a"), undefined);
      assert.equal(await rates.spend("a"), 60);
    });

    test("is each route's own, and failed verifications have another one", async (t) => {
      const { rates } = (await prepare(t))(1);
      assert.equal(rates.fail("a"), undefined);
      assert.equal(rates.fail("a"), 60);
      assert.equal(await rates.spend("a"), undefined);
      assert.equal(await rates.spend("a"), 60);
      assert.equal(await rates.spend("b"), undefined);
      assert.equal(rates.fail("b"), undefined);
    });

    test("takes back what was given, and never more than was spent", async (t) => {
      const { rates } = (await prepare(t))(2);
      rates.giveBack("a");
      rates.giveBack("a");
      for (const expected of [undefined, undefined, 60]) assert.equal(await rates.spend("a"), expected);
      rates.giveBack("a");
      assert.equal(rates.spentFor("a"), undefined);
      for (const expected of [undefined, 60]) assert.equal(await rates.spend("a"), expected);
    });

    test("does not stay spent when the clock is set back", async (t) => {
      const { rates, clock } = (await prepare(t))(1);
      await rates.spend("a");
      clock.advance(-3_600_000);
      assert.equal(await rates.spend("a"), undefined);
      assert.equal(await rates.spend("a"), 60);
    });

    test("follows another limit", async (t) => {
      const { rates } = (await prepare(t))(1);
      await rates.spend("a");
      assert.equal(await rates.spend("a"), 60);
      rates.limit = 2;
      assert.equal(await rates.spend("a"), undefined);
      assert.equal(await rates.spend("a"), 60);
    });

    test("is not exceeded by requests that come at once", async (t) => {
      const { rates } = (await prepare(t))(30);
      const answers = await Promise.all(Array.from({ length: 100 }, () => rates.spend("a")));
      assert.equal(answers.filter((seconds) => seconds === undefined).length, 30);
    });

    test("never lets more through in a window than it has, and always says a wait that is enough", async (t) => {
      const open = await prepare(t);
      const steps = fc.array(fc.nat(40_000), { maxLength: 40 });
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: 5 }), steps, async (limit, waits) => {
          const { rates, clock } = open(limit);
          const taken: number[] = [];
          for (const wait of waits) {
            clock.advance(wait);
            const seconds = await rates.spend("a");
            if (seconds === undefined) taken.push(clock.now());
            else assert.ok(seconds >= 1 && seconds <= 60 && Number.isInteger(seconds));
          }
          // A window begins with a request: from any first one of a window, at most `limit` fit into its minute.
          let start = Number.NEGATIVE_INFINITY;
          let count = 0;
          for (const at of taken) {
            if (at >= start + 60_000) [start, count] = [at, 0];
            count += 1;
            assert.ok(count <= limit);
          }
        }),
        { numRuns: 40 },
      );
    });
  });
}

describe("budgets in a store", () => {
  const noGiving = { giveBack: async () => {} };

  test("count what comes while the store is asked with one question", async () => {
    const counts: number[] = [];
    const first = Promise.withResolvers<void>();
    const clock = makeClock();
    const spend = async ({ count }: { readonly count: number }) => {
      counts.push(count);
      if (counts.length === 1) await first.promise;
      return { granted: count, windowStart: clock.now() };
    };
    const rates = new SharedRates({ ...noGiving, spend }, 100, clock.now);
    const answers = Array.from({ length: 10 }, () => rates.spend("a"));
    first.resolve();
    assert.deepEqual(
      await Promise.all(answers),
      Array.from({ length: 10 }, () => undefined),
    );
    assert.deepEqual(counts, [1, 9]);
  });

  test("say that nobody can tell while the store is away, and go on when it is back", async () => {
    const clock = makeClock();
    let isAway = true;
    const spend = async ({ count }: { readonly count: number }) => {
      if (isAway) throw new StoreUnavailable("away");
      return { granted: count, windowStart: clock.now() };
    };
    const rates = new SharedRates({ ...noGiving, spend }, 100, clock.now);
    await assert.rejects(async () => rates.spend("a"), StoreUnavailable);
    isAway = false;
    assert.equal(await rates.spend("a"), undefined);
  });
});
