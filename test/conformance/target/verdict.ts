import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DeliveryError } from "../../../src/core/errors.ts";
import { newId } from "../../../src/core/id.ts";
import { Ledger } from "../../../src/ledger/ledger.ts";
import { openSqlite } from "../../../src/store/sqlite.ts";
import type { Store } from "../../../src/store/store.ts";
import type { Receipt, Target } from "../../../src/target/target.ts";
import { eventOf } from "../../core/event.ts";
import { aRule, aTake } from "../../tools/terms.ts";

/** What the ledger makes of a try. */
export interface Verdict {
  /** The message's. */
  readonly state: string;
  /** Milliseconds from the end of this try to the next one. */
  readonly nextTryInMs: number | undefined;
  readonly outcome: string | null | undefined;
}

/** A ledger that judges first tries by the default rules, with the longest of the waits that jitter may choose. */
export class Judge {
  readonly #store: Store;
  readonly #folder: string;
  #now = 1_700_000_000_000;

  private constructor(store: Store, folder: string) {
    this.#store = store;
    this.#folder = folder;
  }

  static async open(): Promise<Judge> {
    const folder = await mkdtemp(join(tmpdir(), "judge-"));
    return new Judge(await openSqlite({ path: join(folder, "ledger.db"), readOnly: false }), folder);
  }

  async close(): Promise<void> {
    await this.#store.close();
    await rm(this.#folder, { recursive: true });
  }

  /** Records how the first try of a message ended. */
  async judge(target: Target, end: Receipt | DeliveryError): Promise<Verdict> {
    const store = this.#store;
    const now = () => this.#now;
    const ledger = new Ledger({ store, now, random: () => 1, owner: "judge", leaseMs: 30_000, claimMs: 3_600_000 });
    const event = eventOf({ id: newId(now()), receivedAt: now(), deliveryId: newId(now()) });
    const drafts = [{ target: target.name, extra: {}, lane: null, refusal: null, fallback: [] }];
    await ledger.acceptRun(event, { prompt: "", skills: [], tools: [] }, drafts, { route: "ci", onCrash: "rerun" });
    const [job] = await ledger.takeJobs(aTake(1));
    await ledger.ran(job!, { status: "completed", answer: "An answer", transcript: [] });
    const [message] = await ledger.takeMessages(aTake(1));
    const judgement = { rule: aRule, repeats: target.repeats, mayRetry: true, isTargetsFault: false };
    if (end instanceof Error) await ledger.failed(message!, end, judgement);
    else await ledger.sent(message!, end.reference);
    const record = (await store.readEvent({ id: event.id }))?.jobs[0]?.messages[0];
    assert.ok(record);
    const { state, dueAt, attempts } = record;
    // Out of the way of the next one.
    await store.cancel({ eventId: event.id, now: now(), reason: "judged" });
    return { state, nextTryInMs: state === "pending" ? dueAt - now() : undefined, outcome: attempts[0]?.outcome };
  }
}
