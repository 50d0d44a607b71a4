import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { makeHome } from "../tools/home.ts";
import { binPath, postern, startProgram } from "../tools/program.ts";
import { run } from "./command.ts";

const commands = [
  [],
  ["gateway"],
  ["gateway", "run"],
  ["gateway", "setup"],
  ["webhook"],
  ["webhook", "subscribe"],
  ["webhook", "list"],
  ["webhook", "remove"],
  ["webhook", "test"],
  ["events"],
  ["events", "list"],
  ["events", "tail"],
  ["events", "show"],
  ["events", "replay"],
  ["events", "cancel"],
  ["events", "export"],
  ["events", "import"],
  ["config"],
  ["config", "check"],
  ["config", "schema"],
  ["doctor"],
  ["ledger"],
  ["ledger", "check"],
  ["ledger", "backup"],
  ["ledger", "compact"],
  ["ledger", "import"],
  ["target"],
  ["target", "list"],
  ["target", "check"],
  ["target", "send"],
  ["demo"],
];

for (const command of commands) {
  const name = ["postern", ...command].join(" ");
  test(`${name} --help has an example of itself, on standard output, and exits 0`, async (t) => {
    const { code, out, err } = await run(await makeHome(t), [...command, "--help"]);
    assert.equal(code, 0);
    assert.equal(err, "");
    assert.match(out, new RegExp(`\\nExample:\\n  \\$ ${name}`));
  });
}

test("the list of commands in the help is the list above", async (t) => {
  const home = await makeHome(t);
  for (const group of commands.filter((command) => command.length < 2)) {
    const { out } = await run(home, [...group, "--help"]);
    const listed = [...(out.split("\nCommands:\n")[1] ?? "").split("\n\n")[0]!.matchAll(/^ {2}([a-z]+)/gm)];
    const names = listed.map(([, name]) => name).filter((name) => name !== "help");
    const known = commands.filter(
      (command) => command.length === group.length + 1 && group.every((word, at) => command[at] === word),
    );
    assert.deepEqual(names.sort(), known.map((command) => command.at(-1)).sort());
  }
});

for (const [what, args] of [
  ["no command", []],
  ["an unknown command", ["wehbook"]],
  ["an unknown subcommand", ["webhook", "lst"]],
  ["a group alone", ["events"]],
  ["an unknown option", ["webhook", "list", "--all"]],
  ["a missing argument", ["webhook", "remove"]],
  ["an argument too many", ["webhook", "list", "x"]],
  ["an option without its value", ["webhook", "subscribe", "x", "--prompt"]],
  ["a port that is none", ["gateway", "run", "--port", "eighty"]],
  ["a port out of range", ["gateway", "--port", "70000"]],
  ["a limit of nothing", ["events", "list", "--limit", "0"]],
  ["a state that there is not", ["events", "list", "--state", "broken"]],
  ["a target without a name", ["target", "send"]],
  ["an address key without its value", ["target", "send", "log", "x", "--extra", "chat_id"]],
  ["a pair without its value", ["webhook", "subscribe", "x", "--deliver-extra", "key"]],
] as const) {
  test(`${what} is wrong usage: exit 2, told on standard error with the way to the help`, async (t) => {
    const { code, out, err } = await run(await makeHome(t), args);
    assert.equal(code, 2);
    assert.equal(out, "");
    assert.match(err, /--help|Usage:/);
  });
}

test("a mistyped command is met with the one that was meant", async (t) => {
  const { err } = await run(await makeHome(t), ["webhok", "list"]);
  assert.match(err, /unknown command 'webhok'[\s\S]*Did you mean webhook\?/);
});

test("a bad profile name is a failure that says which letters it may have", async (t) => {
  const { code, err } = await run(await makeHome(t), ["webhook", "list", "--profile", "../x"]);
  assert.equal(code, 1);
  assert.match(err, /^postern: The profile "\.\.\/x" is not a name; use letters/);
});

test("a profile has subscriptions of its own, by flag before or after the command and by environment", async (t) => {
  const home = await makeHome(t, {
    "webhook_subscriptions.json": '{"of-the-home":{}}',
    "profiles/blue/webhook_subscriptions.json": '{"of-the-profile":{}}',
  });
  const env = { POSTERN_HOME: home.folder, POSTERN_PROFILE: "blue" };
  assert.match((await run(home, ["webhook", "list"])).out, /of-the-home/);
  assert.match((await run(home, ["webhook", "list", "--profile", "blue"])).out, /of-the-profile/);
  assert.match((await run(home, ["--profile", "blue", "webhook", "list"])).out, /of-the-profile/);
  assert.match((await run(home, ["webhook", "list"], { env })).out, /of-the-profile/);
});

test("what the operating system refuses is told without a stack", async (t) => {
  const home = await makeHome(t, { "not-a-folder": "" });
  const { code, err } = await run({ folder: `${home.folder}/not-a-folder` }, [
    "webhook",
    "subscribe",
    "x",
    "--secret",
    "abc",
  ]);
  assert.equal(code, 1);
  assert.match(err, /^postern: (EEXIST|ENOTDIR): .*not-a-folder/);
  assert.doesNotMatch(err, /\n {4}at /);
});

test("the real process prints its version, also through the launcher", async (t) => {
  const { version } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  for (const args of [["--version"], ["-V"]]) {
    assert.deepEqual(await postern(t, args), { code: 0, signal: null, out: `${version}\n`, err: "" });
  }
  const launched = startProgram(t, [process.execPath, binPath, "--version"]);
  assert.deepEqual(await launched.ended, { code: 0, signal: null, out: `${version}\n`, err: "" });
});

test("the real process exits 0, 1, 2 and 78, with results on standard output and errors on standard error", async (t) => {
  const good = await makeHome(t);
  const bad = await makeHome(t, { "config.yaml": "nothing: 1" });
  const cases = [
    [0, good, ["webhook", "list"]],
    [1, good, ["webhook", "remove", "x"]],
    [2, good, ["webhook", "remov"]],
    [78, bad, ["config", "check"]],
  ] as const;
  await Promise.all(
    cases.map(async ([expected, home, args]) => {
      const { code, out, err } = await postern(t, args, { env: { POSTERN_HOME: home.folder } });
      assert.equal(code, expected, err);
      assert.equal(out === "", expected !== 0);
      assert.equal(err === "", expected === 0);
    }),
  );
});

test("a reader that goes away early is no error", async (t) => {
  const home = await makeHome(t);
  const command = `"${process.execPath}" "${new URL("../../src/main.ts", import.meta.url).pathname}" --help`;
  const program = startProgram(t, ["/bin/sh", "-c", `{ ${command}; echo "exit $?" >&2; } | true`], {
    env: { POSTERN_HOME: home.folder },
  });
  assert.equal((await program.ended).err, "exit 0\n");
});
