import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { startProgram } from "./tools/program.ts";

const fuzz = fileURLToPath(new URL("../bench/fuzz.ts", import.meta.url));

test("five thousand hostile requests over real sockets find no fault", {
  skip: process.platform === "linux" ? false : "memory and open files are read from /proc",
}, async (t) => {
  const argv = [process.execPath, fuzz, "--requests", "5000", "--seed", "20260115", "--seconds", "60"];
  const { code, out, err } = await startProgram(t, argv).ended;
  assert.equal(code, 0, out + err);
  assert.match(out, /Requests: 5000 in /);
  assert.match(out, /No violations/);
});
