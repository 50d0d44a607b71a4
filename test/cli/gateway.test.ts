import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { createServer } from "node:net";
import { test } from "node:test";
import type { StartedGateway } from "../../src/cli/context.ts";
import { logLines, startGatewayProcess } from "../tools/gateway-process.ts";
import { makeHome, previewConfig } from "../tools/home.ts";
import { freePort } from "../tools/port.ts";
import { postern } from "../tools/program.ts";
import { sendEvent } from "../tools/send.ts";
import { run } from "./command.ts";

test("gateway run on an empty home says what to do next and exits 1", async (t) => {
  const home = await makeHome(t);
  for (const args of [["gateway"], ["gateway", "run"]]) {
    const { code, out, err } = await run(home, args);
    assert.equal(code, 1);
    assert.equal(out, "");
    assert.match(err, /^postern: The webhook gateway is not enabled in ".*"\. To begin:/);
    assert.match(err, /enabled: true/);
    assert.match(err, /postern webhook subscribe hello/);
    assert.ok(err.includes(home.config));
  }
});

test("the configuration that gateway run proposes is a right one", async (t) => {
  const home = await makeHome(t);
  const { err } = await run(home, ["gateway", "run"]);
  const proposed = /config\.yaml:\n\n([\s\S]*?)\n\n {2}2\./.exec(err)?.[1] ?? "";
  await home.write("config.yaml", proposed.replaceAll(/^ {7}/gm, ""));
  const { code, out } = await run(home, ["config", "check"]);
  assert.equal(code, 0);
  assert.match(out, /enabled, 127\.0\.0\.1 port 8644[\s\S]*agent {4}preview/);
});

test("flags reach the gateway, and --json prints the address once it listens", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  const seen: unknown[] = [];
  let stopped = 0;
  const started: Omit<StartedGateway, "config"> = {
    reload: async () => true,
    address: { host: "::1", port: 4321 },
    routes: ["hello"],
    log: { info: (_fields, message) => seen.push(message), warn: (_fields, message) => seen.push(message) },
    stop: async () => {
      stopped += 1;
    },
  };
  const { code, out } = await run(home, ["gateway", "run", "--host", "::1", "--port", "4321", "--json"], {
    startGateway: async (load, role) => {
      const config = await load();
      seen.push([config.webhook.host, config.webhook.port, role]);
      return { ...started, config };
    },
    onStop: (stop) => setImmediate(stop),
  });
  assert.equal(code, 0);
  assert.deepEqual(seen.slice(0, 2), [["::1", 4321, "all"], "Postern listens on [::1]:4321, routes: hello"]);
  assert.deepEqual(JSON.parse(out), {
    ...{ host: "::1", port: 4321, role: "all", routes: ["hello"], home: home.folder },
  });
  assert.equal(stopped, 1);
});

test("a part of a gateway needs a database that gateways share", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  for (const role of ["ingest", "worker"]) {
    const { code, err } = await postern(t, ["gateway", "run", "--role", role], { env: { POSTERN_HOME: home.folder } });
    assert.equal(code, 1);
    assert.match(err, new RegExp(`"--role ${role}" needs a database that gateways share; set "store.url"`));
  }
  const { code, err } = await run(home, ["gateway", "run", "--role", "boss"]);
  assert.equal(code, 2);
  assert.match(err, /all, ingest, worker/);
});

test("a gateway names address, port and routes, answers, and ends with exit 0 on SIGTERM", async (t) => {
  const home = await makeHome(t, {
    "config.yaml": previewConfig,
    "webhook_subscriptions.json": '{"dynamic":{"secret":"abc-secret"}}',
  });
  const gateway = await startGatewayProcess(t, home, { args: ["--json"] });
  const start = gateway.log().find(({ msg }) => String(msg).startsWith("Postern listens"));
  assert.equal(start?.msg, `Postern listens on 127.0.0.1:${gateway.port}, routes: hello, dynamic`);
  assert.deepEqual([start?.host, start?.port, start?.routes], ["127.0.0.1", gateway.port, ["hello", "dynamic"]]);
  assert.ok(gateway.port > 0);
  const health = await fetch(`${gateway.url}/health`);
  assert.deepEqual(await health.json(), { status: "ok", platform: "webhook" });
  const { code, out, err } = await gateway.stop();
  assert.equal(code, 0);
  assert.equal(JSON.parse(out).port, gateway.port);
  assert.deepEqual(
    logLines(err)
      .slice(-2)
      .map(({ msg }) => msg),
    ["Stopping: no more requests are taken, what runs may finish", "Stopped"],
  );
});

