import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { handle, type Reply } from "../../src/gateway/pipeline.ts";
import type { JobRecord } from "../../src/store/store.ts";
import { type FakeSmtp, startFakeSmtp } from "../fakes/smtp.ts";
import { answering, hire, type Puppet } from "../tools/crew.ts";
import { request, type Scene, type SceneOptions, setScene } from "../tools/scene.ts";
import { until } from "../tools/wait.ts";

/** A scene with Telegram and e-mail. */
async function setTwo(t: TestContext, route: object, more: SceneOptions = {}) {
  const mail = await startFakeSmtp();
  t.after(() => mail.close());
  const dotenv = `EMAIL_SMTP_HOST=${mail.host}\nEMAIL_SMTP_PORT=${mail.port}\nEMAIL_ADDRESS=bot@example.com\nEMAIL_HOME_ADDRESS=ops@example.com\n`;
  const scene = await setScene(t, { routes: { ci: route }, files: { ".env": dotenv }, ...more });
  return { scene, mail };
}

async function send(scene: Scene, payload: object, id?: string): Promise<Reply> {
  return (await handle(request({ body: payload, ...(id !== undefined && { id }) }), scene.gateway)).reply;
}

async function newestJob(scene: Scene): Promise<JobRecord> {
  const [event] = await scene.events();
  return event!.jobs[0]!;
}

/** The job at its end, worked on by an agent that answers at once. */
async function done(t: TestContext, scene: Scene, agent: Puppet = answering("All is well")): Promise<JobRecord> {
  const worker = hire(t, scene, agent);
  worker.start();
  return until("the end of the job", async () => {
    const job = await newestJob(scene);
    return ["done", "dead"].includes(job.state) ? job : undefined;
  });
}

function ways({ messages }: JobRecord): string[] {
  return messages.map(({ target, state }) => `${target} ${state}`);
}

function texts(mail: FakeSmtp): [to: readonly string[], text: string][] {
  return mail.messages.map(({ to, text }) => [to, text]);
}

const reviews = { prompt: "Look at {what}", deliver: "telegram" };

describe("an answer that its target refuses", () => {
  test("goes to the fallback, and the job is done", async (t) => {
    const { scene, mail } = await setTwo(t, { ...reviews, fallback: ["email", "log"] });
    scene.telegram.mode = "refused";
    await send(scene, { what: "this" });
    const job = await done(t, scene);
    assert.deepEqual([job.state, ...ways(job)], ["done", "telegram replaced", "email sent"]);
    assert.deepEqual(texts(mail), [[["ops@example.com"], "All is well"]]);
    assert.equal(scene.lines.find(({ msg }) => msg === "Message not sent")?.instead, "email");
  });

  test("goes on along the list, to addresses from the payload of its event", async (t) => {
    const fallback = [{ to: "email", chat_id: "{who}@example.com" }, "log"];
    const { scene, mail } = await setTwo(t, { ...reviews, deliver: { to: "telegram", fallback } });
    scene.telegram.mode = "refused";
    mail.refused.add("ada@example.com");
    await send(scene, { what: "this", who: "ada" });
    const job = await done(t, scene);
    assert.deepEqual([job.state, ...ways(job)], ["done", "telegram replaced", "email replaced", "log sent"]);
    assert.deepEqual(job.messages[1]?.extra, '{"chat_id":"ada@example.com"}');
    assert.match(job.messages[1]?.reason ?? "", /^Cannot send.*550/);
    assert.deepEqual(scene.lines.filter(({ msg }) => msg === "Delivered to the log").length, 1);
  });

  test("is dead when the last of the list refuses it too", async (t) => {
    const { scene, mail } = await setTwo(t, { ...reviews, fallback: "email" });
    scene.telegram.mode = "refused";
    mail.refused.add("ops@example.com");
    await send(scene, { what: "this" });
    const job = await done(t, scene);
    assert.deepEqual([job.state, ...ways(job)], ["dead", "telegram replaced", "email dead"]);
    assert.equal(job.reason, job.messages[1]?.reason);
  });

  test("goes nowhere else when the target takes it, or may yet", async (t) => {
    const { scene, mail } = await setTwo(t, { ...reviews, fallback: "email" });
    scene.telegram.upcoming.push("limited");
    await send(scene, { what: "this" });
    const worker = hire(t, scene, answering("All is well"));
    worker.start();
    await until("the first try", async () => (await newestJob(scene)).messages[0]?.attempts[0]?.endedAt);
    assert.deepEqual(ways(await newestJob(scene)), ["telegram pending"]);
    assert.equal(mail.tries, 0);
  });

  test("may be there twice when nobody knows whether the first target took it", async (t) => {
    const retry = { when_unknown: "at_most_once" };
    const { scene, mail } = await setTwo(t, { ...reviews, retry, fallback: "email" });
    scene.telegram.mode = "lost";
    await send(scene, { what: "this" });
    const job = await done(t, scene);
    assert.deepEqual([job.state, ...ways(job)], ["done", "telegram replaced", "email sent"]);
    assert.match(job.messages[0]?.reason ?? "", /^It may have been sent/);
    assert.deepEqual([scene.telegram.messages.length, mail.messages.length], [1, 1]);
  });
});

