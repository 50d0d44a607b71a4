// npm run bench:ledger: does a ledger that is full of finished events cost anything? Gateways with an empty ledger and with a
// full one are measured side by side, with a bare server: absolute numbers depend on the machine, their ratio hardly.
import { type ChildProcess, execFileSync } from "node:child_process";
import { mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { openStore } from "../src/ledger/open.ts";
import type { StoreSettings } from "../src/store/settings.ts";
import { finalEventStates } from "../src/store/states.ts";
import type { ListArgs, Store } from "../src/store/store.ts";
import { type OwnPostgresServer, startPostgres } from "../test/tools/postgres.ts";
import { postgresSettings } from "./database.ts";
import { fillPostgres, forgetKept, placeSqlite } from "./full.ts";
import { fileOf, type Gateway, makeHome, startBare, startGateway } from "./home.ts";
import { type Load, post, Samples } from "./load.ts";
import { storeName, wholeNumber } from "./options.ts";
import { cpuSeconds, main, median, residentMiB, stop } from "./process.ts";

const { values } = parseArgs({
  options: {
    store: { type: "string", default: "sqlite" },
    count: { type: "string" },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "5" },
    keep: { type: "boolean", default: false },
  },
});
const isPostgres = storeName(values.store) === "postgres";
const count = wholeNumber("count", values.count ?? (isPostgres ? "200000" : "1000000"));
const rounds = wholeNumber("rounds", values.rounds);
const seconds = wholeNumber("seconds", values.seconds);

const schema = "postern";
const connections = 64;
/** Idle means idle: after a collection has had its time, not in the moment after the start. */
const idleMs = 3_000;
/** More than a full ledger of this size takes up: nothing is to be forgotten while it is measured. */
const retention = "retention: { max_size: off, max_age: 400d }\n";
/** The one place for agents is taken at once, and for good: then accepting is measured and nothing else. */
const agents = "agent: { backend: command, command: [sleep, infinity], max_concurrent: 1 }\nshutdown_timeout: 1s\n";

/** A home, and the database when the ledger is not in it. */
interface Place {
  readonly home: string;
  readonly url?: string;
}

/** What is measured, side by side with the others. */
interface Subject {
  readonly name: string;
  /** None: the bare server. */
  readonly gateways: number;
  readonly place: () => Promise<Place>;
  /** Removes the place after the round. */
  readonly isFresh: boolean;
}

/** A subject at work, in one round. */
interface Started {
  readonly subject: Subject;
  readonly home: string | undefined;
  readonly children: readonly ChildProcess[];
  readonly ports: readonly number[];
  readonly pids: readonly number[];
  /** From the start of the program to the first 200 on /health. */
  readonly healthMs: number;
  readonly samples: Samples;
  readonly samplesAlone: Samples;
}

interface Measured extends Load {
  readonly healthMs: number;
  /** MiB, of one gateway: 3 seconds after the start, and after the load. */
  readonly idleMiB: number;
  readonly loadedMiB: number;
  /** Processor time of the gateways for one event. */
  readonly cpuMs: number;
  /** Of requests that come one after the other. */
  readonly alone: Load;
}

async function startOne(subject: Subject): Promise<Started> {
  const more = { subject, samples: new Samples(), samplesAlone: new Samples() };
  if (subject.gateways === 0) {
    const { child, port, pid } = await startBare();
    return { ...more, home: undefined, children: [child], ports: [port], pids: [pid], healthMs: 0 };
  }
  const { home, url } = await subject.place();
  const gateways: Gateway[] = [];
  const healths: number[] = [];
  for (let index = 0; index < subject.gateways; index += 1) {
    const startedAt = performance.now();
    const gateway = await startGateway({ home, url });
    await fetch(`http://127.0.0.1:${gateway.port}/health`);
    healths.push(performance.now() - startedAt);
    gateways.push(gateway);
  }
  const [children, ports, pids] = [
    gateways.map(({ child }) => child),
    gateways.map(({ port }) => port),
    gateways.map(({ pid }) => pid),
  ];
  return { ...more, home, children, ports, pids, healthMs: Math.round(median(healths)) };
}

async function stopOne({ subject, home, children }: Started): Promise<void> {
  await Promise.all(children.map(stop));
  if (home !== undefined && subject.isFresh) rmSync(home, { recursive: true });
}

/**
 * Runs all side by side and gives load to one after the other, a second at a time: whatever else this machine does meanwhile,
 * it does it to all of them.
 */
