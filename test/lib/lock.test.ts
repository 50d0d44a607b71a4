import assert from "node:assert/strict";
import { chmod, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { UserError } from "../../src/core/errors.ts";
import { takeLock } from "../../src/lib/lock.ts";
import { makeHome } from "../tools/home.ts";
import { startProgram } from "../tools/program.ts";

const module = fileURLToPath(new URL("../../src/lib/lock.ts", import.meta.url));

async function makePath(t: TestContext): Promise<string> {
  return join((await makeHome(t)).folder, "the.lock");
}

/** Another process that tries to take the lock, says how it went, and keeps it for as long as it lives. */
async function otherProcess(t: TestContext, path: string, waitMs = 0) {
  const script = `
    const { takeLock } = await import(${JSON.stringify(module)});
    globalThis.lock = takeLock(${JSON.stringify(path)}, ${waitMs});
    console.error(globalThis.lock ? "taken" : "refused");
    setInterval(() => {}, 1000);`;
  const program = startProgram(t, [process.execPath, "--input-type=module", "-e", script]);
  const [answer] = await program.said(/taken|refused/);
  return { ...program, answer };
}

describe("a lock", () => {
  test("is held by one, and is free when that one lets it go", async (t) => {
    const path = await makePath(t);
    const first = takeLock(path, 0);
    assert.ok(first);
    assert.equal(takeLock(path, 0), undefined);
    first.release();
    const second = takeLock(path, 0);
    assert.ok(second);
    second.release();
  });

  test("is refused to another process while this one holds it", async (t) => {
    const path = await makePath(t);
    const lock = takeLock(path, 0);
    assert.equal((await otherProcess(t, path)).answer, "refused");
    lock?.release();
    assert.equal((await otherProcess(t, path)).answer, "taken");
  });

  test("that is asked for twice in one process stays held against others", async (t) => {
    const path = await makePath(t);
    const lock = takeLock(path, 0);
    assert.equal(takeLock(path, 0), undefined);
    assert.equal((await otherProcess(t, path)).answer, "refused");
    lock?.release();
  });

  test("is free when its holder was killed", async (t) => {
    const path = await makePath(t);
    const holder = await otherProcess(t, path);
    assert.equal(holder.answer, "taken");
    assert.equal(takeLock(path, 0), undefined);
    holder.kill("SIGKILL");
    await holder.ended;
    const lock = takeLock(path, 0);
    assert.ok(lock);
    lock.release();
  });

  test("is waited for", async (t) => {
    const path = await makePath(t);
    const lock = takeLock(path, 0);
    const other = otherProcess(t, path, 20_000);
    setTimeout(() => lock?.release(), 300);
    assert.equal((await other).answer, "taken");
  });

  test("is a file for its owner only, also when it was another's before", async (t) => {
    const path = await makePath(t);
    await writeFile(path, "");
    await chmod(path, 0o666);
    takeLock(path, 0)?.release();
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  test("that cannot be made says why, and what to do, without a stack", async (t) => {
    const refused = (why: RegExp) => (error: unknown) => {
      assert.ok(error instanceof UserError, String(error));
      assert.match(
        error.message,
        /^Cannot lock ".+": .+; see that the disk has space and that the folder can be written/,
      );
      assert.match(error.message, why);
      return true;
    };
    assert.throws(() => takeLock("/no/such/folder/the.lock", 0), refused(/ENOENT/));
    const path = await makePath(t);
    assert.throws(() => takeLock(dirname(path), 0), refused(/unable to open database file/));
    await writeFile(path, "this is no lock file of ours at all, but somebody's text".repeat(50));
    assert.throws(() => takeLock(path, 0), refused(/not a database/));
  });
});
