import type { Operations } from "./store.ts";

// A record, so that it does not compile when one is missing.
const names: Readonly<Record<keyof Operations, true>> = {
  accept: true,
  withdraw: true,
  ignore: true,
  claimJobs: true,
  finishRun: true,
  park: true,
  unpark: true,
  claimMessages: true,
  recordPart: true,
  finishAttempt: true,
  extendLeases: true,
  lostLeases: true,
  expireLeases: true,
  nextDue: true,
  shiftTimes: true,
  addJob: true,
  cancel: true,
  importEvent: true,
  listEvents: true,
  readEvent: true,
  tallyJobs: true,
  listTroubles: true,
  prune: true,
  pruneClaims: true,
  measure: true,
  spend: true,
  giveBack: true,
  readDocument: true,
  writeDocument: true,
};

/** Every operation of a store. */
export const operationNames = Object.keys(names) as readonly (keyof Operations)[];
