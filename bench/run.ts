// npm run bench: prints what the README and release notes quote. Absolute numbers depend on the machine; the ratio of the
// two servers, measured in turn in one run, does so much less.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { post, secret } from "./load.ts";
import { main, median, residentMiB, start, stop } from "./process.ts";

const rounds = Number(process.argv[2] ?? 5);
const seconds = Number(process.argv[3] ?? 5);
const bare = fileURLToPath(new URL("./bare.ts", import.meta.url));

function makeHome(): string {
  const home = mkdtempSync(join(tmpdir(), "postern-bench-"));
  const config = `
platforms:
  webhook:
    enabled: true
    host: 127.0.0.1
    port: 0
    rate_limit: 1000000
    secret: ${secret}
    routes:
      bench:
        events: [pull_request]
        filters: [{ field: action, in: [opened] }]
        prompt: "Review #{number} of {repository.full_name}: {pull_request.title}"
# No model is set: the jobs wait, so that accepting is measured and nothing else.
`;
  writeFileSync(join(home, "config.yaml"), config);
  return home;
}

const gateway = (home: string) =>
  start([main, "gateway", "run"], /listens on 127\.0\.0\.1:(\d+)/, { POSTERN_HOME: home });

async function startUp(): Promise<{ readonly healthMs: number; readonly idleMiB: number }> {
  const home = makeHome();
  const startedAt = performance.now();
  const { child, match } = await gateway(home);
  await fetch(`http://127.0.0.1:${match}/health`);
  const healthMs = performance.now() - startedAt;
  // Idle means idle: after a collection has had its time, not in the moment after the start.
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const idleMiB = residentMiB(child.pid ?? 0);
  await stop(child);
  rmSync(home, { recursive: true });
  return { healthMs, idleMiB };
}

function versionMs(): number {
  const startedAt = performance.now();
  execFileSync(process.execPath, [main, "--version"]);
  return performance.now() - startedAt;
}

async function accepted(): Promise<{ readonly ours: number; readonly bare: number }> {
  const home = makeHome();
  const one = await gateway(home);
  const other = await start([bare], /(\d+)/);
  const load = { connections: 64, seconds };
  const ours = await post({ port: Number(one.match), path: "/webhooks/bench", ...load });
  const plain = await post({ port: Number(other.match), path: "/", ...load });
  console.log(`  postern ${JSON.stringify(ours)}\n  bare    ${JSON.stringify(plain)}`);
  await stop(one.child);
  await stop(other.child);
  rmSync(home, { recursive: true });
  return { ours: ours.requestsPerSecond, bare: plain.requestsPerSecond };
}

console.log(`Node ${process.version}, ${rounds} rounds, ${seconds} s each`);
const versions = Array.from({ length: rounds }, versionMs);
console.log(`postern --version: ${Math.round(median(versions))} ms`);
const starts: Awaited<ReturnType<typeof startUp>>[] = [];
for (let round = 0; round < rounds; round += 1) starts.push(await startUp());
console.log(
  `gateway run to the first 200 on /health: ${Math.round(median(starts.map(({ healthMs }) => healthMs)))} ms`,
);
console.log(`idle memory: ${median(starts.map(({ idleMiB }) => idleMiB))} MiB`);
console.log("accepted events per second, 24 KB signed, 64 connections:");
const pairs: Awaited<ReturnType<typeof accepted>>[] = [];
for (let round = 0; round < rounds; round += 1) pairs.push(await accepted());
console.log(
  `median: postern ${median(pairs.map(({ ours }) => ours))}/s, bare node:http ${median(pairs.map((pair) => pair.bare))}/s, ` +
    `ratio ${median(pairs.map((pair) => pair.ours / pair.bare)).toFixed(2)}`,
);