async function round(subjects: readonly Subject[]): Promise<ReadonlyMap<string, Measured>> {
  const started: Started[] = [];
  for (const subject of subjects) started.push(await startOne(subject));
  await wait(idleMs);
  const memory = () => started.map(({ pids }) => median(pids.map(residentMiB)));
  const cpu = () => started.map(({ pids }) => pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0));
  const [idle, cpuBefore] = [memory(), cpu()];
  for (let second = 0; second < seconds; second += 1) {
    for (const { subject, ports, samples } of second % 2 === 0 ? started : started.toReversed()) {
      await post({ ports, path: subject.gateways === 0 ? "/" : "/webhooks/bench", connections, seconds: 1 }, samples);
    }
  }
  const [loaded, cpuAfter] = [memory(), cpu()];
  for (const { subject, ports, samplesAlone } of started) {
    const path = subject.gateways === 0 ? "/" : "/webhooks/bench";
    await post({ ports: ports.slice(0, 1), path, connections: 1, seconds: 1 }, samplesAlone);
  }
  for (const one of started) await stopOne(one);
  const entries = started.map(({ subject, samples, samplesAlone, healthMs }, index) => {
    const cpuMs = (((cpuAfter[index] ?? 0) - (cpuBefore[index] ?? 0)) / samples.count) * 1000;
    const load = { ...samples.summary(), alone: samplesAlone.summary(), cpuMs: Math.round(cpuMs * 1000) / 1000 };
    return [subject.name, { ...load, healthMs, idleMiB: idle[index] ?? 0, loadedMiB: loaded[index] ?? 0 }] as const;
  });
  return new Map(entries);
}

/** Runs the rounds and prints the medians. */
async function compare(subjects: readonly Subject[]): Promise<void> {
  const results: ReadonlyMap<string, Measured>[] = [];
  for (let number = 1; number <= rounds; number += 1) {
    const result = await round(subjects);
    results.push(result);
    for (const [name, measured] of result) console.log(`  round ${number}, ${name}: ${JSON.stringify(measured)}`);
  }
  console.log(`Medians of ${rounds} rounds, ${connections} connections:`);
  for (const { name, gateways } of subjects) {
    const all = results.map((result) => result.get(name)!);
    const of = (value: (one: Measured) => number) => median(all.map(value));
    const against = (other: string) =>
      of((one) => one.requestsPerSecond / results[all.indexOf(one)]!.get(other)!.requestsPerSecond).toFixed(2);
    console.log(
      `  ${name}: ${of((one) => one.requestsPerSecond)}/s, p50 ${of((one) => one.p50Ms)} ms, ` +
        `p99 ${of((one) => one.p99Ms)} ms; one at a time p50 ${of((one) => one.alone.p50Ms)} ms, ` +
        `p99 ${of((one) => one.alone.p99Ms)} ms; processor time ${of((one) => one.cpuMs)} ms each`,
    );
    if (gateways === 0) continue;
    console.log(
      `    ratio to the bare server ${against("bare node:http")}, to the empty ledger ${against("empty ledger")}; start to ` +
        `first 200: ${of((one) => one.healthMs)} ms; memory in MiB: idle ${of((one) => one.idleMiB)}, ` +
        `after the load ${of((one) => one.loadedMiB)}`,
    );
  }
}

/** Asks some times, and prints how long it takes. */
async function time(what: string, ask: () => Promise<unknown>, times = 20): Promise<void> {
  const taken: number[] = [];
  for (let index = 0; index < times; index += 1) {
    const startedAt = performance.now();
    await ask();
    taken.push(performance.now() - startedAt);
  }
  console.log(
    `  ${what}: ${median(taken).toFixed(1)} ms, the first ${taken[0]?.toFixed(1)}, the longest ${Math.max(...taken).toFixed(1)}`,
  );
}

const hourMs = 3_600_000;

/** Each question anew: the first one of its kind finds nothing in memory. */
const questions: Readonly<Record<string, Omit<ListArgs, "limit">>> = {
  all: {},
  "of one route": { route: "issues" },
  "of a route with few": { route: "rare" },
  done: { state: "done" },
  dead: { state: "dead" },
  "dead, of one route": { state: "dead", route: "issues" },
  ignored: { state: "ignored" },
  queued: { state: "queued" },
  "of the last hour": { since: Date.now() - hourMs },
  "older than a week": { until: Date.now() - 7 * 24 * hourMs },
};