describe("a direct delivery that its target refuses", () => {
  const alerts = { prompt: "{what} is down", deliver: "telegram", deliver_only: true };

  test("goes to the fallback while its sender waits", async (t) => {
    const { scene, mail } = await setTwo(t, { ...alerts, fallback: "email" });
    scene.telegram.mode = "refused";
    assert.equal((await send(scene, { what: "Search" }, "1")).status, "delivered");
    const job = await newestJob(scene);
    assert.deepEqual([job.state, ...ways(job)], ["done", "telegram replaced", "email sent"]);
    assert.deepEqual(texts(mail), [[["ops@example.com"], "Search is down"]]);
    assert.equal((await send(scene, { what: "Search" }, "1")).status, "duplicate");
  });

  test("uses it for what may pass too, since nobody tries again", async (t) => {
    const { scene, mail } = await setTwo(t, { ...alerts, fallback: "email" });
    scene.telegram.mode = "limited";
    assert.equal((await send(scene, { what: "Search" })).status, "delivered");
    assert.equal(mail.messages.length, 1);
  });

  test("fails when the whole list does, and its delivery id is free", async (t) => {
    const { scene, mail } = await setTwo(t, { ...alerts, fallback: "email" });
    scene.telegram.mode = "refused";
    mail.refused.add("ops@example.com");
    assert.equal((await send(scene, { what: "Search" }, "1")).status, "error");
    const job = await newestJob(scene);
    assert.deepEqual([job.state, ...ways(job)], ["refused", "telegram replaced", "email dead"]);
    mail.refused.clear();
    assert.equal((await send(scene, { what: "Search" }, "1")).status, "delivered");
  });

  test("fails when one entry of several, with its fallback, does", async (t) => {
    const deliver = [
      { to: "telegram", fallback: "email" },
      { to: "email", chat_id: "b@example.com" },
    ];
    const { scene, mail } = await setTwo(t, { ...alerts, deliver });
    scene.telegram.mode = "refused";
    mail.refused.add("b@example.com");
    assert.equal((await send(scene, { what: "Search" })).status, "error");
    const { state, messages } = await newestJob(scene);
    const fates = messages.map(({ target, extra, state }) => `${target} ${extra} ${state}`);
    assert.deepEqual(
      [state, ...fates.sort()],
      ["refused", 'email {"chat_id":"b@example.com"} dead', "email {} sent", "telegram {} replaced"],
    );
  });

  test("keeps the lease of what goes instead alive until that has ended", async (t) => {
    const { scene, mail } = await setTwo(t, { ...alerts, fallback: "email" }, { isShared: true });
    scene.telegram.mode = "refused";
    mail.mode = "hang";
    const reply = send(scene, { what: "Search" });
    await until("the second message", () => scene.deliveries.held[0]?.target === "email");
    const [held, ...others] = scene.deliveries.held;
    assert.deepEqual(others, []);
    scene.clock.advance(20_000);
    assert.deepEqual(await scene.ledger.heartbeat([], [held!]), []);
    assert.equal(held?.leaseUntil, scene.clock.now() + 30_000);
    scene.end.abort();
    assert.equal((await reply).status, "error");
    assert.deepEqual(scene.deliveries.held, []);
  });
});

