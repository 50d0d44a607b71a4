import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { missing } from "../needs.ts";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { postGithubEvent } from "../tools/github-event.ts";
import { makeHome, previewConfig } from "../tools/home.ts";
import { mainPath } from "../tools/program.ts";

test("the event is synced to disk before the 202 is written to the socket", { skip: missing("strace") }, async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  const trace = join(home.folder, "trace");
  const calls = "trace=fsync,fdatasync,write,writev,pwrite64";
  const strace = ["strace", "-f", "-y", "-s", "60", "-e", calls, "-o", trace, process.execPath, mainPath];
  const gateway = await startGatewayProcess(t, home, { program: strace });
  const url = `${gateway.url}/webhooks/hello`;
  const response = await postGithubEvent(url, { secret: "the-global-secret", body: '{"name":"Ada"}', id: "traced" });
  assert.equal(response.status, 202);
  // The process that was started is strace, which keeps a signal to itself.
  process.kill(Number(gateway.log().find(({ pid }) => pid !== undefined)?.pid), "SIGTERM");
  await gateway.ended;

  const lines = (await readFile(trace, "utf8")).split("\n");
  const answered = lines.findIndex((line) => line.includes("HTTP/1.1 202"));
  const logged = lines.slice(0, answered).findLastIndex((line) => /pwrite64\(\d+<[^>]*ledger\.db-wal>/.test(line));
  // The call and its end may stand on two lines when another thread came between.
  const synced = lines
    .slice(logged, answered)
    .findIndex((line) => /f(data)?sync(\(\d+<[^>]*ledger\.db-wal>| resumed).*= 0/.test(line));
  t.diagnostic(lines.slice(Math.max(0, logged), answered + 1).join("\n"));
  assert.ok(answered > 0, "the answer is in the trace");
  assert.ok(logged > 0, "the event was written to the ledger's log before the answer");
  assert.ok(synced >= 0, "and synced before the answer");
});
