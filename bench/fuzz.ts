// npm run fuzz: hostile requests over real sockets against a real gateway, from a seed. Ends with exit code 1 when the
// gateway answered 5xx, crashed, hung, took what it must not take, refused what it must take, or grew.
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openSqlite } from "../src/store/sqlite.ts";
import { startFakeTelegram } from "../test/fakes/telegram.ts";
import { makeFuzzHome, secrets } from "./fuzz-home.ts";
import { type FuzzRequest, forbidden, makeRequest, stalledRequest } from "./fuzz-requests.ts";
import { Lane, type Outcome } from "./fuzz-wire.ts";
import { wholeNumber } from "./options.ts";
import { main, median, residentMiB, start, stop } from "./process.ts";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "200000" },
    seconds: { type: "string", default: "1800" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
    lanes: { type: "string", default: "48" },
  },
});
const requests = wholeNumber("requests", values.requests);
const seconds = wholeNumber("seconds", values.seconds);
const seed = wholeNumber("seed", values.seed);
const lanes = wholeNumber("lanes", values.lanes);

/** Connections on which a request begins and never goes on. It takes 12 s until they are cut: too long for a short run. */
const stalledCount = requests < 20_000 ? 0 : 50;
/** Below this many samples, growth and noise look the same. */
const fewestSamples = 60;

/** What speaks against the gateway; the first of each kind are told in full. */
class Violations {
  readonly #texts: string[] = [];
  count = 0;

  add(text: string): void {
    this.count += 1;
    if (this.#texts.length < 20) this.#texts.push(text);
  }

  print(): void {
    for (const text of this.#texts) console.log(`VIOLATION ${text}`);
    if (this.count > this.#texts.length) console.log(`… and ${this.count - this.#texts.length} more`);
  }
}

const violations = new Violations();
const statuses = new Map<string, number>();
const familyCounts = new Map<string, number>();
const kept: string[] = [];

function tally(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function judge(request: FuzzRequest, index: number, outcome: Outcome): void {
  tally(familyCounts, request.family);
  const got = outcome.answers.map(({ status }) => status);
  for (const status of got) tally(statuses, String(status));
  if (got.length === 0) tally(statuses, "closed");
  const fault = faultOf(request, got, outcome);
  if (fault === undefined) {
    if (request.kept !== undefined) kept.push(request.kept);
    return;
  }
  const sent = JSON.stringify(Buffer.concat(request.pieces).toString("latin1").slice(0, 300));
  violations.add(`request ${index} (${request.family}): ${fault}, got [${got}] for ${sent}`);
}

function faultOf(request: FuzzRequest, got: readonly number[], { answers, rest, hung }: Outcome): string | undefined {
  const { expected, exactly, isClean } = request;
  if (hung) return "neither answered nor closed";
  if (got.some((status) => status >= 500)) return "a server error";
  if (expected && (got.length !== 1 || !expected.includes(got[0]!))) return `expected one of [${expected}]`;
  const sorted = got.toSorted((a, b) => a - b);
  if (exactly && String(sorted) !== String(exactly)) return `expected [${exactly}]`;
  if (isClean && rest !== "") return `stray bytes ${JSON.stringify(rest.slice(0, 100))}`;
  const texts = answers.map(({ text }) => text);
  if (texts.some((text) => text !== "" && !isJsonObject(text)))
    return `no JSON object: ${texts.join("|").slice(0, 100)}`;
  const leak = Object.values(secrets).find((secret) => texts.some((text) => text.includes(secret)));
  return leak === undefined ? undefined : "the answer holds a secret";
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, "latin1").toString());
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Watches what the gateway writes: errors of its own, and secrets. */
function watchLog(stream: NodeJS.ReadableStream): void {
  let rest = "";
  stream.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (/"level":"(error|fatal)"/.test(line) || !line.startsWith("{")) violations.add(`log: ${line.slice(0, 500)}`);
      if (Object.values(secrets).some((secret) => line.includes(secret)))
        violations.add(`secret in the log: ${line.slice(0, 300)}`);
    }
  });
}

/** What a process has open, and the processes it started. */
function belongings(pid: number): { readonly files: number; readonly children: string } {
  const files = readdirSync(`/proc/${pid}/fd`).length;
  return { files, children: readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim() };
}

async function stall(port: number): Promise<void> {
  const delivery = { isClean: false, ending: "answer", answers: 1, isHead: false } as const;
  const all = Array.from({ length: stalledCount }, async (_, index) => {
    const outcome = await new Lane(port).send({ ...delivery, pieces: [stalledRequest(index)] });
    const got = outcome.answers.map(({ status }) => status);
    if (outcome.hung || got.some((status) => status !== 408))
      violations.add(`stalled request ${index}: got [${got}], hung ${outcome.hung}`);
  });
  await Promise.all(all);
}

