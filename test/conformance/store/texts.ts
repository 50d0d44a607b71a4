import assert from "node:assert/strict";
import {
  aClaim,
  aDirectEvent,
  aLastTry,
  anAgentEvent,
  anEndedRun,
  anEndedTry,
  aResult,
  newJob,
  noon,
} from "../../tools/rows.ts";
import { heldBy, jobOf, record, type Suite, takenJob } from "./suite.ts";

const hostile = {
  "a NUL": "a\0b",
  "a lone high surrogate": "a\ud800b",
  "a lone low surrogate": "a\udc00b",
  "quotes and escapes": `a'"\\\\u0000 \${b} :now $1 -- b`,
  "other planes and bidi marks": "𝕏 👩‍👩‍👧 \u202e\u2066 ﷽",
  "every control character": Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)).join(""),
};

/** What strangers write into texts. */
export function testTexts({ on, kind }: Suite): void {
  /** UTF-8 has no lone surrogates, and PostgreSQL's texts no NUL. */
  const asKept = (text: string) => (kind === "postgres" ? text.replaceAll("\0", "\ufffd") : text).toWellFormed();

  for (const [what, text] of Object.entries(hostile)) {
    on(`may hold ${what} in an event and what is sent of it`, async (store) => {
      const event = { deliveryId: text, route: text, type: text, headers: text };
      const direct = aDirectEvent({ ...event, text, targets: [text] });
      assert.equal((await store.accept(direct)).duplicate, false);
      assert.deepEqual(await store.accept(aDirectEvent(event)), { duplicate: true, isUnderWay: true });
      const kept = await record(store, direct.event.id);
      for (const name of ["deliveryId", "route", "type", "headers"] as const)
        assert.equal(kept[name], asKept(text), name);
      const [message] = kept.jobs[0]!.messages;
      assert.deepEqual([message?.text, message?.target], [asKept(text), asKept(text)]);
      await store.finishAttempt(aLastTry(heldBy(direct)[0]!, { error: text, reference: text }));
      const { state, reason, messages } = await jobOf(store, direct.event.id);
      assert.deepEqual([state, reason, messages[0]?.attempts[0]?.error], ["refused", asKept(text), asKept(text)]);
      assert.equal((await store.accept(aDirectEvent(event))).duplicate, false, "its delivery id was freed");
    });

    on(`may hold ${what} in what an agent does`, async (store) => {
      const job = await takenJob(store, { plan: text, lane: text });
      assert.equal(job.plan, asKept(text));
      await store.finishRun(anEndedRun(job, { result: aResult({ answer: text, transcript: text, reason: text }) }));
      const [run] = (await jobOf(store, job.eventId)).runs;
      assert.deepEqual([run?.answer, run?.transcript, run?.reason], [asKept(text), asKept(text), asKept(text)]);
      const [message] = await store.claimMessages(aClaim());
      assert.equal(message?.text, asKept(text));
      await store.finishAttempt(anEndedTry(message!, { reference: text }));
      assert.equal((await jobOf(store, job.eventId)).messages[0]?.reference, asKept(text));
    });

    on(`may hold ${what} in what is added by hand`, async (store) => {
      const event = anAgentEvent();
      await store.accept(event);
      const eventId = event.event.id;
      await store.addJob({ eventId, now: noon, job: newJob("delivery", { text, origin: text, lane: text }) });
      const added = (await record(store, eventId)).jobs[1];
      assert.deepEqual([added?.origin, added?.messages[0]?.text], [asKept(text), asKept(text)]);
      await store.cancel({ eventId, now: noon, reason: text });
      assert.equal((await record(store, eventId)).reason, asKept(text));
      await store.writeDocument({ name: "d", seen: 0, text });
      assert.equal((await store.readDocument({ name: "d" }))?.text, asKept(text));
    });
  }

  on("may hold a NUL or a lone surrogate in a long delivery id, which is freed all the same", async (store) => {
    for (const odd of ["one \0", "two \ud800"]) {
      const direct = aDirectEvent({ deliveryId: odd + "long ".repeat(200) });
      await store.accept(direct);
      await store.withdraw({ eventId: direct.event.id, now: noon, reason: "late" });
      assert.equal((await store.accept(aDirectEvent({ deliveryId: direct.event.deliveryId }))).duplicate, false);
    }
  });

  on("may be long", async (store) => {
    const text = "Lorem ipsum 東京 ".repeat(100_000);
    const direct = aDirectEvent({ text });
    await store.accept(direct);
    assert.equal((await jobOf(store, direct.event.id)).messages[0]?.text, text);
  });
}
