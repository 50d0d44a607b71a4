import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { Rejection } from "../../src/core/errors.ts";
import { parseJson } from "../../src/core/json.ts";
import type { Event, JsonObject } from "../../src/core/types.ts";
import { createGate } from "../../src/lib/gate.ts";
import { runScript, type ScriptRun } from "../../src/select/script.ts";
import { eventOf } from "../core/event.ts";
import { missing } from "../needs.ts";
import { hasEnded } from "../tools/process.ts";
import { until } from "../tools/wait.ts";

const top = await mkdtemp(join(tmpdir(), "postern-script-"));
after(() => rm(top, { recursive: true }));
const home = join(top, "home");
const scripts = join(home, "scripts");
await mkdir(join(scripts, "sub"), { recursive: true });

let count = 0;

/** Writes a script and runs it on a payload. */
async function ran(text: string, options: Partial<ScriptRun> & { name?: string } = {}) {
  count += 1;
  const name = options.name ?? `script-${count}.sh`;
  await writeFile(join(scripts, name), text);
  return runNamed(name, options);
}

function runNamed(script: string, options: Partial<ScriptRun> = {}) {
  const { PATH, HOME } = process.env;
  return runScript({
    script,
    home,
    event: eventOf({ payload: { a: 1 } }),
    python: "python3",
    timeoutMs: 10_000,
    env: { PATH, HOME },
    extraEnv: [],
    ...options,
  });
}

const payloadOf = (json: string): JsonObject => parseJson(json) as JsonObject;

const answers: [what: string, script: string, result: unknown][] = [
  ["a JSON object replaces the payload", `echo '{"b": [1]}'`, { payload: { b: [1] } }],
  ["an empty object replaces the payload", "echo '{}'", { payload: {} }],
  ["text becomes script_output", "echo hello; echo world", { payload: { a: 1, script_output: "hello\nworld" } }],
  ["a JSON list counts as text", "echo '[1, 2]'", { payload: { a: 1, script_output: "[1, 2]" } }],
  ["a JSON number counts as text", "echo 7", { payload: { a: 1, script_output: "7" } }],
  ["broken JSON counts as text", `echo '{"b":'`, { payload: { a: 1, script_output: '{"b":' } }],
  ["[SILENT] among other text is text", "echo '[SILENT] x'", { payload: { a: 1, script_output: "[SILENT] x" } }],
  [
    "an ignore mark that is not true is a payload",
    `echo '{"__svc_ignore__": "true"}'`,
    { payload: { __svc_ignore__: "true" } },
  ],
];
for (const [what, script, result] of answers) {
  test(what, async () => assert.equal(JSON.stringify(await ran(script)), JSON.stringify(result)));
}

const ignored: [what: string, script: string, reason: RegExp][] = [
  ["prints nothing", "true", /printed nothing/],
  ["prints only white space", "printf ' \\n\\t\\n'", /printed nothing/],
  ["prints [SILENT]", "echo '[SILENT]'", /\[SILENT\]/],
  ["sets __svc_ignore__", `echo '{"__svc_ignore__": true}'`, /__svc_ignore__/],
  ["sets __postern_ignore__", `echo '{"__postern_ignore__": true, "x": 1}'`, /__postern_ignore__/],
  ["fails", `echo '{"b":1}'; exit 3`, /exit code 3/],
  ["is ended by a signal", "kill -9 $$", /ended by a signal/],
  ["prints more than 1 MiB", "head -c 1100000 /dev/zero | tr '\\0' x", /more than 1048576 bytes/],
];
for (const [what, script, reason] of ignored) {
  test(`an event is ignored when the script ${what}`, async () => {
    const result = await ran(script);
    assert.match("ignored" in result ? result.ignored : JSON.stringify(result).slice(0, 200), reason);
  });
}

test("the payload comes in on standard input with all digits of its numbers", async () => {
  const text = '{"id":12345678901234567890,"v":1.0,"t":"häß😀"}';
  assert.equal(
    JSON.stringify(await ran("cat", { event: eventOf({ payload: payloadOf(text) }) })),
    `{"payload":${text}}`,
  );
});

test("numbers of the script keep their digits too", async () => {
  assert.equal(
    JSON.stringify(await ran(`echo '{"id":12345678901234567890}'`)),
    '{"payload":{"id":12345678901234567890}}',
  );
});

test("a script that does not read its input is no trouble", async () => {
  const event = eventOf({ payload: { text: "x".repeat(900_000) } });
  assert.deepEqual(await ran("echo '{}'", { event }), { payload: {} });
});

test("what .bash names runs with bash, and other names with Python", { skip: missing("python3") }, async () => {
  assert.deepEqual(await ran("[[ a == a ]] && echo $0", { name: "a.bash" }), {
    payload: { a: 1, script_output: join(await real(scripts), "a.bash") },
  });
  const python = "import json, sys\np = json.load(sys.stdin)\np['b'] = 2\nprint(json.dumps(p))";
  assert.deepEqual(await ran(python, { name: "b.py" }), { payload: { a: 1, b: 2 } });
  assert.deepEqual(await ran(python, { name: "no-extension" }), { payload: { a: 1, b: 2 } });
});

