import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createLog, type LogOptions, silentLog } from "../../src/lib/log.ts";

function open(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  return { lines, log: createLog({ level: "info", pretty: false, secrets: () => [], write, ...options }) };
}

describe("the log", () => {
  test("writes one JSON object a line, with level, time and message, at once", () => {
    const { log, lines } = open();
    log.warn({ route: "ci", ms: 1.5 }, "Look\nhere");
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? "", /^\{[^\n]*\}\n$/);
    const { time, ...line } = JSON.parse(lines[0] ?? "");
    assert.deepEqual(line, { level: "warn", route: "ci", ms: 1.5, msg: "Look\nhere" });
    assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  test("leaves out what is below its level", () => {
    const levels = ["debug", "info", "warn", "error"] as const;
    for (const [index, level] of levels.entries()) {
      const { log, lines } = open({ level });
      for (const one of levels) log[one]({}, one);
      assert.deepEqual(
        lines.map((line) => JSON.parse(line).msg),
        levels.slice(index),
      );
    }
  });

  test("shows an error with its stack and its causes", () => {
    const { log, lines } = open();
    log.error({ err: new Error("It broke", { cause: new Error("because of this") }) }, "Trouble");
    const { err } = JSON.parse(lines[0] ?? "");
    assert.match(err.stack, /It broke.*because of this/s);
    assert.match(err.message, /It broke/);
  });

  test("blots secrets out wherever they stand: fields, keys, messages, stacks", () => {
    const { log, lines } = open({ secrets: () => ["s3cret-value"] });
    const err = new Error("failed with s3cret-value", { cause: new Error("s3cret-value") });
    log.info({ a: "x s3cret-value y", b: { c: ["s3cret-value"] }, "s3cret-value": 1, err }, "s3cret-value");
    assert.ok(!(lines[0] ?? "").includes("s3cret"), lines[0] ?? "no line");
    assert.equal(JSON.parse(lines[0] ?? "").a, "x [redacted] y");
  });

  test("blots out secrets that JSON writes in another way", () => {
    const secrets = ['quo"te-inside', "back\\slash", "line\nbreak\tand tab", "Zürich-東京", "\u0007bell-inside"];
    const { log, lines } = open({ secrets: () => secrets });
    log.info({ all: secrets, text: secrets.join(" | ") }, "Look");
    const { all, text } = JSON.parse(lines[0] ?? "");
    assert.deepEqual(
      all,
      secrets.map(() => "[redacted]"),
    );
    assert.equal(text, secrets.map(() => "[redacted]").join(" | "));
  });

  test("knows secrets that came to be after it was opened", () => {
    const secrets: string[] = [];
    const { log, lines } = open({ secrets: () => secrets });
    secrets.push("later-secret");
    log.info({}, "later-secret");
    assert.equal(JSON.parse(lines[0] ?? "").msg, "[redacted]");
  });

  test("for a person has time, level, message and fields on one line, without secrets", () => {
    const { log, lines } = open({ pretty: true, secrets: () => ['quo"te-inside'] });
    log.info({ route: "ci", list: [1, 2], none: undefined, secret: 'quo"te-inside' }, "Event accepted");
    assert.match(
      lines[0] ?? "",
      /^\d\d:\d\d:\d\d info {2}Event accepted {2}route=ci list=\[1,2\] secret=\[redacted\]\n$/,
    );
    log.warn({}, "Alone");
    assert.match(lines[1] ?? "", /^\d\d:\d\d:\d\d warn {2}Alone\n$/);
  });

  test("for a person begins no line with what somebody else wrote, and moves no cursor", () => {
    const { log, lines } = open({ pretty: true });
    log.info({ text: "a\n20:15:27 error all is lost\r\u001b[2Jb\u202ec 👩‍👩‍👧" }, "Delivered");
    const text = lines.join("");
    assert.match(text, / text=a\n {15}\| 20:15:27 error all is lost\n {15}\| \[2Jbc 👩‍👩‍👧\n$/u);
  });

  test("says nothing when it is silent", () => {
    assert.doesNotThrow(() => {
      for (const level of ["debug", "info", "warn", "error"] as const) silentLog[level]({}, "x");
    });
  });
});
