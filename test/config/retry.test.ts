import assert from "node:assert/strict";
import { test } from "node:test";
import { messageRule, runTries } from "../../src/config/retry.ts";
import { buildSubscriptions } from "../../src/config/subscriptions.ts";
import { load, withRoute } from "./loading.ts";

const hourMs = 3_600_000;

/** What counts where nothing is set. */
const preset = {
  tries: 8,
  maxAgeMs: 24 * hourMs,
  firstDelayMs: 4_000,
  factor: 6,
  longestDelayMs: 24 * hourMs,
  keepOrderMs: 600_000,
  whenUnknown: "at_least_once",
};

test("without a word about retries a message is tried 8 times within a day, and a run 3 times", async (t) => {
  const config = await load(t, withRoute("enabled: yes"));
  assert.deepEqual(messageRule(config, config.routes.get("one"), "telegram"), preset);
  assert.equal(runTries(config, config.routes.get("one")), 3);
});

const everyKey = `{ tries: 2, max_age: 7d, first_delay: 500ms, longest_delay: 1.5d, keep_order_for: 0, when_unknown: at_most_once`;
const everyValue = {
  tries: 2,
  maxAgeMs: 7 * 24 * hourMs,
  firstDelayMs: 500,
  factor: 6,
  longestDelayMs: 36 * hourMs,
  keepOrderMs: 0,
  whenUnknown: "at_most_once",
};

for (const [where, yaml] of [
  ["for all", `${withRoute("enabled: yes")}retry: ${everyKey} }\n`],
  ["for the target", withRoute("enabled: yes", `  email: { retry: ${everyKey} } }\n`)],
  ["for the target by its neutral name", withRoute("enabled: yes", `  chat_target_01: { retry: ${everyKey} } }\n`)],
  ["for a target that needs no section", withRoute("enabled: yes", `  log: { retry: ${everyKey} } }\n`)],
  ["for the target by gh", withRoute("enabled: yes", `  github_comment: { retry: ${everyKey} } }\n`)],
  ["for the route", withRoute(`retry: ${everyKey} }`)],
] as const) {
  test(`every key is read ${where}`, async (t) => {
    const target = { email: "email", chat_target_01: "telegram", github_comment: "github_comment" };
    const [, name = "log"] = Object.entries(target).find(([written]) => yaml.includes(written)) ?? [];
    const config = await load(t, yaml);
    assert.deepEqual(messageRule(config, config.routes.get("one"), name), everyValue);
  });
}

test("each key is the route's, else the target's, else the one for all; other targets and routes have their own", async (t) => {
  const config = await load(
    t,
    `${withRoute(
      "retry: { tries: 1 }",
      `      two: {}
  telegram: { enabled: true, token: "1:a", retry: { tries: 2, max_age: 2h } }
`,
    )}retry: { tries: 3, max_age: 3h, first_delay: 3s }\n`,
  );
  const rule = (route: string, target: string) => {
    const { tries, maxAgeMs, firstDelayMs } = messageRule(config, config.routes.get(route), target);
    return [tries, maxAgeMs / hourMs, firstDelayMs];
  };
  assert.deepEqual(rule("one", "telegram"), [1, 2, 3000]);
  assert.deepEqual(rule("one", "log"), [1, 3, 3000]);
  assert.deepEqual(rule("two", "telegram"), [2, 2, 3000]);
  assert.deepEqual(rule("two", "log"), [3, 3, 3000]);
  assert.deepEqual(rule("gone", "telegram"), [2, 2, 3000]);
  assert.deepEqual(rule("gone", "unknown"), [3, 3, 3000]);
});

test("the tries of runs are the route's, else those for all", async (t) => {
  const config = await load(t, `${withRoute("retry: { run_tries: 1 }", "      two: {}\n")}retry: { run_tries: 10 }\n`);
  assert.equal(runTries(config, config.routes.get("one")), 1);
  assert.equal(runTries(config, config.routes.get("two")), 10);
  assert.equal(runTries(config, undefined), 10);
});

test("a target's rule is none of its settings, and stands beside them", async (t) => {
  const config = await load(t, 'platforms: { telegram: { enabled: true, token: "1:a", retry: { tries: 2 } } }');
  const telegram = config.platforms.get("telegram");
  assert.ok(telegram && "values" in telegram);
  assert.equal(telegram.values.token, "1:a");
  assert.equal("retry" in telegram.values, false);
  assert.deepEqual(telegram.retry, { tries: 2 });
});

test("a target that cannot be used keeps its rule: its messages may be waiting", async (t) => {
  const config = await load(t, "platforms: { telegram: { enabled: false, retry: { tries: 2 } } }");
  assert.equal(messageRule(config, undefined, "telegram").tries, 2);
});

test("a route says how many of its runs go at once, and what becomes of one that a crash cut off", async (t) => {
  const { routes } = await load(t, withRoute("max_concurrent: 3\non_crash: fail", "      two: {}\n"));
  const [one, two] = [routes.get("one"), routes.get("two")];
  assert.deepEqual([one?.maxConcurrent, one?.onCrash], [3, "fail"]);
  assert.deepEqual([two?.maxConcurrent, two?.onCrash, two?.retry], [undefined, "rerun", {}]);
});

test("a subscription may say all of this too", async (t) => {
  const { home, routeContext } = await load(t, "platforms: { webhook: { secret: the-global-secret } }");
  const entries = {
    good: { retry: { tries: 2, max_age: "2d", run_tries: 1 }, max_concurrent: 1, on_crash: "fail" },
    wrong: { retry: { tries: 0 }, max_concurrent: 0, on_crash: "stop" },
  };
  const { routes, errors } = buildSubscriptions(JSON.stringify(entries), home, routeContext);
  assert.deepEqual([...routes.keys()], ["good"]);
  const good = routes.get("good");
  assert.deepEqual(good?.retry, { tries: 2, maxAgeMs: 48 * hourMs, runTries: 1 });
  assert.deepEqual([good?.maxConcurrent, good?.onCrash], [1, "fail"]);
  assert.deepEqual(errors, [
    'The subscription "wrong" is skipped: ' +
      "retry.tries: Expected a whole number from 1 to 100, found 0; " +
      "max_concurrent: Expected a whole number from 1 to 1000, found 0; " +
      'on_crash: Expected one of: rerun, fail, found "stop"',
  ]);
});
