import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Outcome } from "../../src/agent/agent.ts";
import { command } from "../../src/agent/command.ts";
import { aContext, aRequest, type ContextParts } from "./surroundings.ts";

function shell(script: string, parts: ContextParts = {}, request = aRequest()): Promise<Outcome> {
  const settings = { ...parts.settings, command: ["/bin/sh", "-c", script] };
  return command.run(request, aContext({ ...parts, settings }));
}

function answerOf(outcome: Outcome): string {
  assert.equal(outcome.status, "completed", JSON.stringify(outcome));
  return outcome.answer;
}

function reasonOf(outcome: Outcome): string {
  assert.notEqual(outcome.status, "completed");
  return outcome.status === "completed" ? "" : outcome.reason;
}

async function freshFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "postern-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

test("the program reads the skill and the prompt on standard input", async () => {
  const skill = { name: "s", text: "Be kind\n", folder: "/s" };
  assert.equal(answerOf(await shell("cat", {}, aRequest({ skill }))), "Be kind\n\nReview pull request 7");
});

test("newlines at the end of the answer are trimmed, others and blanks are kept", async () => {
  assert.equal(answerOf(await shell(String.raw`printf '\n a \n b \r\n\n'`)), "\n a \n b ");
});

test("an answer of a million newlines and a word takes no time to trim", async () => {
  const answer = answerOf(await shell("head -c 1000000 /dev/zero | tr '\\0' '\\n'; printf x"));
  assert.equal(answer.length, 1_000_001);
});

test("a program that prints nothing and does not read its input has answered nothing", async () => {
  const outcome = await shell("exec true", {}, aRequest({ prompt: "x".repeat(1_000_000) }));
  assert.equal(answerOf(outcome), "");
  assert.deepEqual(outcome.transcript, []);
});

test("invalid UTF-8 is replaced", async () => {
  assert.equal(answerOf(await shell(String.raw`printf 'a\377b'`)), "a\ufffdb");
});

test("the environment is the plain one, the run's variables and those named in the settings", async () => {
  const env = { HOME: "/home/x", SECRET: "hidden-value", PASSED: "yes", OPENAI_API_KEY: "hidden-key" };
  const request = aRequest({ eventType: "pu\0sh", deliveryId: "d".repeat(200_000) });
  const answer = answerOf(await shell("env", { env, settings: { env: ["PASSED", "ABSENT"] } }, request));
  const lines = answer.split("\n").filter((line) => !/^(PWD|SHLVL|_|OLDPWD|PATH)=/.test(line));
  assert.deepEqual(lines.toSorted(), [
    "HOME=/home/x",
    "PASSED=yes",
    `WEBHOOK_DELIVERY_ID=${"d".repeat(1024)}`,
    "WEBHOOK_EVENT=push",
    "WEBHOOK_ROUTE=reviews",
  ]);
});

test("it starts in a fresh empty folder that is gone afterwards", async () => {
  const folder = answerOf(await shell("ls -A; touch file; pwd"));
  assert.match(folder, /postern-run-/);
  assert.equal(existsSync(folder), false);
});

test("another exit code than 0 is a failure with the end of standard error, without the named secrets", async () => {
  const script = String.raw`echo partial; head -c 1000 /dev/zero | tr '\0' y >&2; echo " bad $TOKEN" >&2; exit 3`;
  const outcome = await shell(script, { env: { TOKEN: "tok-123456" }, settings: { env: ["TOKEN"] } });
  assert.deepEqual([outcome.status, "transient" in outcome && outcome.transient], ["failed", false]);
  const reason = reasonOf(outcome);
  assert.match(reason, /^the command ended with exit code 3: y+ bad \[redacted\]$/);
  assert.ok(reason.length < 350);
  assert.deepEqual(outcome.transcript, [{ role: "assistant", text: "partial" }]);
});

test("an end by a signal is a failure", async () => {
  assert.equal(reasonOf(await shell("kill -9 $$")), "the command was ended by a signal");
});

test("more than 1 MiB of output is a failure", async () => {
  const outcome = await shell("yes");
  assert.equal(outcome.status, "failed");
  assert.equal(reasonOf(outcome), "the command printed more than 1048576 bytes and was ended");
});

test("time up ends the whole group and says so", async () => {
  const outcome = await shell("sleep 60 & sleep 60", { settings: { timeoutMs: 100 } });
  assert.equal(outcome.status, "timeout");
  assert.equal(reasonOf(outcome), "the run did not end within 0.1 s");
});

test("a program that puts things away on SIGTERM is given the time to do so", async (t) => {
  const folder = await freshFolder(t);
  const fifo = join(folder, "fifo");
  assert.equal(spawnSync("mkfifo", [fifo]).status, 0);
  const controller = new AbortController();
  const script = `trap 'echo done > ${folder}/away; exit 0' TERM; echo ready > ${fifo}; sleep 60 & wait`;
  const running = shell(script, { signal: controller.signal });
  await readFile(fifo, "utf8");
  controller.abort();
  assert.equal((await running).status, "cancelled");
  assert.equal(await readFile(join(folder, "away"), "utf8"), "done\n");
});

test("a program that ignores SIGTERM is killed", async (t) => {
  const fifo = join(await freshFolder(t), "fifo");
  assert.equal(spawnSync("mkfifo", [fifo]).status, 0);
  const controller = new AbortController();
  const running = shell(`trap '' TERM; echo $$ > ${fifo}; sleep 60`, { signal: controller.signal });
  const pid = Number(await readFile(fifo, "utf8"));
  controller.abort();
  assert.equal((await running).status, "cancelled");
  assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
});

test("a run that is cancelled before it starts runs nothing", async (t) => {
  const mark = join(await freshFolder(t), "mark");
  const signal = AbortSignal.abort();
  assert.equal((await shell(`touch ${mark}`, { signal })).status, "cancelled");
  assert.equal(existsSync(mark), false);
});

async function blockedBy(argv: readonly string[], path = "/usr/bin:/bin"): Promise<string | undefined> {
  return command.blocked(aContext({ settings: { command: argv }, env: { PATH: path } }));
}

test("blocked says what is wrong with the program", async (t) => {
  const folder = await freshFolder(t);
  await writeFile(join(folder, "plain"), "text");
  assert.match((await blockedBy([])) ?? "", /^agent\.command is empty: set it/);
  assert.match((await blockedBy([""])) ?? "", /^agent\.command is empty/);
  assert.match(
    (await blockedBy(["nowhere-to-be-found"])) ?? "",
    /^agent\.command "nowhere-to-be-found" is not on PATH; /,
  );
  assert.match((await blockedBy(["./x"])) ?? "", /is a relative path/);
  assert.match((await blockedBy([folder])) ?? "", /is not an executable file/);
  assert.match((await blockedBy(["plain"], folder)) ?? "", /is not on PATH/);
  await chmod(join(folder, "plain"), 0o755);
  assert.equal(await blockedBy(["plain"], `/nowhere:${folder}`), undefined);
  assert.equal(await blockedBy([join(folder, "plain")]), undefined);
  assert.equal(await blockedBy(["sh"]), undefined);
});

test("a program that vanished after the check is a failure, not a throw", async () => {
  const outcome = await command.run(aRequest(), aContext({ settings: { command: ["nowhere-to-be-found"] } }));
  assert.match(reasonOf(outcome) ?? "", /^agent\.command "nowhere-to-be-found" is not on PATH/);
});
