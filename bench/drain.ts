// npm run bench:drain: how fast, and in how much memory, a gateway works off what has gathered: agent events whose answers go
// to the log, and messages that wait for one chat or for many. Ends with exit code 1 when something was not delivered
// exactly once, when the order in a chat was not kept, or when memory grew.
import type { ChildProcess } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { newId } from "../src/core/id.ts";
import { openStore } from "../src/ledger/open.ts";
import type { StoreSettings } from "../src/store/settings.ts";
import type { NewJob, Store } from "../src/store/store.ts";
import { type FakeTelegram, startFakeTelegram } from "../test/fakes/telegram.ts";
import { startPostgres } from "../test/tools/postgres.ts";
import { postgresSettings, printStatements } from "./database.ts";
import { fileOf, type Gateway, makeHome, startGateway } from "./home.ts";
import { storeName, wholeNumber } from "./options.ts";
import { cpuSeconds, median, residentMiB, stop } from "./process.ts";

const { values } = parseArgs({
  options: {
    store: { type: "string", default: "sqlite" },
    count: { type: "string", default: "20000" },
    gateways: { type: "string" },
    only: { type: "string" },
    profile: { type: "string" },
    statements: { type: "boolean", default: false },
  },
});
const isPostgres = storeName(values.store) === "postgres";
const count = wholeNumber("count", values.count);
const gatewayCount = wholeNumber("gateways", values.gateways ?? (isPostgres ? "3" : "1"));

/** Before a gateway has done this much, its memory still grows to what it needs. */
const fewestToJudge = 5_000;
const sampleMs = 100;
/** Nothing more is expected when nothing came for this long. */
const patienceMs = 60_000;

/** What has gathered. */
interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly places: number;
  /** Puts one event and what follows from it into the ledger. */
  readonly put: (store: Store, index: number) => Promise<unknown>;
}

const scenarios: readonly Scenario[] = [
  { name: "log", title: "agent events, answers to the log", places: 0, put: putAgentEvent },
  { name: "one-chat", title: "messages to one chat", places: 1, put: putMessage(1) },
  { name: "20-chats", title: "messages to 20 chats", places: 20, put: putMessage(20) },
];

const marker = (index: number) => `drain-${index}-end`;

function newEvent(index: number, now: number) {
  const body = Buffer.from(JSON.stringify({ action: "opened", number: index, title: "x".repeat(2000) }));
  const head = { route: "bench", type: "pull_request", headers: "{}" };
  return { id: newId(now), ...head, deliveryId: `${now}-${index}`, receivedAt: now, body };
}

async function putAgentEvent(store: Store, index: number): Promise<void> {
  const now = store.now();
  const message = { id: newId(now), target: "log", extra: "{}", lane: null, text: null, refusal: null, fallback: null };
  const plan = JSON.stringify({ prompt: `Review ${marker(index)}. ${"word ".repeat(100)}`, skills: [], tools: [] });
  const job: NewJob = {
    ...{ id: newId(now), kind: "agent", route: "bench", plan, onCrash: "rerun", origin: null, messages: [message] },
  };
  await store.accept({
    ...{ event: newEvent(index, now), job, claimUntil: now + 3_600_000, owner: "bench", leaseUntil: now },
  });
}

function putMessage(places: number) {
  return async (store: Store, index: number) => {
    const now = store.now();
    const event = newEvent(index, now);
    const address = { chat_id: String(1 + (index % places)) };
    const lane = JSON.stringify(["telegram", address]);
    const text = `Result of ${marker(index)}. ${"word ".repeat(100)}`;
    const extra = JSON.stringify(address);
    const message = { id: newId(now), target: "telegram", extra, lane, text, refusal: null, fallback: null };
    await store.ignore({ ...event, reason: "bench" });
    const job: NewJob = {
      ...{ id: newId(now), kind: "delivery", route: "bench", plan: "{}", onCrash: "fail", origin: "bench" },
      messages: [message],
    };
    await store.addJob({ eventId: event.id, now, job });
  };
}

