import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { EventRecord } from "../src/store/store.ts";
import type { OwnPostgresServer } from "../test/tools/postgres.ts";
import { readRuns } from "./agent.ts";
import { strikeAll } from "./faults.ts";
import type { ChaosGateway } from "./gateway.ts";
import { type Evidence, judge, type Verdict } from "./judge.ts";
import { checkLedger, readRecords, waitUntilFinal } from "./ledger.ts";
import { runLoad } from "./load.ts";
import type { ChaosOptions, RoundPlan } from "./plan.ts";
import { type Stage, setStage } from "./stage.ts";

export interface RoundResult extends Verdict {
  readonly round: number;
  /** Such as `kill 2 + db-freeze 4.1 s`. */
  readonly faults: string;
  readonly isStrict: boolean;
  readonly roles: readonly string[];
  /** From the moment when all was mended and all senders were done until every job was final. */
  readonly recoveryMs: number;
  readonly elapsedMs: number;
  /** Where everything of the round is kept, if a promise was broken or it was asked for. */
  readonly keptIn: string | undefined;
}

/** Senders try again for so long after the load, and then the gateways have so long to finish. */
const sendersMs = 40_000;
const settleMs = 120_000;

/** Plays a round in `folder`. What it needs is gone afterwards, but for the folder when a promise was broken. */
export async function playRound(
  plan: RoundPlan,
  options: ChaosOptions,
  folder: string,
  server: OwnPostgresServer | undefined,
): Promise<RoundResult> {
  const startedAt = performance.now();
  const stage = await setStage(plan, options, folder, server);
  let isKept = true;
  try {
    await Promise.all(stage.gateways.map((gateway) => gateway.start()));
    const { evidence, recoveryMs } = await play(plan, options, stage);
    const verdict = judge(evidence);
    isKept = options.keep || verdict.violations.length > 0;
    if (isKept) keepEvidence(folder, evidence, verdict);
    return {
      ...{ round: plan.number, faults: faultsInWords(plan), isStrict: plan.isStrict, roles: plan.roles, ...verdict },
      ...{ recoveryMs, elapsedMs: performance.now() - startedAt, keptIn: isKept ? folder : undefined },
    };
  } finally {
    server?.thaw();
    await stage.close(isKept);
  }
}

async function play(plan: RoundPlan, { loadMs, leaseMs, seed }: ChaosOptions, stage: Stage) {
  const { gateways } = stage;
  const untilMs = performance.now() + loadMs + sendersMs;
  const load = runLoad({ gateways, events: plan.events, seed: seed + plan.number, untilMs });
  const [answers, troubles] = await Promise.all([load, strikeAll(stage, plan.faults)]);
  const mendedAt = performance.now();
  const isFinal = await waitUntilFinal(stage, settleMs);
  const recoveryMs = performance.now() - mendedAt;
  // Whatever somebody may still be about to send counts too.
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  const records = await readRecords(stage);
  const surprises = [
    ...(isFinal ? [] : [`not everything was final after ${settleMs} ms`]),
    ...(await checkLedger(stage)).map((finding) => `ledger check: ${finding}`),
    ...gateways.flatMap((gateway) => surprisesOf(gateway)),
  ];
  const { copies, lookups, runsFile } = stage;
  const runs = readRuns(runsFile);
  const evidence: Evidence = { plan, answers, copies, lookups, troubles, records, runs, leaseMs, surprises };
  return { evidence, recoveryMs };
}

/** Log lines that stand for a bug, whatever the fault. */
const bugs = /in a way it should not|The worker failed|Unexpected|TypeError|ReferenceError|RangeError|AssertionError/;

function surprisesOf({ settings, surprises, logFile }: ChaosGateway): string[] {
  const lines = readFileSync(logFile, "utf8").split("\n");
  // What keeps it from starting, such as a database that is away, is said in one plain line.
  const odd = lines.filter((line) => bugs.test(line) || !/^(?:\{|postern: |$)/.test(line));
  const name = `gateway ${settings.index + 1}`;
  return [
    ...surprises.map((text) => `${name} ${text}`),
    ...odd.slice(0, 3).map((line) => `${name} logged ${line.slice(0, 500)}`),
  ];
}

function faultsInWords({ faults }: RoundPlan): string {
  const words = faults.map(({ kind, gateway, holdMs }) => {
    const whom = kind === "disk" || kind.startsWith("db-") ? "" : ` ${gateway + 1}`;
    return `${kind}${whom}${holdMs > 0 ? ` ${(holdMs / 1000).toFixed(1)} s` : ""}`;
  });
  return words.join(" + ");
}

/** Writes down what was seen, beside the homes of the gateways. */
function keepEvidence(folder: string, evidence: Evidence, { violations }: Verdict): void {
  const { records, ...rest } = evidence;
  const readable = records.map((record: EventRecord) => ({ ...record, body: undefined, headers: undefined }));
  const guilty = new Set(violations.map(({ n }) => n));
  const write = (name: string, value: unknown) =>
    writeFileSync(join(folder, name), JSON.stringify(value, undefined, 1));
  write("evidence.json", rest);
  write("ledger.json", readable);
  const events = evidence.plan.events.filter(({ n }) => guilty.has(n));
  const ids = new Set(events.map(({ deliveryId }) => deliveryId));
  write("violations.json", {
    violations,
    troubles: evidence.troubles,
    events,
    answers: evidence.answers.filter(({ n }) => guilty.has(n)),
    copies: evidence.copies.filter(({ text }) => events.some(({ n }) => text.startsWith(`event ${n} `))),
    ledger: readable.filter(({ deliveryId }) => ids.has(deliveryId)),
  });
}
