import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { type Config, loadConfig } from "../../src/config/load.ts";
import { planOf, shape } from "../../src/gateway/shape.ts";
import { eventOf, payloadOf } from "../core/event.ts";
import { makeHome } from "../tools/home.ts";

async function configOf(t: TestContext, routes: Readonly<Record<string, object>>): Promise<Config> {
  const config = {
    platforms: {
      webhook: { host: "127.0.0.1", secret: "the-global-secret", routes },
      telegram: { enabled: true, token: "1:token", home_channel: { chat_id: "42", thread_id: "5" } },
    },
  };
  const home = await makeHome(t, {
    "config.yaml": JSON.stringify(config),
    "scripts/add.sh": `printf '{"what":"from the script"}'`,
    "scripts/no.sh": "exit 0",
  });
  return loadConfig({ home, env: { PATH: process.env.PATH } });
}

async function shapeOn(t: TestContext, route: object, payload: Record<string, unknown> = {}) {
  const config = await configOf(t, { route });
  const event = eventOf({ payload: payloadOf(payload), type: "push" });
  return shape(config.routes.get("route")!, event, config);
}

async function laneOn(t: TestContext, route: object, payload?: Record<string, unknown>) {
  const shaped = await shapeOn(t, { prompt: "x", ...route }, payload);
  assert.ok("drafts" in shaped);
  return shaped.drafts.map(({ lane }) => lane);
}

test("an event is declined by the first of types, filters and script that does, with its clause", async (t) => {
  const filters = [{ field: "action", equals: "opened" }];
  assert.deepEqual(await shapeOn(t, { events: ["issues"], filters }), {
    ...{ ignored: 'the event type is not in "events"', detail: { event: "push" } },
  });
  const filtered = await shapeOn(t, { events: ["push"], filters, script: "no.sh" }, { action: "closed" });
  assert.ok("ignored" in filtered);
  assert.match(filtered.ignored, /action.*"opened".*found "closed"/);
  assert.deepEqual(filtered.detail, { reason: "filter" });
  const scripted = await shapeOn(t, { filters, script: "no.sh" }, { action: "opened" });
  assert.deepEqual("ignored" in scripted && scripted.detail, { reason: "script" });
});

test("text and addresses are composed from what the script made of the payload", async (t) => {
  const route = {
    prompt: "Look at {what}",
    script: "add.sh",
    deliver: "telegram",
    deliver_extra: { chat_id: "{what}" },
  };
  const shaped = await shapeOn(t, route, { what: "the original" });
  assert.deepEqual(shaped, {
    text: "Look at from the script",
    // No chat has such a name, so it has no place: the send will say so.
    drafts: [{ target: "telegram", extra: { chat_id: "from the script" }, lane: null, refusal: null, fallback: [] }],
  });
});

test("a fallback is composed as deliver is, with a lane of its own", async (t) => {
  const route = { prompt: "x", deliver: "telegram", fallback: [{ to: "telegram", chat_id: "{chat}" }, "log"] };
  const shaped = await shapeOn(t, route, { chat: 7 });
  assert.ok("drafts" in shaped);
  assert.deepEqual(shaped.drafts[0]?.fallback, [
    { target: "telegram", extra: { chat_id: "7" }, lane: '["telegram",{"chat_id":"7"}]', refusal: null },
    { target: "log", extra: {}, lane: null, refusal: null },
  ]);
});

test("a place that a template names is refused unless the route allows it", async (t) => {
  const refusalOn = async (extra: object, payload: Record<string, unknown>) => {
    const route = { prompt: "x", deliver: "telegram", deliver_extra: extra, allow_chat_ids: ["-7", 42] };
    const shaped = await shapeOn(t, route, payload);
    return "drafts" in shaped ? shaped.drafts[0]?.refusal : undefined;
  };
  const refusal = 'Cannot send to "telegram": "chat_id" is "-8", which is not in "allow_chat_ids" of the route';
  assert.equal(await refusalOn({ chat_id: "-{chat}" }, { chat: 8 }), refusal);
  assert.equal(await refusalOn({ chat_id: "-{chat}" }, { chat: 7 }), null);
  assert.equal(await refusalOn({ chat_id: "-8" }, {}), null);
  assert.equal(await refusalOn({ thread_id: "{chat}" }, { chat: 8 }), null);
  // What it holds is no address, which the send will say in words of its own.
  assert.equal(await refusalOn({ chat_id: "{chat}" }, {}), null);
});

test("a run is for nothing when no message, and none of a fallback, has an address to go to", async (t) => {
  const hopelessOn = async (route: object) => {
    const config = await configOf(t, { route: { prompt: "x", ...route } });
    const found = config.routes.get("route")!;
    const shaped = await shape(found, eventOf({ payload: payloadOf({ chat: 8 }), type: "push" }), config);
    assert.ok("drafts" in shaped);
    return planOf(found, shaped, config).hopeless;
  };
  const open = { to: "telegram", chat_id: "{chat}" };
  const unresolved = { to: "telegram", chat_id: "{nowhere}" };
  const allow_chat_ids = [7];
  assert.match((await hopelessOn({ deliver: unresolved })) ?? "", /did not resolve/);
  assert.match((await hopelessOn({ deliver: [open, unresolved], allow_chat_ids })) ?? "", /not in "allow_chat_ids"/);
  assert.match((await hopelessOn({ deliver: open, fallback: unresolved, allow_chat_ids })) ?? "", /"8"/);
  assert.equal(await hopelessOn({ deliver: open }), undefined);
  assert.equal(await hopelessOn({ deliver: [unresolved, "log"] }), undefined);
  assert.equal(await hopelessOn({ deliver: unresolved, fallback: "log" }), undefined);
});

test("a run is made from the prompt, the skills and the tools of its route", async (t) => {
  const config = await configOf(t, { route: { skills: ["careful"], tools: ["terminal"] } });
  const plan = planOf(config.routes.get("route")!, { text: "x", drafts: [] }, config);
  assert.deepEqual(plan, { prompt: "x", skills: ["careful"], tools: ["terminal"] });
});

test("one chat is one lane, whether the route names it, the payload does, or it is the home channel", async (t) => {
  const home = ['["telegram",{"chat_id":"42","message_thread_id":"5"}]'];
  assert.deepEqual(await laneOn(t, { deliver: "telegram" }), home);
  const named = { deliver: "telegram", deliver_extra: { chat_id: "42", message_thread_id: "5" } };
  assert.deepEqual(await laneOn(t, named), home);
  const other = { deliver: "telegram", deliver_extra: { thread_id: "{thread}", chat_id: "{chat}" } };
  assert.deepEqual(await laneOn(t, other, { chat: 42, thread: 5 }), home);
  assert.deepEqual(await laneOn(t, { deliver: "telegram", deliver_extra: { chat_id: "42" } }), [
    '["telegram",{"chat_id":"42"}]',
  ]);
});

test("the log, a direct delivery and an address that is none have no lane", async (t) => {
  assert.deepEqual(await laneOn(t, { deliver: "log" }), [null]);
  assert.deepEqual(await laneOn(t, { deliver: "telegram", deliver_only: true }), [null]);
  const unresolved = { deliver: "telegram", deliver_extra: { chat_id: "{nowhere}" } };
  assert.deepEqual(await laneOn(t, unresolved), [null]);
});
