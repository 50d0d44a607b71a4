import type { FaultKind, PlannedFault } from "./plan.ts";
import type { Stage } from "./stage.ts";
import { pause } from "./wait.ts";

/** When something was wrong, and with which gateway (`undefined`: all of them). Unix milliseconds. */
export interface Trouble {
  readonly kind: FaultKind;
  readonly gateway: number | undefined;
  readonly from: number;
  readonly to: number;
}

/** Does it, and mends it after its time. Fulfils when all is as before; calls back with the time of what was wrong. */
type Strike = (stage: Stage, fault: PlannedFault, note: (from: number, to: number) => void) => Promise<void>;

const strikes: Readonly<Record<FaultKind, Strike>> = {
  async kill({ gateways }, fault, note) {
    const gateway = gateways[fault.gateway]!;
    const from = Date.now();
    await gateway.kill();
    note(from, Date.now());
    await gateway.start();
  },
  async stop({ gateways }, fault) {
    const gateway = gateways[fault.gateway]!;
    await gateway.stop();
    await gateway.start();
  },
  freeze: held(({ gateways }, { gateway }) => ({
    begin: () => gateways[gateway]!.freeze(),
    mend: () => gateways[gateway]!.thaw(),
  })),
  disk: held(({ disk }) => ({ begin: () => disk!.fill(), mend: () => disk!.free() })),
  "db-restart": held(({ server }) => ({ begin: () => server!.stop("fast"), mend: () => server!.start() })),
  "db-crash": held(({ server }) => ({ begin: () => server!.stop("immediate"), mend: () => server!.start() })),
  "db-freeze": held(({ server }) => ({ begin: () => server!.freeze(), mend: () => server!.thaw() })),
  cut: held(({ networks }, { gateway }) => ({
    begin: () => networks[gateway]!.cut(),
    mend: () => networks[gateway]!.mend(),
  })),
  sever: held(({ networks }, { gateway }) => ({
    begin: () => networks[gateway]!.sever(),
    mend: () => networks[gateway]!.mend(),
  })),
};

interface Ways {
  readonly begin: () => Promise<void> | void;
  readonly mend: () => Promise<void> | void;
}

/** A fault that lasts for a while. */
function held(waysOf: (stage: Stage, fault: PlannedFault) => Ways): Strike {
  return async (stage, fault, note) => {
    const { begin, mend } = waysOf(stage, fault);
    const from = Date.now();
    await begin();
    await pause(fault.holdMs);
    await mend();
    note(from, Date.now());
  };
}

/** What happens to the database or the disk happens to every gateway. */
const perGateway: readonly FaultKind[] = ["kill", "stop", "freeze", "cut", "sever"];

/** What a fault is done to: two that are done to the same must not mix. */
function victimOf({ kind, gateway }: PlannedFault): string {
  if (kind === "disk") return kind;
  if (kind.startsWith("db-")) return "database";
  return kind === "cut" || kind === "sever" ? `network ${gateway}` : `gateway ${gateway}`;
}

/** Brings about the faults of a round, each at its time after now. Answers when what was wrong. */
export async function strikeAll(stage: Stage, faults: readonly PlannedFault[]): Promise<Trouble[]> {
  const troubles: Trouble[] = [];
  const busy = new Map<string, Promise<void>>();
  const all = faults.map(async (fault) => {
    await pause(fault.atMs);
    const victim = victimOf(fault);
    const gateway = perGateway.includes(fault.kind) ? fault.gateway : undefined;
    const note = (from: number, to: number) => void troubles.push({ kind: fault.kind, gateway, from, to });
    const before = busy.get(victim) ?? Promise.resolve();
    const done = before.then(() => strikes[fault.kind](stage, fault, note));
    busy.set(victim, done);
    await done;
  });
  await Promise.all(all);
  return troubles;
}
