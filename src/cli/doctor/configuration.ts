import type { Home } from "../../config/home.ts";
import { type Config, loadConfig } from "../../config/load.ts";
import { ConfigError, describeProblem } from "../../core/errors.ts";
import type { Environment } from "../../core/types.ts";
import { type Finding, findings } from "./finding.ts";

const { ok, warning, problem } = findings("configuration");

/** Whether the gateway would start with it. */
export async function checkConfiguration(
  home: Home,
  env: Environment,
): Promise<{ readonly config: Config | undefined; readonly found: readonly Finding[] }> {
  try {
    const config = await loadConfig({ home, env });
    const warnings = config.warnings.map((text) => warning(text, 'Look at it with "postern config check"'));
    return {
      config,
      found: [ok(`It is valid, with ${config.routes.size} static routes`), ...warnings, ...isOn(config)],
    };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const found = error.problems.map((one) =>
      problem(describeProblem(one), 'Mend it, and see with "postern config check"'),
    );
    return { config: undefined, found };
  }
}

function isOn({ webhook }: Config): Finding[] {
  if (webhook.enabled) return [];
  return [
    warning("The webhook gateway is not enabled", 'Set "platforms.webhook.enabled: true", or WEBHOOK_ENABLED=true'),
  ];
}
