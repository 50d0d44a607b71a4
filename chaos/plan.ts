import { makeRandom, type Random } from "../bench/fuzz-random.ts";
import type { Numbered, RouteName } from "./routes.ts";

export type StoreName = "sqlite" | "postgres";

/** What can be done to the gateways and their store. */
export const faultKinds = {
  kill: { stores: ["sqlite", "postgres"], what: "SIGKILL of a gateway, started again at once" },
  stop: { stores: ["sqlite", "postgres"], what: "SIGTERM of a gateway, started again when it has ended" },
  freeze: { stores: ["sqlite", "postgres"], what: "SIGSTOP of a gateway, SIGCONT later" },
  disk: { stores: ["sqlite"], what: "the disk of the home is full, and has space again later" },
  "db-restart": { stores: ["postgres"], what: "the database is stopped in good order (fast) and started again" },
  "db-crash": { stores: ["postgres"], what: "the database crashes (immediate) and is started again" },
  "db-freeze": { stores: ["postgres"], what: "the database stands still, and goes on later" },
  cut: { stores: ["postgres"], what: "nothing passes between a gateway and the database, and later all of it" },
  sever: { stores: ["postgres"], what: "connections of a gateway to the database are ended and refused for a while" },
} as const satisfies Record<string, { stores: readonly StoreName[]; what: string }>;

export type FaultKind = keyof typeof faultKinds;
export type Role = "all" | "ingest" | "worker";

export interface ChaosOptions {
  readonly store: StoreName;
  readonly rounds: number;
  readonly seed: number;
  /** Gateways on one database; one with SQLite. */
  readonly gateways: number;
  /** Events of one round. */
  readonly events: number;
  /** How long the load of one round lasts. */
  readonly loadMs: number;
  readonly leaseMs: number;
  /** What may be done. */
  readonly faults: readonly FaultKind[];
  /** Whether comments on GitHub are written too, which takes the real `gh`. */
  readonly comments: boolean;
  /** Whether the folders of good rounds stay, too. */
  readonly keep: boolean;
  /** A fault of the fakes themselves, to see that it is found: a piece is forgotten, or noted twice. */
  readonly sabotage: "forget" | "repeat" | undefined;
}

export interface PlannedFault {
  readonly kind: FaultKind;
  /** Index of the gateway it happens to, if it happens to one. */
  readonly gateway: number;
  /** After the beginning of the load. */
  readonly atMs: number;
  /** Until it is mended. */
  readonly holdMs: number;
}

export interface PlannedEvent extends Numbered {
  readonly route: RouteName;
  readonly deliveryId: string;
  /** After the beginning of the load. */
  readonly atMs: number;
  /** Copies sent at the same moment, each to the next gateway that listens. */
  readonly copies: number;
  /** Another copy, so long after the first. */
  readonly echoMs: number | undefined;
  /** Sent again when it was refused or not answered. */
  readonly isPatient: boolean;
  readonly paddingBytes: number;
}

/** What will happen in a round, all of it decided by the seed. */
export interface RoundPlan {
  readonly number: number;
  readonly faults: readonly PlannedFault[];
  /** Stops are orderly and no answer is lost: then nothing may arrive twice. */
  readonly isStrict: boolean;
  readonly roles: readonly Role[];
  readonly agent: "command" | "preview";
  readonly events: readonly PlannedEvent[];
}

/** Plans all rounds. Kinds of faults are dealt like cards, so that each comes up before one comes up again. */
export function planRounds(options: ChaosOptions): RoundPlan[] {
  const random = makeRandom(options.seed, 0);
  let deck: FaultKind[] = [];
  return Array.from({ length: options.rounds }, (_, index) => {
    if (deck.length === 0) deck = shuffled(options.faults, random);
    return planRound(index + 1, deck.pop()!, options);
  });
}

function shuffled<Item>(items: readonly Item[], random: Random): Item[] {
  const rest = [...items];
  return items.map(() => rest.splice(random.below(rest.length), 1)[0]!);
}

function planRound(number: number, first: FaultKind, options: ChaosOptions): RoundPlan {
  const random = makeRandom(options.seed, number);
  const isStrict = first === "stop";
  // Beside another fault a stop is one of two; alone it must not cost a single copy, so it gets rounds of its own.
  const others = options.faults.filter((kind) => kind !== first);
  const kinds = isStrict || others.length === 0 || random.percent(50) ? [first] : [first, random.pick(others)];
  const roles = rolesOf(options, random);
  return {
    number,
    faults: kinds.map((kind, index) => planFault(kind, index, options, random)),
    isStrict,
    roles,
    agent: random.percent(50) ? "command" : "preview",
    events: Array.from({ length: options.events }, (_, n) =>
      planEvent(n + 1, number, kinds.includes("disk"), options, random),
    ),
  };
}

function rolesOf({ gateways }: ChaosOptions, random: Random): Role[] {
  const mixed: Role[] = ["ingest", "worker", "all"];
  const isMixed = gateways >= 3 && random.percent(30);
  return Array.from({ length: gateways }, (_, index) => (isMixed ? (mixed[index] ?? "all") : "all"));
}

function planFault(kind: FaultKind, index: number, options: ChaosOptions, random: Random): PlannedFault {
  const share = index === 0 ? 20 + random.below(30) : 40 + random.below(40);
  const atMs = Math.round((options.loadMs * share) / 100);
  return { kind, atMs, gateway: random.below(options.gateways), holdMs: holdMs(kind, options, random) };
}

/** Some longer than a lease, and a few longer than a sender is kept waiting. */
function holdMs(kind: FaultKind, { leaseMs, store }: ChaosOptions, random: Random): number {
  if (kind === "kill" || kind === "stop") return 0;
  if (kind === "db-restart" || kind === "db-crash") return random.below(2_000);
  if (kind === "disk") return 1_000 + random.below(2_000);
  if (store === "sqlite" || random.percent(50)) return 500 + random.below(2_500);
  return random.percent(80) ? leaseMs + random.below(3_000) : 11_000 + random.below(2_000);
}

function planEvent(n: number, round: number, isBulky: boolean, options: ChaosOptions, random: Random): PlannedEvent {
  // A place of its own, or one of a few where messages queue up.
  const chat = String(random.percent(85) ? 1_000_000 + n : 1 + random.below(12));
  const isStorm = n === 1;
  return {
    ...{ n, round, chat },
    route: isStorm ? "short" : pickRoute(options, random),
    deliveryId: `${options.seed}-${round}-${n}`,
    atMs: random.below(options.loadMs),
    copies: isStorm ? 50 : random.percent(10) ? 2 + random.below(3) : 1,
    echoMs: random.percent(7) ? random.below(3_000) : undefined,
    isPatient: random.percent(70),
    paddingBytes: isBulky ? 20_000 + random.below(100_000) : random.below(random.percent(10) ? 30_000 : 2_000),
  };
}

function pickRoute({ comments }: ChaosOptions, random: Random): RouteName {
  const ticket = random.below(100);
  if (ticket < 8) return "long";
  if (ticket < 18) return "both";
  if (ticket < 30) return "few";
  if (ticket < 45) return "direct";
  return ticket < 50 && comments ? "review" : "short";
}
