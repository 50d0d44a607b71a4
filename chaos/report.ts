import type { ChaosOptions } from "./plan.ts";
import type { RoundResult } from "./round.ts";

/** A round in one line, and what broke a promise below it. */
export function roundLines(result: RoundResult, { rounds }: Pick<ChaosOptions, "rounds">): string[] {
  const { round, promised, delivered, twiceAllowed, refused, unanswered, recoveryMs, violations, keptIn } = result;
  const roles = result.roles.every((role) => role === "all") ? "" : ` (${result.roles.join(", ")})`;
  const counts = [
    `${promised} promised`,
    `${delivered[1] ?? 0} once`,
    `${twiceAllowed} twice in flight`,
    `${refused} refused`,
    `${unanswered} unanswered`,
  ];
  const line = [
    `round ${String(round).padStart(String(rounds).length)}`,
    `${result.faults}${roles}${result.isStrict ? ", strict" : ""}`.padEnd(40),
    counts.join(", "),
    `final after ${(recoveryMs / 1000).toFixed(1)} s`,
    violations.length === 0 ? "ok" : `${violations.length} VIOLATIONS`,
  ].join("  ");
  return [line, ...violations.slice(0, 10).map(violationLine), ...moreLines(violations.length, keptIn)];
}

function violationLine({ kind, n, detail }: RoundResult["violations"][number]): string {
  return `  ${kind}${n === undefined ? "" : ` event ${n}`}: ${detail}`;
}

function moreLines(count: number, keptIn: string | undefined): string[] {
  const more = count > 10 ? [`  … and ${count - 10} more`] : [];
  return keptIn === undefined
    ? more
    : [...more, `  kept in ${keptIn}: violations.json, evidence.json, ledger.json, homes`];
}

export interface Summary {
  readonly store: string;
  readonly gateways: number;
  readonly rounds: number;
  readonly seed: number;
  /** Rounds by kind of fault, and those of orderly stops alone. */
  readonly faults: Readonly<Record<string, number>>;
  readonly strictRounds: number;
  readonly promised: number;
  readonly delivered: Readonly<Record<string, number>>;
  readonly twiceAllowed: number;
  readonly twiceAfterOrderlyStops: number;
  readonly lost: number;
  readonly mistaken: number;
  readonly refused: number;
  readonly unanswered: number;
  readonly arrivedAnyway: number;
  readonly longestRecoveryMs: number;
  readonly violations: number;
}

export function summaryOf(results: readonly RoundResult[], { store, gateways, seed }: ChaosOptions): Summary {
  const sum = (count: (result: RoundResult) => number) => results.reduce((total, result) => total + count(result), 0);
  const delivered: Record<string, number> = {};
  for (const result of results) {
    for (const [times, events] of Object.entries(result.delivered)) delivered[times] = (delivered[times] ?? 0) + events;
  }
  const kinds = results.flatMap(({ faults }) => faults.split(" + ").map((fault) => fault.split(" ")[0]!));
  const strict = results.filter(({ isStrict }) => isStrict);
  const twice = ({ violations }: RoundResult) => violations.filter(({ kind }) => kind === "TWICE").length;
  return {
    ...{ store, gateways, seed, rounds: results.length },
    faults: Object.fromEntries(
      Map.groupBy(kinds, (kind) => kind)
        .entries()
        .map(([kind, all]) => [kind, all.length]),
    ),
    strictRounds: strict.length,
    promised: sum(({ promised }) => promised),
    delivered,
    twiceAllowed: sum(({ twiceAllowed }) => twiceAllowed),
    twiceAfterOrderlyStops: strict.reduce((total, result) => total + twice(result), 0),
    lost: sum(({ violations }) => violations.filter(({ kind }) => kind === "LOST").length),
    mistaken: sum(({ mistaken }) => mistaken),
    refused: sum(({ refused }) => refused),
    unanswered: sum(({ unanswered }) => unanswered),
    arrivedAnyway: sum(({ arrivedAnyway }) => arrivedAnyway),
    longestRecoveryMs: Math.max(0, ...results.map(({ recoveryMs }) => recoveryMs)),
    violations: sum(({ violations }) => violations.length),
  };
}

export function summaryLines(summary: Summary): string[] {
  const rows: [string, string | number][] = [
    ["store", `${summary.store}, ${summary.gateways} gateway${summary.gateways > 1 ? "s" : ""}`],
    ["rounds", `${summary.rounds}, of which ${summary.strictRounds} with orderly stops alone`],
    ["faults", counted(summary.faults)],
    ["promised (202, or 200)", summary.promised],
    ["delivered so often", counted(summary.delivered, (times, events) => `${times}×: ${events}`)],
    ["lost", summary.lost],
    ["twice, in flight", summary.twiceAllowed],
    ["twice, orderly stops", summary.twiceAfterOrderlyStops],
    ["sent, called refused", summary.mistaken],
    ["refused (503, 502)", summary.refused],
    ["not answered", summary.unanswered],
    ["these two, arrived", summary.arrivedAnyway],
    ["longest until final", `${(summary.longestRecoveryMs / 1000).toFixed(1)} s`],
    ["violations", summary.violations],
    ["seed", summary.seed],
  ];
  return ["", ...rows.map(([name, value]) => `${name.padEnd(24)}${value}`)];
}

function counted(counts: Readonly<Record<string, number>>, say = (name: string, count: number) => `${name} ${count}`) {
  return Object.entries(counts)
    .map(([name, count]) => say(name, count))
    .join(", ");
}