async function run(port: number): Promise<number> {
  const endAt = performance.now() + seconds * 1000;
  let next = 0;
  const work = async () => {
    const lane = new Lane(port);
    while (next < requests && performance.now() < endAt && violations.count < 1000) {
      const index = next;
      next += 1;
      const request = makeRequest(seed, index);
      try {
        judge(request, index, await lane.send(request));
      } catch (error) {
        violations.add(`request ${index} (${request.family}): no connection (${(error as Error).message})`);
      }
    }
    lane.close();
  };
  await Promise.all(Array.from({ length: lanes }, work));
  return next;
}

/** Compares what was answered with what the ledger holds. */
async function checkLedger(home: string): Promise<number> {
  const store = await openSqlite({ path: join(home, "data", "ledger.db"), readOnly: true });
  const rows = await store.listEvents({ limit: 10_000_000 });
  await store.close();
  const ids = new Map<string, number>();
  for (const { deliveryId } of rows) tally(ids, deliveryId);
  for (const id of kept) {
    if (ids.get(id) !== 1) violations.add(`"${id}" was taken, and is in the ledger ${ids.get(id) ?? 0} times`);
  }
  for (const id of ids.keys()) {
    if (forbidden.some((prefix) => id.startsWith(prefix))) violations.add(`"${id}" must not be in the ledger`);
  }
  return rows.length;
}

/** Everything below a folder, by its path. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true }).map(String).sort();
}

/** Median of the second half against that of the first, when the first tenth is left out as warm-up. */
function memory(samples: readonly number[]) {
  const warm = samples.slice(Math.floor(samples.length / 10));
  const middle = Math.floor(warm.length / 2);
  const [first, second] = [median(warm.slice(0, middle)), median(warm.slice(middle))];
  const isFlat = second <= first * 1.15 + 10;
  if (warm.length >= fewestSamples && !isFlat) {
    violations.add(`memory grew from ${first} MiB in the first half to ${second} MiB in the second`);
  }
  const tenths = Array.from({ length: 11 }, (_, tenth) => samples[Math.round(((samples.length - 1) * tenth) / 10)]);
  return { start: tenths[0], middle: tenths[5], end: tenths[10], tenths, first, second };
}

function listed(counts: Map<string, number>): string {
  return [...counts]
    .sort()
    .map(([key, count]) => `${key}: ${count}`)
    .join(", ");
}

console.log(
  `Seed ${seed}, ${requests} requests on ${lanes} connections, ${seconds} s at most, Node ${process.version}`,
);
const telegram = await startFakeTelegram();
const home = makeFuzzHome(telegram);
// However this ends, nothing is left of it.
process.once("exit", () => rmSync(home, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
const env = { HOME: home, POSTERN_HOME: home };
const { child, match } = await start([main, "gateway", "run"], /listens on 127\.0\.0\.1:(\d+)/, env);
const pid = child.pid ?? 0;
process.once("exit", () => hasEnded || child.kill("SIGKILL"));
let hasEnded = false;
child.once("exit", (code, signal) => {
  hasEnded = true;
  if (!isStopping || code !== 0) violations.add(`the gateway ended with ${signal ?? code}`);
});
let isStopping = false;
if (child.stderr) watchLog(child.stderr);
const port = Number(match);
const before = { ...belongings(pid), home: filesIn(home) };
const samples: number[] = [];
const sampling = setInterval(() => {
  if (!hasEnded) samples.push(residentMiB(pid));
}, 200);
const stalled = stall(port);
const startedAt = performance.now();
const sent = await run(port);
const tookSeconds = (performance.now() - startedAt) / 1000;
clearInterval(sampling);
await stalled;
if (!hasEnded) {
  const healthy = await fetch(`http://127.0.0.1:${port}/health`).then(({ status }) => status, String);
  if (healthy !== 200) violations.add(`the health check afterwards: ${healthy}`);
  const after = belongings(pid);
  if (after.children !== "") violations.add(`processes left: ${after.children}`);
  // Connections to the fake and to the health check may still be open.
  if (after.files > before.files + 20) violations.add(`open files grew from ${before.files} to ${after.files}`);
  isStopping = true;
  await stop(child);
}
const events = await checkLedger(home);
const strays = filesIn(home).filter((path) => !before.home.includes(path));
if (strays.length > 0) violations.add(`files left: ${strays.join(", ")}`);
const rss = memory(samples);
await telegram.close();
console.log(`Requests: ${sent} in ${tookSeconds.toFixed(1)} s, ${Math.round(sent / tookSeconds)}/s`);
console.log(`Kinds: ${listed(familyCounts)}; stalled: ${stalledCount}`);
console.log(`Answers: ${listed(statuses)}`);
console.log(
  `Valid events answered rightly: ${kept.length}; events in the ledger: ${events}; messages at the fake: ${telegram.messages.length}`,
);
console.log(
  `Memory in MiB: start ${rss.start}, middle ${rss.middle}, end ${rss.end}; median of the first half ${rss.first}, of the ` +
    `second ${rss.second}; each tenth of the run: ${rss.tenths.join(" ")}`,
);
violations.print();
console.log(violations.count === 0 ? "No violations" : `${violations.count} violations; repeat with --seed ${seed}`);
process.exitCode = violations.count === 0 ? 0 : 1;
