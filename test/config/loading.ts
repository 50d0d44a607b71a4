import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { type Config, type LoadOptions, loadConfig } from "../../src/config/load.ts";
import { ConfigError, type Problem } from "../../src/core/errors.ts";
import { makeHome } from "../tools/home.ts";

export interface Parts extends Partial<Omit<LoadOptions, "home">> {
  readonly dotenv?: string;
}

/** Loads a configuration as it would stand in `config.yaml`. */
export async function load(t: TestContext, yaml: string, { dotenv, ...options }: Parts = {}): Promise<Config> {
  const home = await makeHome(t, { "config.yaml": yaml, ...(dotenv === undefined ? {} : { ".env": dotenv }) });
  return loadConfig({ home, env: {}, ...options });
}

/** The problems of a configuration that must be refused. */
export async function problemsOf(t: TestContext, yaml: string, parts?: Parts): Promise<readonly Problem[]> {
  try {
    await load(t, yaml, parts);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return assert.fail("The configuration was accepted");
}

/** Each problem as `line:column key: message`, in the order of the file. */
export async function complaints(t: TestContext, yaml: string, parts?: Parts): Promise<string[]> {
  const problems = await problemsOf(t, yaml, parts);
  return [...problems]
    .sort((one, other) => (one.line ?? 0) - (other.line ?? 0))
    .map(({ line, column, key, message }) => `${line === undefined ? "" : `${line}:${column} `}${key}: ${message}`);
}

/** A configuration with one route, whose lines begin on line 7, six spaces in. */
export function withRoute(lines: string, more = ""): string {
  const indented = lines.replaceAll(/^(?=.)/gm, "        ");
  return `platforms:\n  webhook:\n    enabled: true\n    secret: the-global-secret\n    routes:\n      one:\n${indented}\n${more}`;
}
