import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { isMissing, isShortage, makePrivateFolder, readTextIfThere, writeAtomic } from "../../src/lib/file.ts";
import { makeHome } from "../tools/home.ts";

async function modeOf(path: string): Promise<number> {
  return (await stat(path)).mode & 0o777;
}

describe("an atomic write", () => {
  test("makes the file for its owner only, and leaves nothing beside it", async (t) => {
    const { folder } = await makeHome(t);
    const path = join(folder, "file.json");
    await writeAtomic(path, "Zürich");
    assert.equal(await readFile(path, "utf8"), "Zürich");
    assert.equal(await modeOf(path), 0o600);
    assert.deepEqual(await readdir(folder), ["file.json"]);
  });

  test("replaces a file, and takes away what others could do with it", async (t) => {
    const { folder } = await makeHome(t);
    const path = join(folder, "file.json");
    await writeFile(path, "a much longer text than the new one");
    await chmod(path, 0o666);
    await writeAtomic(path, "new");
    assert.deepEqual([await readFile(path, "utf8"), await modeOf(path)], ["new", 0o600]);
  });

  test("is seen as the old text or the new one, never as something between", async (t) => {
    const { folder } = await makeHome(t);
    const path = join(folder, "file.json");
    const texts = ["a", "b"].map((letter) => letter.repeat(200_000));
    await writeAtomic(path, texts[0]!);
    let isWriting = true;
    const writing = (async () => {
      for (let turn = 0; turn < 20; turn += 1) await writeAtomic(path, texts[turn % 2]!);
      isWriting = false;
    })();
    let reads = 0;
    while (isWriting) {
      const text = await readFile(path, "utf8");
      assert.ok(texts.includes(text), `${text.length} characters`);
      reads += 1;
    }
    await writing;
    assert.ok(reads > 0);
    assert.deepEqual(await readdir(folder), ["file.json"]);
  });

  test("many at a time leave one of the texts and nothing beside it", async (t) => {
    const { folder } = await makeHome(t);
    const path = join(folder, "file.json");
    const texts = Array.from({ length: 20 }, (_, index) => `text ${index}`);
    await Promise.all(texts.map((text) => writeAtomic(path, text)));
    assert.ok(texts.includes(await readFile(path, "utf8")));
    assert.deepEqual(await readdir(folder), ["file.json"]);
  });

  test("that fails leaves nothing behind", async (t) => {
    const { folder } = await makeHome(t);
    await mkdir(join(folder, "taken", "full"), { recursive: true });
    await assert.rejects(writeAtomic(join(folder, "taken"), "text"));
    assert.deepEqual(await readdir(folder), ["taken"]);
    await assert.rejects(writeAtomic(join(folder, "absent", "file"), "text"), { code: "ENOENT" });
  });
});

describe("a file that may not be there", () => {
  test("is read when it is, and is no error when it is not", async (t) => {
    const { folder } = await makeHome(t, { there: "text" });
    assert.equal(await readTextIfThere(join(folder, "there")), "text");
    assert.equal(await readTextIfThere(join(folder, "not there")), undefined);
    assert.equal(await readTextIfThere(join(folder, "there", "below")), undefined);
  });

  test("is an error when it is something else", async (t) => {
    const { folder } = await makeHome(t);
    await assert.rejects(readTextIfThere(folder), { code: "EISDIR" });
  });
});

test("errors are told apart by their codes", () => {
  const withCode = (code: string) => Object.assign(new Error(code), { code });
  assert.deepEqual(
    ["ENOENT", "ENOTDIR", "EACCES"].map((code) => isMissing(withCode(code))),
    [true, true, false],
  );
  assert.equal(isMissing("ENOENT"), false);
  assert.deepEqual(["EMFILE", "ENFILE", "EAGAIN", "ENOMEM", "ENOENT", undefined].map(isShortage), [
    ...[true, true, true, true],
    ...[false, false],
  ]);
});

test("a private folder is for its owner only, with those on the way; one that is there keeps its mode", async (t) => {
  const { folder } = await makeHome(t);
  await makePrivateFolder(join(folder, "a", "b"));
  assert.deepEqual([await modeOf(join(folder, "a")), await modeOf(join(folder, "a", "b"))], [0o700, 0o700]);
  await chmod(join(folder, "a"), 0o755);
  await makePrivateFolder(join(folder, "a"));
  assert.equal(await modeOf(join(folder, "a")), 0o755);
});