test("a Python that is not there is told", async () => {
  const result = await ran("x", { name: "c.py", python: join(top, "no-python") });
  assert.match("ignored" in result ? result.ignored : "", /interpreter could not be started/);
});

test("the environment is closed: nothing but the basics, the event, and what the route names", async () => {
  const env = {
    PATH: process.env.PATH,
    HOME: "/h",
    LANG: "C.UTF-8",
    TZ: "UTC",
    OPENAI_API_KEY: "hunter2",
    MINE: "yes",
    WEBHOOK_SECRET: "x",
  };
  const event: Event = eventOf({ type: "Push\0 Hook", deliveryId: "d-1", route: "ci" });
  const result = await ran("env", { env, extraEnv: ["MINE", "ABSENT", "WEBHOOK_ROUTE"], event });
  const lines = String("payload" in result ? result.payload.script_output : "").split("\n");
  // Bash itself adds these three.
  const names = lines.map((line) => line.split("=")[0]).filter((name) => !["PWD", "SHLVL", "_"].includes(name ?? ""));
  assert.deepEqual(names.sort(), [
    "HOME",
    "LANG",
    "MINE",
    "PATH",
    "TZ",
    "WEBHOOK_DELIVERY_ID",
    "WEBHOOK_EVENT",
    "WEBHOOK_ROUTE",
  ]);
  for (const line of ["MINE=yes", "WEBHOOK_ROUTE=ci", "WEBHOOK_EVENT=Push Hook", "WEBHOOK_DELIVERY_ID=d-1"]) {
    assert.ok(lines.includes(line), line);
  }
});

test("a script runs in its own folder", async () => {
  assert.deepEqual(await ran("pwd", { name: "sub/where.sh" }), {
    payload: { a: 1, script_output: join(await real(scripts), "sub") },
  });
});

async function real(path: string): Promise<string> {
  const { realpath } = await import("node:fs/promises");
  return realpath(path);
}

test("on timeout the whole process group is killed", async () => {
  const pidFile = join(top, "grandchild");
  const start = performance.now();
  const result = await ran(`(echo $BASHPID > ${pidFile}; exec sleep 30) & sleep 30`, { timeoutMs: 300 });
  assert.match("ignored" in result ? result.ignored : "", /longer than 300 ms/);
  assert.ok(performance.now() - start < 5000);
  const pid = Number(await readFile(pidFile, "utf8"));
  await until("the grandchild's end", () => hasEnded(pid));
});

test("a script that the gateway's stop interrupts has not decided: the sender is told to try again", async () => {
  const stopping = new AbortController();
  const running = ran("sleep 30", { signal: stopping.signal });
  setTimeout(() => stopping.abort(), 200);
  await assert.rejects(running, (error) => error instanceof Rejection && error.code === "unavailable");
});

await writeFile(join(home, "outside.sh"), "echo out");
await mkdir(join(home, "scripts-2"));
await writeFile(join(home, "scripts-2", "x.sh"), "echo out");
await writeFile(join(scripts, "inside.sh"), "echo in");
await symlink(join(home, "outside.sh"), join(scripts, "link-out.sh"));
await symlink(join(scripts, "inside.sh"), join(scripts, "link-in.sh"));
await symlink(dirname(home), join(scripts, "up"));

for (const script of [
  "../outside.sh",
  "sub/../../outside.sh",
  join(home, "outside.sh"),
  "link-out.sh",
  "up/home/outside.sh",
  "../scripts-2/x.sh",
  "/etc/passwd",
]) {
  test(`the script "${script.replace(top, "")}" lies outside and is not run`, async () => {
    const result = await runNamed(script);
    assert.match("ignored" in result ? result.ignored : JSON.stringify(result), /lies outside/);
  });
}

for (const script of ["nothing.sh", "", ".", "sub", "inside.sh/x", "a\0b", "x".repeat(5000)]) {
  test(`the script ${JSON.stringify(script.slice(0, 20))} cannot be run and the event is ignored`, async () => {
    assert.ok("ignored" in (await runNamed(script)));
  });
}

for (const script of [
  "inside.sh",
  "./inside.sh",
  "sub/../inside.sh",
  "../scripts/inside.sh",
  join(scripts, "inside.sh"),
  "link-in.sh",
]) {
  test(`the script "${script.replace(top, "")}" lies inside and is run`, async () => {
    assert.deepEqual(await runNamed(script), { payload: { a: 1, script_output: "in" } });
  });
}

test("no more scripts run at once than the gate lets through", async () => {
  const gate = createGate(2);
  const file = join(top, "running");
  const script = `echo start >> ${file}; sleep 0.1; echo end >> ${file}; echo '{}'`;
  await Promise.all(Array.from({ length: 6 }, () => ran(script, { gate })));
  let running = 0;
  let most = 0;
  for (const line of (await readFile(file, "utf8")).trim().split("\n")) {
    running += line === "start" ? 1 : -1;
    most = Math.max(most, running);
  }
  assert.deepEqual([running, most], [0, 2]);
});

test("a task that throws frees its place in the gate", async () => {
  const gate = createGate(1);
  await assert.rejects(gate(() => Promise.reject(new Error("no"))));
  assert.equal(await gate(async () => "yes"), "yes");
});
