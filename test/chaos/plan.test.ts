import assert from "node:assert/strict";
import { test } from "node:test";
import { type ChaosOptions, faultKinds, planRounds } from "../../chaos/plan.ts";

const options: ChaosOptions = {
  ...{ store: "postgres", rounds: 18, seed: 1, gateways: 3, events: 20, loadMs: 1_000, leaseMs: 4_000, comments: true },
  ...{ keep: false, sabotage: undefined },
  faults: ["kill", "stop", "freeze", "db-restart", "db-crash", "db-freeze", "cut", "sever", "disk"],
};

test("every kind of fault comes up before one comes up again", () => {
  const firsts = planRounds(options).map(({ faults }) => faults[0]!.kind);
  const kinds = Object.keys(faultKinds).sort();
  assert.deepEqual(firsts.slice(0, 9).sort(), kinds);
  assert.deepEqual(firsts.slice(9).sort(), kinds);
});

test("a seed decides everything, and another one decides otherwise", () => {
  assert.deepEqual(planRounds(options), planRounds(options));
  assert.notDeepEqual(planRounds(options), planRounds({ ...options, seed: 2 }));
});

test("rounds of orderly stops have no other fault", () => {
  const rounds = planRounds({ ...options, rounds: 60 }).filter(({ isStrict }) => isStrict);
  assert.ok(rounds.length >= 6);
  for (const { faults } of rounds)
    assert.deepEqual(
      faults.map(({ kind }) => kind),
      ["stop"],
    );
});

test("delivery ids are different in every round, and one event of each comes in fifty copies at once", () => {
  const events = planRounds(options).flatMap((round) => round.events);
  assert.equal(new Set(events.map(({ deliveryId }) => deliveryId)).size, events.length);
  assert.equal(events.filter(({ copies }) => copies === 50).length, options.rounds);
});

test("without comments nothing is to be written to GitHub", () => {
  const routes = (comments: boolean) =>
    new Set(
      planRounds({ ...options, comments, events: 200 }).flatMap(({ events }) => events.map(({ route }) => route)),
    );
  assert.ok(routes(true).has("review"));
  assert.ok(!routes(false).has("review"));
});