describe("a place that the payload names", () => {
  const route = { ...reviews, deliver_extra: { chat_id: "{chat}" }, allow_chat_ids: [42, -7] };

  test("is written to when the route allows it", async (t) => {
    const { scene } = await setTwo(t, route);
    await send(scene, { chat: -7 });
    assert.equal((await done(t, scene)).state, "done");
    assert.deepEqual(
      scene.telegram.messages.map(({ chatId }) => String(chatId)),
      ["-7"],
    );
  });

  test("is not written to otherwise, and no agent is asked when there is no other", async (t) => {
    const { scene } = await setTwo(t, route);
    const agent = answering("All is well");
    assert.equal((await send(scene, { chat: 666 })).status, "accepted");
    const job = await done(t, scene, agent);
    assert.deepEqual([job.state, ...ways(job)], ["dead", "telegram dead"]);
    assert.equal(
      job.reason,
      'No agent was asked, because no target would take the answer: Cannot send to "telegram": "chat_id" is "666", which is not in "allow_chat_ids" of the route',
    );
    assert.deepEqual([agent.runs.length, scene.telegram.tries], [0, 0]);
  });

  test("that did not resolve costs no run either", async (t) => {
    const { scene } = await setTwo(t, { ...route, allow_chat_ids: undefined });
    const agent = answering("All is well");
    await send(scene, { what: "this" });
    const job = await done(t, scene, agent);
    assert.match(job.reason ?? "", /^No agent was asked.*\{chat\}.*did not resolve/);
    assert.equal(agent.runs.length, 0);
  });

  test("that is not allowed leaves the other messages alone", async (t) => {
    const { scene, mail } = await setTwo(t, {
      ...route,
      deliver: ["telegram", "email"],
      deliver_extra: {},
      fallback: [],
    });
    await send(scene, { chat: 666 });
    assert.deepEqual(ways(await done(t, scene)), ["telegram sent", "email sent"]);
    assert.equal(mail.messages.length, 1);
    const deliver = [{ to: "telegram", chat_id: "{chat}" }, "email"];
    const other = await setTwo(t, { ...reviews, deliver, allow_chat_ids: [42] });
    await send(other.scene, { chat: 666 });
    const job = await done(t, other.scene);
    assert.deepEqual([job.state, ...ways(job)], ["dead", "telegram dead", "email sent"]);
    assert.equal(
      job.reason,
      'Cannot send to "telegram": "chat_id" is "666", which is not in "allow_chat_ids" of the route',
    );
    assert.equal(other.scene.telegram.tries, 0);
  });

  test("that is not allowed hands over to the fallback, whose own place the operator wrote", async (t) => {
    const { scene, mail } = await setTwo(t, { ...route, fallback: { to: "email", chat_id: "a@example.com" } });
    await send(scene, { chat: 666 });
    const job = await done(t, scene);
    assert.deepEqual([job.state, ...ways(job)], ["done", "telegram replaced", "email sent"]);
    assert.deepEqual([scene.telegram.tries, mail.messages.length], [0, 1]);
  });

  test("of a fallback must be allowed too", async (t) => {
    const fallback = { to: "email", chat_id: "{who}@example.com" };
    const { scene, mail } = await setTwo(t, { ...route, allow_chat_ids: ["42", "a@example.com"], fallback });
    scene.telegram.mode = "refused";
    await send(scene, { chat: 42, who: "b" });
    const job = await done(t, scene);
    assert.deepEqual([job.state, ...ways(job)], ["dead", "telegram replaced", "email dead"]);
    assert.match(job.reason ?? "", /"b@example\.com", which is not in "allow_chat_ids"/);
    assert.equal(mail.tries, 0);
  });

  test("is not looked at when it is the platform's home channel, or the operator wrote it", async (t) => {
    const { scene } = await setTwo(t, { ...route, deliver_extra: { chat_id: "{chat}" }, allow_chat_ids: ["-7"] });
    await send(scene, { chat: "" });
    assert.equal((await done(t, scene)).state, "done");
    const fixed = await setTwo(t, { ...route, deliver_extra: { chat_id: "-8", thread_id: "{chat}" } });
    await send(fixed.scene, { chat: 5 });
    assert.equal((await done(t, fixed.scene)).state, "done");
  });

  test("must be allowed for a direct delivery, whose sender is told", async (t) => {
    const { scene } = await setTwo(t, { ...route, deliver_only: true });
    assert.equal((await send(scene, { chat: 666 }, "1")).status, "error");
    const { state, reason } = await newestJob(scene);
    assert.equal(state, "refused");
    assert.match(reason ?? "", /"666", which is not in "allow_chat_ids"/);
    assert.equal(scene.telegram.tries, 0);
    assert.equal((await send(scene, { chat: 42 }, "1")).status, "delivered");
  });
});