test("a gateway without routes says how to make one, and a warning of the configuration is logged", async (t) => {
  const home = await makeHome(t, {
    "config.yaml": "platforms: { webhook: { enabled: true, host: 127.0.0.1, port: 0 } }\nadmin: { port: 8645 }",
  });
  const gateway = await startGatewayProcess(t, home);
  await gateway.said(/Make a first route with \\"postern webhook subscribe NAME\\"/);
  assert.match(gateway.err, /no routes yet/);
  const warning = gateway.log().find(({ level }) => level === "warn");
  assert.equal(warning?.msg, '"admin" has no effect: this version has no admin side');
  assert.equal((await gateway.stop()).code, 0);
});

test("a home that does not exist yet is made for its owner alone", async (t) => {
  const outer = await makeHome(t);
  const home = { folder: `${outer.folder}/new/home` };
  const env = { WEBHOOK_ENABLED: "true" };
  const gateway = await startGatewayProcess(t, home, { env, args: ["--host", "127.0.0.1", "--port", "0"] });
  assert.equal((await stat(home.folder)).mode & 0o777, 0o700);
  assert.equal((await gateway.stop()).code, 0);
});

test("a second gateway on the same home is refused with a clear sentence, and the first goes on", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  const first = await startGatewayProcess(t, home);
  const { code, out, err } = await postern(t, ["gateway", "run"], { env: { POSTERN_HOME: home.folder } });
  assert.equal(code, 1);
  assert.equal(out, "");
  assert.equal(
    err,
    `postern: Another gateway is running on "${home.folder}"; stop it, or start this one with --profile or another POSTERN_HOME\n`,
  );
  assert.equal((await fetch(`${first.url}/health`)).status, 200);
});

test("a port that is in use is refused with a sentence, and the home is free again", async (t) => {
  const home = await makeHome(t, { "config.yaml": previewConfig });
  const port = await freePort();
  const squatter = createServer().listen(port, "127.0.0.1");
  t.after(() => squatter.close());
  const args = ["gateway", "run", "--port", String(port)];
  const { code, err } = await postern(t, args, { env: { POSTERN_HOME: home.folder } });
  assert.equal(code, 1);
  assert.match(err, /^postern: .*in use/m);
  assert.match(err, new RegExp(String(port)));
  assert.doesNotMatch(err, /\n {4}at /);
  assert.equal((await (await startGatewayProcess(t, home)).stop()).code, 0);
});

test("a subscription made while the gateway runs is there for the next request, and webhook test says so", async (t) => {
  const port = await freePort();
  const home = await makeHome(t, { "config.yaml": previewConfig.replace("port: 0", `port: ${port}`) });
  const gateway = await startGatewayProcess(t, home);
  assert.equal((await run(home, ["webhook", "subscribe", "fresh", "--events", "issues"])).code, 0);
  const taken = await run(home, ["webhook", "test", "fresh"]);
  assert.equal(taken.code, 0, taken.out + taken.err);
  assert.match(taken.out, /202 \{"status":"accepted","route":"fresh","event":"issues","delivery_id":"/);
  assert.match(taken.out, /state done[\s\S]*See all of it: postern events show /);
  assert.equal((await run(home, ["webhook", "test", "fresh", "--payload", "[1]"])).code, 1);
  await run(home, ["webhook", "remove", "fresh"]);
  assert.equal((await sendEvent(gateway.url, "fresh", "any-secret", {})).status, 404);
});

test("webhook test fails when the gateway knows another secret", async (t) => {
  const port = await freePort();
  const home = await makeHome(t, {
    "config.yaml": previewConfig.replace("port: 0", `port: ${port}`),
    "webhook_subscriptions.json": '{"hello":{"secret":"not-that-of-the-static-route"}}',
  });
  await startGatewayProcess(t, home);
  const { code, out } = await run(home, ["webhook", "test", "hello"]);
  assert.equal(code, 1);
  assert.match(out, /401 \{"error":"Invalid signature"\}/);
});
