import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Home } from "../../config/home.ts";
import { type Config, loadConfig } from "../../config/load.ts";
import { ConfigError, UserError } from "../../core/errors.ts";
import type { Environment } from "../../core/types.ts";
import { writeAtomic } from "../../lib/file.ts";

/**
 * Loads the configuration as it would be with this `config.yaml` and this environment, before anything of it is in the home.
 * @throws ConfigError whose problems name the places in the file that is not written yet.
 */
export async function checkResult(home: Home, yaml: string, env: Environment): Promise<Config> {
  const folder = await mkdtemp(join(tmpdir(), "postern-setup-"));
  const staged = join(folder, "config.yaml");
  const real = (text: string) => text.replaceAll(staged, home.config);
  try {
    await writeAtomic(staged, yaml);
    const config = await loadConfig({ home: { ...home, config: staged }, env });
    return { ...config, home, warnings: config.warnings.map(real) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(
      error.problems.map((problem) => (problem.file === staged ? { ...problem, file: home.config } : problem)),
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Refuses a target that no route could use as it is set up. */
export function checkTarget(config: Config, name: string): void {
  const platform = config.platforms.get(name);
  if (platform && "values" in platform) return;
  const why = platform?.unusable ?? "it is not set up";
  throw new UserError(
    `Nothing was written: the target "${name}" cannot be used: ${why}; add --target-setting key=value`,
  );
}
