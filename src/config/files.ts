import { parseEnv } from "node:util";
import { ConfigError } from "../core/errors.ts";
import type { Environment } from "../core/types.ts";
import { readTextIfThere } from "../lib/file.ts";
import type { Home } from "./home.ts";

/**
 * The environment over what the home's `.env` says.
 * @throws ConfigError when the file is there and cannot be read.
 */
export async function joinEnvironment(home: Home, env: Environment): Promise<Environment> {
  const text = await readConfigFile(home.dotenv);
  return text === undefined ? env : { ...parseEnv(text), ...env };
}

/**
 * A file of the configuration, `undefined` when there is none.
 * @throws ConfigError when it cannot be read.
 */
export async function readConfigFile(path: string): Promise<string | undefined> {
  try {
    return await readTextIfThere(path);
  } catch (error) {
    const why = error instanceof Error && "code" in error ? String(error.code) : String(error);
    const message = `Cannot be read (${why}); make it a file that this user may read`;
    throw new ConfigError([{ file: path, key: "(file)", message }]);
  }
}
