import type { Problem } from "../core/errors.ts";
import { INSECURE_NO_AUTH } from "../core/names.ts";
import type { Environment } from "../core/types.ts";
import { type Platforms, secretSettings, targetNames } from "./platforms.ts";
import { isThere, problemAt, type Source } from "./problems.ts";
import { type Route, secretProblem } from "./route.ts";

/** Stands in for global secrets with a mistake, so that routes without their own are not told to have none. */
const broken = ["broken"];

const places = ["platforms.webhook.extra.secret", "platforms.webhook.secret"].map((key) => key.split("."));

/** The secrets of routes without their own: of the environment, else of the file. A mistake in them is noted. */
export function globalSecrets(
  fromFile: readonly string[] | undefined,
  isLoopback: boolean,
  env: Environment,
  source: Source,
  problems: Problem[],
): readonly string[] {
  const complain = (problem: Problem) => {
    problems.push(problem);
    return broken;
  };
  if (env.WEBHOOK_SECRET?.trim()) {
    const message = secretProblem([env.WEBHOOK_SECRET], isLoopback);
    return message ? complain({ key: "WEBHOOK_SECRET", message }) : [env.WEBHOOK_SECRET];
  }
  if (problems.some(({ key }) => places.some((path) => key === path.join(".")))) return broken;
  if (!fromFile) return [];
  const message = secretProblem(fromFile, isLoopback);
  if (!message) return fromFile;
  return complain(problemAt(source, places.find((path) => isThere(source, path)) ?? [], message));
}

/** Environment variables whose value is a credential, by their name. */
const secretName = /(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/;

/** Every value known to be secret: what must stand in no log, message or record. `others` are secret too. */
export function secretsOf(
  others: readonly string[],
  platforms: Platforms,
  routes: ReadonlyMap<string, Route>,
  env: Environment,
): string[] {
  const platformSecrets = targetNames.flatMap((name) => {
    const platform = platforms.get(name);
    return platform && "values" in platform ? secretSettings(name, platform.values) : [];
  });
  const variables = Object.entries(env).flatMap(([name, value]) => (secretName.test(name) && value ? [value] : []));
  const routeSecrets = [...routes.values()].flatMap(({ secrets }) => secrets);
  const all = [...others, ...routeSecrets, ...platformSecrets, ...variables];
  return [...new Set(all)].filter((secret) => secret !== INSECURE_NO_AUTH);
}
