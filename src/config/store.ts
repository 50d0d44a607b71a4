import { z } from "zod";
import { ConfigError, type Problem } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import type { Environment } from "../core/types.ts";
import { badStoreUrl, type StoreSettings, storeSecrets } from "../store/settings.ts";
import { joinEnvironment, readConfigFile } from "./files.ts";
import type { Home } from "./home.ts";
import { readYaml, schemaProblems } from "./problems.ts";
import { type FileConfig, storeSchema } from "./schema.ts";

const variable = "POSTERN_STORE_URL";

/**
 * Where the ledger of a home is, for commands that need no more of the configuration than this: whatever else is wrong in
 * `config.yaml` does not keep them from working.
 * @throws ConfigError when what is said of the store is wrong, or may be said in a file that is no YAML.
 */
export async function loadStoreSettings(options: {
  readonly home: Home;
  readonly env: Environment;
}): Promise<StoreSettings> {
  const { home } = options;
  const env = await joinEnvironment(home, options.env);
  const problems: Problem[] = [];
  const section = sectionOf(home.config, (await readConfigFile(home.config)) ?? "", problems);
  const settings = storeSettings(section, home, env, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return settings;
}

/** The environment's store, else the file's, else the home's own file. Mistakes in the environment are noted. */
export function storeSettings(
  section: FileConfig["store"],
  home: Home,
  env: Environment,
  problems: Problem[],
): StoreSettings {
  const fromEnv = env[variable]?.trim() || undefined;
  const message = fromEnv === undefined ? undefined : badStoreUrl(fromEnv);
  if (message !== undefined) problems.push({ key: variable, message });
  const url = fromEnv ?? section.url;
  return url === undefined ? { kind: "sqlite", path: home.ledger } : { kind: "postgres", url, schema: section.schema };
}

/** What is secret of every store that is named, in force or not. */
export function secretsOfStores(section: FileConfig["store"], env: Environment): string[] {
  return [env[variable]?.trim(), section.url].flatMap((url) => (url ? storeSecrets(url) : []));
}

const fileSchema = z.object({ store: storeSchema.prefault({}) });

/** The section `store` of a file that may be wrong everywhere else. What is wrong in it is noted. */
function sectionOf(file: string, text: string, problems: Problem[]): FileConfig["store"] {
  const source = readYaml(file, text);
  // What is no YAML may name a store all the same, unless the word is nowhere in it.
  if (source.value === undefined && /\bstore\b/.test(text)) problems.push(...source.problems);
  const parsed = fileSchema.safeParse(isObject(source.value) ? source.value : {}, { reportInput: true });
  if (parsed.success) return parsed.data.store;
  problems.push(...schemaProblems(source, parsed.error, fileSchema));
  return fileSchema.parse({}).store;
}
