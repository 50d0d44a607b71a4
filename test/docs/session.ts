import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { dirname } from "node:path";
import type { TestContext } from "node:test";
import { startGatewayProcess } from "../tools/gateway-process.ts";
import { makeHome, type TestHome } from "../tools/home.ts";
import { freePort } from "../tools/port.ts";
import { binPath } from "../tools/program.ts";
import type { Block } from "./blocks.ts";

/*
 * A block "console session" is what one sees at a terminal: behind "$ " a command, below it what it prints. In what it prints,
 * "…" stands for any text in a line, and a line of it for any lines. All sessions of a page share a home and a gateway that runs on it; the pages show its default port.
 */

const shownPort = "127.0.0.1:8644";

/** A terminal on a home where a gateway runs. */
export interface Terminal {
  readonly home: TestHome;
  /** Runs one command line and answers all that it printed. */
  type(command: string): string;
}

export async function openTerminal(t: TestContext): Promise<Terminal> {
  const port = await freePort();
  const webhook = { enabled: true, host: "127.0.0.1", port };
  const home = await makeHome(t, {
    "config.yaml": JSON.stringify({ platforms: { webhook }, agent: { backend: "preview" } }),
  });
  await startGatewayProcess(t, home);
  const env = { HOME: home.folder, POSTERN_HOME: home.folder, PATH: `${dirname(binPath)}:${process.env.PATH}` };
  return {
    home,
    type(command) {
      const { stdout } = spawnSync("bash", ["-c", `exec 2>&1\n${command}`], { env, encoding: "utf8", timeout: 60_000 });
      return stdout.replaceAll(`127.0.0.1:${port}`, shownPort);
    },
  };
}

/** Types every command of a session and compares what it prints. */
export function replay(terminal: Terminal, { text, page, line }: Block): void {
  const [before, ...turns] = text.split(/^\$ /m);
  assert.equal(before, "", `${page}:${line}: a session begins with "$ "`);
  for (const turn of turns) {
    const [, command = "", expected = ""] = /^((?:.*\\\n)*.*\n)([\s\S]*)$/.exec(turn) ?? [];
    const printed = terminal.type(command);
    if (!patternOf(expected).test(printed)) assert.equal(printed, expected, `${page}:${line}: $ ${command}`);
  }
}

function patternOf(expected: string): RegExp {
  const line = (text: string) => text.split("…").map(RegExp.escape).join("[^\\n]*");
  const pieces = `${expected.trimEnd()}\n`.split(/^…\n/m).map(line);
  return new RegExp(`^${pieces.join("(?:.*\\n)*")}$`);
}
