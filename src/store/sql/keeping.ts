import type { FinalEventState } from "../states.ts";
import { idsOf, type Statements, type Works } from "./statements.ts";

type Keeping = "prune" | "pruneClaims" | "measure" | "spend" | "giveBack" | "readDocument" | "writeDocument";

/** Keeping the ledger in bounds, and what gateways share besides events. */
export function keeping(sql: Statements): Pick<Works, Keeping> {
  return {
    *prune({ after, limit, before }) {
      const held = (yield* sql.holdOldEvents({ after, limit })).map(({ id }) => id);
      const finished = held.length > 0 ? yield* sql.readFinished({ ids: idsOf(held) }) : [];
      const old = finished.filter(({ state, at }) => at < (before[state as FinalEventState] ?? 0)).map(({ id }) => id);
      if (old.length > 0) for (const forget of sql.forget) yield* forget({ ids: idsOf(old) });
      return { forgotten: old.length, next: held.length < limit ? undefined : held.at(-1) };
    },
    pruneClaims: (args) => sql.pruneClaims(args),
    *measure() {
      return { bytes: (yield* sql.measure({}))?.bytes ?? 0 };
    },
    *spend({ route, count, limit, windowMs, now }) {
      return (yield* sql.spend({ route, count, limit, windowMs, now })) ?? { granted: 0, windowStart: now };
    },
    *giveBack({ route, count, windowStart }) {
      yield* sql.giveBack({ route, count, windowStart });
    },
    readDocument: (args) => sql.readDocument(args),
    *writeDocument({ name, seen, text }) {
      if (seen === 0) return (yield* sql.insertDocument({ name, text })) === 1;
      return (yield* sql.updateDocument({ name, seen, text })) === 1;
    },
  };
}
