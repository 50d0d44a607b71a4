import assert from "node:assert/strict";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { useGateway } from "./gateway.ts";

const prompt = "{a}|{script_output}|{__raw__}";
const route = (script: string, more: object = {}) => ({ script, prompt, ...more });

const gateway = useGateway(() => ({
  routes: {
    relative: route("inner/same.sh"),
    outside: route("../outside.sh"),
    absolute: route("/etc/hostname"),
    linked: route("linked.sh"),
    bash: route("bash.bash"),
    sh: route("sh.sh"),
    python: route("python.py"),
    plain: route("no-extension"),
    stdin: route("echo.sh"),
    replace: route("replace.sh", { deliver: "telegram", deliver_extra: { chat_id: "{chat}" } }),
    text: route("text.sh"),
    list: route("list.sh"),
    empty: route("empty.sh"),
    blank: route("blank.sh"),
    silent: route("silent.sh"),
    marked: route("marked.sh"),
    markedReal: route("marked-real.sh"),
    unmarked: route("unmarked.sh"),
    slow: route("slow.sh"),
    missing: route("not-there.py"),
    failing: route("failing.sh"),
  },
  extra: { script_timeout_seconds: 1 },
  files: {
    "outside.sh": "echo outside\n",
    "scripts/inner/same.sh": 'echo "in $(basename "$PWD")"\n',
    "scripts/bash.bash": 'set -- one two; [[ 1 ]] && echo "$2 $BASH_VERSION"\n',
    "scripts/sh.sh": '[[ -n $BASH_VERSION ]] && echo "bash too"\n',
    "scripts/python.py": "import sys\nprint('python', sys.version_info.major)\n",
    "scripts/no-extension": "print('python as well')\n",
    "scripts/echo.sh": "cat\n",
    "scripts/replace.sh": `echo '{"a": "replaced", "chat": 99}'\n`,
    "scripts/text.sh": "echo '  plain text  '\n",
    "scripts/list.sh": "echo '[1, 2]'\n",
    "scripts/empty.sh": "exit 0\n",
    "scripts/blank.sh": "printf ' \\n\\t\\n'\n",
    "scripts/silent.sh": "echo '[SILENT]'\n",
    "scripts/marked.sh": `echo '{"__svc_ignore__": true, "a": 1}'\n`,
    "scripts/marked-real.sh": `echo '{"__postern_ignore__": true}'\n`,
    "scripts/unmarked.sh": `echo '{"__svc_ignore__": false, "a": 1}'\n`,
    "scripts/slow.sh": "sleep 100 & sleep 100\n",
    "scripts/failing.sh": `echo '{"a": 1}'; exit 3\n`,
  },
}));

async function isIgnored(name: string, why: RegExp): Promise<void> {
  const { status, reply, id } = await gateway.post(name, { body: { a: "old" } });
  assert.equal(status, 200);
  assert.deepEqual(reply, { status: "ignored", reason: "script" });
  const { state, reason, jobs } = await gateway.fate(id);
  assert.equal(state, "ignored");
  assert.match(reason ?? "", why);
  assert.deepEqual(jobs, []);
}

/** What the script made of the payload. */
async function outputOf(name: string, body: unknown = { a: "old" }): Promise<string> {
  return (await gateway.promptOf(name, { body })).split("|")[1] ?? "";
}

test('2.6.1 "The script must live under `<home>/scripts/`. Relative paths resolve inside that directory"', async () => {
  assert.equal(await outputOf("relative"), "in inner");
});

test('2.6.1 "Path traversal out of it is forbidden": dots, an absolute path, a symbolic link', async () => {
  await isIgnored("outside", /lies outside "scripts"/);
  await isIgnored("absolute", /lies outside "scripts"/);
  const elsewhere = join(gateway.home.folder, "elsewhere");
  await mkdir(elsewhere);
  await writeFile(join(elsewhere, "real.sh"), "echo hello\n");
  await symlink(join(elsewhere, "real.sh"), join(gateway.home.scripts, "linked.sh"));
  await isIgnored("linked", /lies outside "scripts"/);
});

test('2.6.2 "Scripts with extension `.sh` or `.bash` run with bash"', async () => {
  assert.match(await outputOf("bash"), /^two \d/);
  assert.equal(await outputOf("sh"), "bash too");
});

test('2.6.2 "Other extensions run with the current Python interpreter"', async () => {
  assert.equal(await outputOf("python"), "python 3");
  assert.equal(await outputOf("plain"), "python as well");
});

test('2.6.3 "The payload is passed as JSON on stdin"', async () => {
  const body = '{"a":12345678901234567890,"b":[1.0,{"c":"é"}],"d":null}';
  assert.equal(
    await gateway.promptOf("stdin", { body }),
    `12345678901234567890|{script_output}|${'{\n  "a": 12345678901234567890,\n  "b": [\n    1.0,\n    {\n      "c": "é"\n    }\n  ],\n  "d": null\n}'}`,
  );
});

test('2.6.4 "If stdout is a JSON object, it replaces the payload used for `prompt`"', async () => {
  const { id } = await gateway.post("replace", { body: { a: "old", chat: 1, other: true } });
  const answer = (await gateway.fate(id)).jobs[0]?.runs[0]?.answer;
  assert.equal(answer, 'replaced|{script_output}|{\n  "a": "replaced",\n  "chat": 99\n}');
});

test('2.6.4 "and `deliver_extra`"', async () => {
  const { id } = await gateway.post("replace", { body: { a: "old", chat: 1 } });
  assert.equal((await gateway.fate(id)).state, "done");
  assert.equal(gateway.telegram.messages.at(-1)?.chatId, "99");
});

test('2.6.5 "If stdout is non-JSON text, it is added to the payload as field `script_output`"', async () => {
  assert.equal(
    await gateway.promptOf("text", { body: { a: "old" } }),
    `old|plain text|${JSON.stringify({ a: "old", script_output: "plain text" }, null, 2)}`,
  );
  assert.equal(await outputOf("list"), "[1, 2]");
});

test('2.6.6 "The webhook is ignored when any of these holds: stdout is empty"', async () => {
  await isIgnored("empty", /printed nothing/);
  await isIgnored("blank", /printed nothing/);
});

test('2.6.6 "stdout is exactly `[SILENT]`"', () => isIgnored("silent", /\[SILENT\]/));

test('2.6.6 "stdout is the object `__svc_ignore__` = true"', async () => {
  await isIgnored("marked", /__svc_ignore__/);
  await isIgnored("markedReal", /__postern_ignore__/);
  assert.equal(await gateway.verdict("unmarked"), "accepted");
});

test('2.6.6 "the script times out"', () => isIgnored("slow", /took longer than 1000 ms/));

test('2.6.6 "the script is missing"', () => isIgnored("missing", /is missing/));

test('2.6.6 "or the exit code is non-zero"', () => isIgnored("failing", /exit code 3/));

test('2.6.6 "The response is HTTP 200 with `status` = `ignored` and `reason` = `script`"', async () => {
  const { status, reply } = await gateway.post("silent");
  assert.deepEqual([status, reply], [200, { status: "ignored", reason: "script" }]);
});
