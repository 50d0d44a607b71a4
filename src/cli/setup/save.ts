import { realpath } from "node:fs/promises";
import { UserError } from "../../core/errors.ts";
import { isMissing, makePrivateFolder, readTextIfThere, writeAtomic } from "../../lib/file.ts";
import type { Plan } from "./plan.ts";
import type { Present } from "./present.ts";

/**
 * Writes what the plan changes. `.env` comes first: a crash between the two must not leave a configuration that names what
 * is not there yet.
 * @throws UserError when somebody else changed a file since it was read.
 */
export async function save({ home, yaml, dotenv }: Present, plan: Plan): Promise<void> {
  await makePrivateFolder(home.folder);
  const files = [
    { path: home.dotenv, before: dotenv, after: plan.dotenv },
    { path: home.config, before: yaml, after: plan.yaml },
  ];
  for (const { path, before } of files) {
    if (((await readTextIfThere(path)) ?? "") !== before) {
      throw new UserError(`"${path}" was changed by somebody else meanwhile, so nothing was written; start again`);
    }
  }
  for (const { path, before, after } of files) {
    if (after !== before) await writeAtomic(await behindLinks(path), after);
  }
}

/** A file that is a link to another place stays one. */
async function behindLinks(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (isMissing(error)) return path;
    throw error;
  }
}
