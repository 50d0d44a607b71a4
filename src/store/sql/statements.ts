import type { Operations } from "../store.ts";
import { createListing, eventStatements } from "./events.ts";
import { jobStatements } from "./jobs.ts";
import { messageStatements } from "./messages.ts";
import { sharedStatements } from "./shared.ts";
import type { Dialect, Work } from "./statement.ts";

/** The store's operations as work on statements. The driver puts each into a transaction. */
export type Works = {
  readonly [Name in keyof Operations]: (args: Parameters<Operations[Name]>[0]) => Work<ReturnType<Operations[Name]>>;
};

export type Statements = ReturnType<typeof prepareStatements>;

/** Every statement in one database's words. */
export function prepareStatements(dialect: Dialect) {
  return {
    ...eventStatements(dialect),
    ...jobStatements(dialect),
    ...messageStatements(dialect),
    ...sharedStatements(dialect),
    listEvents: createListing(),
    queueUp: dialect.queueUp,
  };
}

/** The JSON list that `isAmong` reads. */
export function idsOf(ids: readonly string[]): string {
  return JSON.stringify(ids.map((id) => ({ id })));
}
