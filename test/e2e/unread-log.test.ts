import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { postGithubEvent } from "../tools/github-event.ts";
import { makeHome, previewConfig } from "../tools/home.ts";
import { freePort } from "../tools/port.ts";
import { mainPath } from "../tools/program.ts";
import { until } from "../tools/wait.ts";

test("a gateway whose log nobody reads goes on accepting", async (t) => {
  const port = await freePort();
  const config = previewConfig.replace("secret:", "rate_limit: 100000\n    secret:").replace("log: {}", "");
  const home = await makeHome(t, { "config.yaml": config });
  const args = [mainPath, "gateway", "run", "--port", String(port)];
  const child = spawn(process.execPath, args, {
    env: { POSTERN_HOME: home.folder },
    stdio: ["ignore", "ignore", "pipe"],
  });
  t.after(() => child.kill("SIGKILL"));
  const url = `http://127.0.0.1:${port}`;
  await until("the gateway", () => fetch(`${url}/health`).catch(() => undefined));
  // The pipe holds 64 KiB and Node reads as much ahead: this is far more.
  const body = JSON.stringify({ name: "x".repeat(2_000) });
  for (let number = 0; number < 400; number += 1) {
    const response = await postGithubEvent(`${url}/webhooks/hello`, { secret: "the-global-secret", body });
    assert.equal(response.status, 202);
    await response.arrayBuffer();
  }
});
