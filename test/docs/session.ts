import assert from "node:assert/strict";
import { dirname } from "node:path";
import type { TestContext } from "node:test";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { makeHome, type TestHome } from "../tools/home.ts";
import { freePort } from "../tools/port.ts";
import { binPath, startProgram } from "../tools/program.ts";
import type { Block } from "./blocks.ts";

/*
 * A block "console session" is what one sees at a terminal: behind "$ " a command, below it what it prints. In what it
 * prints, "…" stands for any text in a line, and a line of it for any lines; a date with a time stands for any; and the
 * beginning of an event's id ("019a2b3c-1d2e") for that of the event that stands there, from then on also in commands.
 * All sessions of a page share a home, which is the current folder too, and a gateway that runs on it; the pages show its
 * default port.
 */

const shownPort = "127.0.0.1:8644";

/** A terminal on a home where a gateway runs. */
export interface Terminal {
  readonly home: TestHome;
  /** The ids that pages show, and what stands there really. */
  readonly ids: Map<string, string>;
  /** Runs one command line and answers all that it printed. */
  type(command: string): Promise<string>;
}

/** `platforms`: sections of the configuration besides that of the webhooks. */
export async function openTerminal(t: TestContext, platforms: object = {}): Promise<Terminal> {
  const port = await freePort();
  const webhook = { enabled: true, host: "127.0.0.1", port };
  const home = await makeHome(t, {
    "config.yaml": JSON.stringify({ platforms: { webhook, ...platforms }, agent: { backend: "preview" } }),
  });
  await startGatewayProcess(t, home);
  return {
    home,
    ids: new Map(),
    type: async (command) => (await runCommand(t, command, home)).replaceAll(`127.0.0.1:${port}`, shownPort),
  };
}

/** Runs a command line as one does at a terminal in the home's folder. Answers all that it printed. */
export async function runCommand(
  t: TestContext,
  command: string,
  home: Pick<TestHome, "folder">,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const path = `${dirname(binPath)}:${process.env.PATH}`;
  const { out } = await startProgram(t, ["bash", "-c", `exec 2>&1\n${command}`], {
    cwd: home.folder,
    env: { HOME: home.folder, POSTERN_HOME: home.folder, ...env, PATH: path },
  }).ended;
  return out;
}

/** Types every command of a session and compares what it prints. */
export async function replay(terminal: Terminal, { text, page, line }: Block): Promise<void> {
  const [before, ...turns] = text.split(/^\$ /m);
  assert.equal(before, "", `${page}:${line}: a session begins with "$ "`);
  for (const turn of turns) {
    const [, command = "", expected = ""] = /^((?:.*\\\n)*.*\n)([\s\S]*)$/.exec(turn) ?? [];
    const printed = await terminal.type(command.replaceAll(idPattern, (id) => terminal.ids.get(id) ?? id));
    const match = patternOf(expected, terminal.ids).exec(printed);
    if (!match) assert.equal(printed, expected, `${page}:${line}: $ ${command}`);
    for (const [name, id] of Object.entries(match?.groups ?? {})) terminal.ids.set(shownId(name), id);
  }
}

const idPattern = /\b[0-9a-f]{8}-[0-9a-f]{4}\b/g;
const timePattern = /\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{3})?/;
/** Behind the beginning of an id. */
const restPattern = /(?:-[0-9a-f]{4}){2}-[0-9a-f]{12}\b/;
const varying = new RegExp(["…", timePattern.source, restPattern.source, idPattern.source].join("|"), "g");

function patternOf(expected: string, ids: ReadonlyMap<string, string>): RegExp {
  const seen = new Set<string>();
  const standIn = (word: string): string => {
    if (word === "…") return "[^\\n]*";
    if (word.startsWith("-")) return restPattern.source;
    if (word.includes(":")) return timePattern.source;
    const id = ids.get(word);
    if (id !== undefined) return RegExp.escape(id);
    if (seen.has(word)) return `\\k<${groupName(word)}>`;
    seen.add(word);
    return `(?<${groupName(word)}>${idPattern.source})`;
  };
  const line = (text: string) => {
    const words = text.match(varying) ?? [];
    const between = text.split(varying).map((part) => RegExp.escape(part));
    return between.map((part, index) => part + (words[index] === undefined ? "" : standIn(words[index]))).join("");
  };
  const pieces = `${expected.trimEnd()}\n`.split(/^…\n/m).map(line);
  return new RegExp(`^${pieces.join("(?:.*\\n)*")}$`);
}

function groupName(id: string): string {
  return `id_${id.replace("-", "_")}`;
}

function shownId(groupName: string): string {
  return groupName.slice(3).replace("_", "-");
}
