// npm run chaos: real gateways, real load and fake services that lose answers; then things are killed, frozen, cut off and
// filled up, from a seed. Ends with exit code 1 when an event that was answered 202 did not arrive, or one arrived twice
// that must not. README.md in this folder says more.
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { postgresFolder } from "../test/needs.ts";
import { playRounds } from "./chaos.ts";
import { inOwnNamespace } from "./disk.ts";
import { type ChaosOptions, type FaultKind, faultKinds, type StoreName } from "./plan.ts";
import { roundLines, summaryLines, summaryOf } from "./report.ts";

const { values } = parseArgs({
  allowNegative: true,
  options: {
    store: { type: "string", default: "sqlite" },
    rounds: { type: "string", default: "10" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
    gateways: { type: "string" },
    events: { type: "string", default: "150" },
    seconds: { type: "string", default: "6" },
    lease: { type: "string", default: "4" },
    faults: { type: "string" },
    comments: { type: "boolean", default: true },
    sabotage: { type: "string" },
    keep: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});

function fail(message: string): never {
  console.error(message);
  process.exit(2);
}

function wholeNumber(name: string, text: string, most = 999_999_999): number {
  if (/^\d{1,9}$/.test(text) && Number(text) > 0 && Number(text) <= most) return Number(text);
  return fail(`--${name} takes a whole number from 1 to ${most}, found "${text}"`);
}

function storeName(text: string): StoreName {
  if (text === "sqlite" || text === "postgres") return text;
  return fail(`--store takes sqlite or postgres, found "${text}"`);
}

function gatewayCount(store: StoreName, text: string | undefined): number {
  const count = wholeNumber("gateways", text ?? (store === "sqlite" ? "1" : "3"), 9);
  if (store === "postgres" || count === 1) return count;
  return fail("--gateways must be 1 with --store sqlite: a SQLite ledger is one gateway's own");
}

function faultList(store: StoreName, text: string | undefined): FaultKind[] {
  const known = (Object.keys(faultKinds) as FaultKind[]).filter((kind) =>
    (faultKinds[kind].stores as readonly StoreName[]).includes(store),
  );
  const wanted = text?.split(",") ?? known;
  const unknown = wanted.find((kind) => !(known as string[]).includes(kind));
  if (unknown !== undefined) fail(`--faults takes some of ${known.join(",")} with ${store}, found "${unknown}"`);
  return wanted as FaultKind[];
}

function sabotageKind(text: string | undefined): ChaosOptions["sabotage"] {
  if (text === undefined || text === "forget" || text === "repeat") return text;
  return fail(`--sabotage takes forget or repeat, found "${text}"`);
}

async function optionsOf(): Promise<ChaosOptions | number> {
  const store = storeName(values.store);
  let faults = faultList(store, values.faults);
  const options = {
    store,
    rounds: wholeNumber("rounds", values.rounds),
    seed: wholeNumber("seed", values.seed),
    gateways: gatewayCount(store, values.gateways),
    events: wholeNumber("events", values.events, 100_000),
    loadMs: wholeNumber("seconds", values.seconds, 3_600) * 1000,
    leaseMs: wholeNumber("lease", values.lease, 3_600) * 1000,
    comments: values.comments && spawnSync("gh", ["--version"]).error === undefined,
    keep: values.keep,
    sabotage: sabotageKind(values.sabotage),
  };
  if (store === "postgres" && postgresFolder() === undefined) {
    fail("PostgreSQL's server programs are not on this machine: apt-get install postgresql");
  }
  if (faults.includes("disk")) {
    const place = await inOwnNamespace();
    if (typeof place === "number") return place;
    if (place === "impossible") {
      console.error("Skipped: the fault disk needs the right to mount a file system (root, or user namespaces)");
      faults = faults.filter((kind) => kind !== "disk");
      if (faults.length === 0) return 0;
    }
  }
  if (values.comments && !options.comments)
    console.error("Skipped: comments on GitHub need the program gh: apt-get install gh");
  return { ...options, faults };
}

async function main(options: ChaosOptions): Promise<number> {
  const { store, gateways, rounds, seed } = options;
  const print = (lines: readonly string[]) => lines.forEach((line) => void console.log(line));
  if (!values.json) {
    print([`Chaos on ${store}, ${gateways} gateway${gateways > 1 ? "s" : ""}, ${rounds} rounds, seed ${seed}`]);
  }
  const results = await playRounds(options, (result) => {
    print(values.json ? [JSON.stringify(result)] : roundLines(result, options));
  });
  const summary = summaryOf(results, options);
  print(values.json ? [JSON.stringify({ summary })] : summaryLines(summary));
  return summary.violations === 0 ? 0 : 1;
}

const options = await optionsOf();
if (typeof options === "number") process.exit(options);
// What runs and lies about is ended and removed by guards of its own, as soon as this process is gone.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));
process.exitCode = await main(options);
