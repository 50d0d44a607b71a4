// npm run bench: prints what the README and release notes quote. Absolute numbers depend on the machine; the ratio of the
// two servers, measured in turn in one run, does so much less.
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { makeHome, startBare, startGateway } from "./home.ts";
import { post } from "./load.ts";
import { main, median, residentMiB, stop } from "./process.ts";

const rounds = Number(process.argv[2] ?? 5);
const seconds = Number(process.argv[3] ?? 5);

async function startUp(): Promise<{ readonly healthMs: number; readonly idleMiB: number }> {
  const home = makeHome();
  const startedAt = performance.now();
  const { child, port, pid } = await startGateway({ home });
  await fetch(`http://127.0.0.1:${port}/health`);
  const healthMs = performance.now() - startedAt;
  // Idle means idle: after a collection has had its time, not in the moment after the start.
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const idleMiB = residentMiB(pid);
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
  const one = await startGateway({ home });
  const other = await startBare();
  const load = { connections: 64, seconds };
  const ours = await post({ ports: [one.port], path: "/webhooks/bench", ...load });
  const plain = await post({ ports: [other.port], path: "/", ...load });
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
