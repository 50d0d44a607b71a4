import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { UserError } from "../core/errors.ts";
import type { Environment } from "../core/types.ts";

/** Where everything of one profile lives (contract section 1). */
export interface Home {
  readonly folder: string;
  readonly config: string;
  readonly dotenv: string;
  readonly subscriptions: string;
  readonly scripts: string;
  readonly skills: string;
  readonly data: string;
  readonly ledger: string;
}

/** `POSTERN_HOME` or `~/.postern`, and in it `profiles/NAME` when a profile is named by flag or `POSTERN_PROFILE`. */
export function findHome(env: Environment, profileFlag: string | undefined): Home {
  const base = resolve(env.POSTERN_HOME || join(env.HOME || homedir(), ".postern"));
  const profile = profileFlag ?? env.POSTERN_PROFILE;
  if (!profile) return homeAt(base);
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(profile)) {
    throw new UserError(`The profile "${profile}" is not a name; use letters, digits, ".", "_" and "-"`);
  }
  return homeAt(join(base, "profiles", profile));
}

/** The paths inside a given home. */
export function homeAt(folder: string): Home {
  const data = join(folder, "data");
  return {
    folder,
    config: join(folder, "config.yaml"),
    dotenv: join(folder, ".env"),
    subscriptions: join(folder, "webhook_subscriptions.json"),
    scripts: join(folder, "scripts"),
    skills: join(folder, "skills"),
    data,
    ledger: join(data, "ledger.db"),
  };
}
