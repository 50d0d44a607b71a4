import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { CappedOutput, ReplyReader } from "../../src/sandbox/output.ts";

suite("capped output", () => {
  const table: [string, string[], number, string, boolean][] = [
    ["nothing", [], 10, "", false],
    ["what fits", ["abc", "def"], 10, "abcdef", false],
    ["what just fits", ["0123456789"], 10, "0123456789", false],
    ["one byte too many", ["0123456789a"], 10, "01234\n[1 bytes cut]\n6789a", true],
    ["many small pieces", [..."0123456789abcdef"], 5, "012\n[11 bytes cut]\nef", true],
    ["room for one byte", ["abc"], 1, "a\n[2 bytes cut]\n", true],
    ["no room", ["abc"], 0, "\n[3 bytes cut]\n", true],
    ["a cut within characters", ["žžžžž"], 6, "ž\n[4 bytes cut]\nž", true],
  ];
  for (const [what, pieces, max, output, truncated] of table) {
    test(`keeps ${what}`, () => {
      const capped = new CappedOutput(max);
      for (const piece of pieces) capped.push(Buffer.from(piece));
      assert.deepEqual(capped.result(), { output, truncated });
    });
  }
});

suite("a reply", () => {
  const mark = "0123456789abcdef";

  test("is read wherever the stream is split", () => {
    const stream = Buffer.from(`out${mark.slice(0, 5)}put\n${mark} 042\n`);
    for (let at = 0; at <= stream.length; at += 1) {
      const reader = new ReplyReader(mark, 100);
      const first = reader.read(stream.subarray(0, at));
      assert.equal(first ?? reader.read(stream.subarray(at)), 42);
      assert.equal(reader.output.result().output, `out${mark.slice(0, 5)}put\n`);
    }
  });

  test("ends at its own mark only", () => {
    const reader = new ReplyReader(mark, 100);
    assert.equal(reader.read(Buffer.from("fedcba9876543210 000\n")), undefined);
    assert.equal(reader.read(Buffer.from(`${mark} 001\n`)), 1);
    assert.equal(reader.output.result().output, "fedcba9876543210 000\n");
  });

  for (const status of [" 256\n", " 999\n", " -01\n", " 1e1\n", "0000\n", " 0000", " 00\n\n", "\0\0\0\0\0"]) {
    test(`is refused when its status is ${JSON.stringify(status)}`, () => {
      assert.throws(() => new ReplyReader(mark, 100).read(Buffer.from(mark + status)), /no exit status/);
    });
  }

  test("that never ends gives its output when it is given up", () => {
    const reader = new ReplyReader(mark, 100);
    reader.read(Buffer.from(`out ${mark} 0`));
    reader.giveUp();
    assert.equal(reader.output.result().output, `out ${mark} 0`);
  });
});