/** What arrives, wherever it arrives. */
class Arrivals {
  readonly counts = new Map<number, number>();
  /** The last one that came to each place. */
  readonly #last = new Map<string, number>();
  disorders = 0;
  firstAt: number | undefined;
  lastAt = performance.now();

  take(text: string, place?: string): void {
    const index = Number(/drain-(\d+)-end/.exec(text)?.[1] ?? -1);
    this.counts.set(index, (this.counts.get(index) ?? 0) + 1);
    this.lastAt = performance.now();
    this.firstAt ??= this.lastAt;
    if (place === undefined) return;
    if (index < (this.#last.get(place) ?? -1)) this.disorders += 1;
    this.#last.set(place, index);
  }

  get seconds(): number {
    return (this.lastAt - (this.firstAt ?? this.lastAt)) / 1000;
  }

  get wrong(): { readonly missing: number; readonly twice: number } {
    const twice = [...this.counts.values()].filter((times) => times > 1).length;
    return { missing: count - this.counts.size, twice };
  }
}

async function fill(settings: StoreSettings, scenario: Scenario): Promise<void> {
  const store = await openStore(settings, { readOnly: false });
  const perGroup = isPostgres ? 100 : 1000;
  // The first of each place goes ahead, so that the others line up behind it in their order.
  for (let index = 0; index < scenario.places; index += 1) await scenario.put(store, index);
  for (let from = scenario.places; from < count; from += perGroup) {
    const indexes = Array.from({ length: Math.min(perGroup, count - from) }, (_, index) => from + index);
    await Promise.all(indexes.map((index) => scenario.put(store, index)));
  }
  await store.close();
}

/** Its own server has no pace. */
function configFor({ token, baseUrl }: FakeTelegram): string {
  const telegram = { enabled: true, token, extra: { base_url: baseUrl } };
  return `  telegram: ${JSON.stringify(telegram)}\nagent: { backend: preview }\n`;
}

/** Hands on what the chats get, as it comes. */
function watchChats({ messages }: FakeTelegram, arrivals: Arrivals): NodeJS.Timeout {
  let seen = 0;
  return setInterval(() => {
    for (; seen < messages.length; seen += 1) arrivals.take(messages[seen]!.text, String(messages[seen]!.chatId));
  }, 20);
}

function watchLog(child: ChildProcess, arrivals: Arrivals): void {
  for (const stream of [child.stdout, child.stderr]) {
    if (!stream) continue;
    createInterface(stream).on("line", (line) => {
      if (line.includes('"Delivered to the log"')) arrivals.take(line);
    });
  }
}

/** What a tenth of all took. */
interface Tenth {
  readonly at: number;
  readonly cpuSeconds: number;
}

interface Drained {
  readonly tenths: readonly Tenth[];
  /** MiB, of each gateway. */
  readonly samples: readonly (readonly number[])[];
  /** What is left in the ledger that is not done, by state. */
  readonly left: Readonly<Partial<Record<string, number>>>;
}

/** Waits until all has arrived and the ledger has nothing open any more, or until nothing comes. */
async function drain(gateways: readonly Gateway[], arrivals: Arrivals, settings: StoreSettings): Promise<Drained> {
  const samples = gateways.map((): number[] => []);
  const tenths: Tenth[] = [];
  const cpu = () => gateways.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0);
  const look = () => {
    for (const [index, { pid }] of gateways.entries()) samples[index]?.push(residentMiB(pid));
    if (arrivals.counts.size < (count * tenths.length) / 10) return;
    tenths.push({ at: performance.now(), cpuSeconds: cpu() });
  };
  look();
  const sampling = setInterval(look, sampleMs);
  while (arrivals.counts.size < count && performance.now() - arrivals.lastAt < patienceMs) await wait(50);
  const store = await openStore(settings, { readOnly: true });
  let left = await store.tallyJobs({});
  for (const deadline = performance.now() + patienceMs; performance.now() < deadline; await wait(200)) {
    left = await store.tallyJobs({});
    if (Object.keys(left).length === 0) break;
  }
  await store.close();
  clearInterval(sampling);
  look();
  return { tenths, samples, left };
}

/** One number for each tenth of the run, from the differences of two. */
function perTenth(tenths: readonly Tenth[], value: (from: Tenth, to: Tenth) => number): string {
  return tenths
    .slice(1)
    .map((tenth, index) => value(tenths[index]!, tenth))
    .join(" ");
}

/** The first tenth is left out as warm-up. */
function memory(samples: readonly number[]) {
  const warm = samples.slice(Math.floor(samples.length / 10));
  const middle = Math.floor(warm.length / 2);
  const [first, second] = [median(warm.slice(0, middle)), median(warm.slice(middle))];
  const isFlat = count / gatewayCount < fewestToJudge || second <= first * 1.15 + 10;
  return {
    text: `start ${samples[0]}, most ${Math.max(...samples)}, end ${samples.at(-1)}; median of the first half ${first}, of the second ${second}`,
    isFlat,
  };
}

let faults = 0;

function report(arrivals: Arrivals, { tenths, samples, left }: Drained): void {
  const { missing, twice } = arrivals.wrong;
  const { seconds } = arrivals;
  console.log(`  ${count} in ${seconds.toFixed(1)} s: ${Math.round(count / seconds)}/s`);
  const rate = (from: Tenth, to: Tenth) => Math.round((count / 10 / (to.at - from.at)) * 1000);
  const cpu = (from: Tenth, to: Tenth) =>
    Math.round(((to.cpuSeconds - from.cpuSeconds) / (count / 10)) * 100_000) / 100;
  console.log(
    `  each tenth: ${perTenth(tenths, rate)} per second; processor time of the gateway: ${perTenth(tenths, cpu)} ms each`,
  );
  for (const one of samples) {
    const { text, isFlat } = memory(one);
    console.log(`  memory in MiB: ${text}${isFlat ? "" : ": it grew"}`);
    if (!isFlat) faults += 1;
  }
  const counts = `not delivered: ${missing}, more than once: ${twice}, out of order: ${arrivals.disorders}`;
  console.log(`  ${counts}, not done in the ledger: ${JSON.stringify(left)}`);
  faults += missing + twice + arrivals.disorders + Object.keys(left).length;
}

async function run(scenario: Scenario, url: string | undefined): Promise<void> {
  const arrivals = new Arrivals();
  const telegram = await startFakeTelegram();
  const watch = watchChats(telegram, arrivals);
  const home = makeHome({ more: configFor(telegram) });
  mkdirSync(join(home, "data"));
  const settings = url === undefined ? fileOf(home) : ({ kind: "postgres", url, schema: "postern" } as const);
  const nodeArgs = values.profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${values.profile}`];
  const startedAt = performance.now();
  await fill(settings, scenario);
  console.log(`${scenario.title} (filled in ${Math.round((performance.now() - startedAt) / 1000)} s)`);
  arrivals.lastAt = performance.now();
  const options = { home, url, nodeArgs, watch: (child: ChildProcess) => watchLog(child, arrivals) };
  const gateways = await Promise.all(Array.from({ length: gatewayCount }, () => startGateway(options)));
  const drained = await drain(gateways, arrivals, settings);
  await Promise.all(gateways.map(({ child }) => stop(child)));
  await telegram.close();
  // What came at the very end is counted, too.
  await wait(100);
  clearInterval(watch);
  report(arrivals, drained);
  rmSync(home, { recursive: true });
}

if (!isPostgres && gatewayCount > 1) {
  console.error("A ledger in a file has one gateway; several need --store postgres");
  process.exit(2);
}
console.log(`Node ${process.version}, ${values.store}, ${gatewayCount} gateways, ${count} of each kind`);
if (values.profile !== undefined) mkdirSync(values.profile, { recursive: true });
const server = isPostgres ? await startPostgres({ settings: postgresSettings(values.statements) }) : undefined;
try {
  for (const scenario of scenarios.filter(({ name }) => values.only === undefined || name === values.only)) {
    const url = await server?.createDatabase();
    if (url !== undefined && values.statements) await server?.query("create extension pg_stat_statements", url);
    await run(scenario, url);
    if (url !== undefined && values.statements) await printStatements((sql) => server!.query(sql, url));
  }
} finally {
  await server?.close();
}
process.exitCode = faults === 0 ? 0 : 1;