async function look(store: Store): Promise<void> {
  console.log("Median of 20 times:");
  for (const [name, filter] of Object.entries(questions)) {
    await time(`list 50, ${name}`, () => store.listEvents({ ...filter, limit: 50 }));
  }
  const [newest] = await store.listEvents({ limit: 1 });
  await time("read one event", () => store.readEvent({ id: newest?.id ?? "" }));
  await time("next due", () => store.nextDue({}));
  await time("tally of jobs", () => store.tallyJobs({}));
  await time("size", () => store.measure({}));
}

/** What the worker and the retention do on a ledger in which nothing is due. */
async function step(store: Store): Promise<void> {
  const claim = { owner: "bench", limit: 4, active: [], mayReclaim: true, limits: {} };
  const lease = () => ({ now: store.now(), leaseUntil: store.now() + 30_000 });
  await time("claim jobs", () => store.claimJobs({ ...claim, ...lease(), maxInterruptions: 10 }));
  await time("claim messages", () => store.claimMessages({ ...claim, ...lease() }));
  const anyAge = Object.fromEntries(finalEventStates.map((state) => [state, Number.MAX_SAFE_INTEGER]));
  await time("forget 100 events", () => store.prune({ after: "", limit: 100, before: anyAge }));
  await time("look at 100 events that stay", () => store.prune({ after: "", limit: 100, before: {} }));
  await time("forget claims", () => store.pruneClaims({ now: store.now(), limit: 100 }));
}

function command({ home, url }: Place, args: readonly string[]): number {
  const startedAt = performance.now();
  const env = { PATH: process.env.PATH, POSTERN_HOME: home, ...(url === undefined ? {} : { POSTERN_STORE_URL: url }) };
  execFileSync(process.execPath, [main, ...args], { env });
  return performance.now() - startedAt;
}

async function measureAll(full: Place, fresh: () => Promise<Place>): Promise<void> {
  const settings: StoreSettings =
    full.url === undefined ? fileOf(full.home) : { kind: "postgres", url: full.url, schema };
  const reader = await openStore(settings, { readOnly: true });
  await look(reader);
  await reader.close();
  const list = Array.from({ length: 5 }, () => command(full, ["events", "list", "--limit", "50"]));
  const version = Array.from({ length: 5 }, () => command(full, ["--version"]));
  console.log(
    `  postern events list --limit 50: ${Math.round(median(list))} ms (--version: ${Math.round(median(version))} ms)`,
  );
  const bare: Subject = { name: "bare node:http", gateways: 0, place: fresh, isFresh: true };
  const empty: Subject = { name: "empty ledger", gateways: 1, place: fresh, isFresh: true };
  const three: Subject = { name: "empty ledger, three gateways", gateways: 3, place: fresh, isFresh: true };
  const filled: Subject = { name: "full ledger", gateways: 1, place: async () => full, isFresh: false };
  await compare(isPostgres ? [bare, empty, filled, three] : [bare, empty, filled]);
  const writer = await openStore(settings, { readOnly: false });
  console.log("On the full ledger, median of 20 times:");
  await step(writer);
  await writer.close();
}

function newHome(): string {
  const home = makeHome({ more: retention + agents });
  mkdirSync(join(home, "data"));
  return home;
}

async function onSqlite(): Promise<void> {
  const home = newHome();
  try {
    const startedAt = performance.now();
    const { path } = fileOf(home);
    await placeSqlite(path, count);
    const took = Math.round((performance.now() - startedAt) / 1000);
    console.log(`A ledger of ${count} finished events: ${Math.round(statSync(path).size / 1e6)} MB, made in ${took} s`);
    await measureAll({ home }, async () => ({ home: newHome() }));
  } finally {
    rmSync(home, { recursive: true });
    if (!values.keep) forgetKept();
  }
}

async function onPostgres(server: OwnPostgresServer): Promise<void> {
  const home = newHome();
  try {
    const startedAt = performance.now();
    const url = await server.createDatabase();
    await fillPostgres(url, schema, count);
    const took = Math.round((performance.now() - startedAt) / 1000);
    console.log(`A database of ${count} finished events, made in ${took} s`);
    await measureAll({ home, url }, async () => ({ home: newHome(), url: await server.createDatabase() }));
  } finally {
    rmSync(home, { recursive: true });
    await server.close();
  }
}

console.log(`Node ${process.version}, ${values.store}, ${rounds} rounds, ${seconds} s each`);
if (isPostgres) await onPostgres(await startPostgres({ settings: postgresSettings(false) }));
else await onSqlite();
