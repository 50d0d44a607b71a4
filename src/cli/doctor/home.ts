import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { isMissing } from "../../lib/file.ts";
import { type Check, type Finding, findings } from "./finding.ts";

const { ok, warning, problem } = findings("home");

/** Whether the gateway can work in the home, and nobody else can read secrets there. */
export const checkHome: Check = async ({ home }) => {
  const mode = await modeOf(home.folder);
  if (mode === undefined)
    return [warning(`There is no home "${home.folder}" yet`, 'Make it with "postern gateway setup"')];
  const folders = [home.folder, ...((await modeOf(home.data)) === undefined ? [] : [home.data])];
  const unusable = (await Promise.all(folders.map(whyUnusable))).flat();
  // Behind a closed door it does not matter how the rooms are locked.
  const open = isOpen(mode) ? [openHome(home.folder), ...(await openFiles(home))] : [];
  return unusable.length + open.length > 0 ? [...unusable, ...open] : [ok(`"${home.folder}" is for its owner only`)];
};

/** Windows has other means than modes. */
function isOpen(mode: number): boolean {
  return process.platform !== "win32" && (mode & 0o077) !== 0;
}

async function modeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mode & 0o777;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

async function whyUnusable(folder: string): Promise<Finding[]> {
  try {
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return [];
  } catch {
    const next = `Run Postern as the owner of the folder, or give it to this user: chown -R USER "${folder}"`;
    return [problem(`This user may not write in "${folder}"`, next)];
  }
}

function openHome(folder: string): Finding {
  return warning(`Other users of this machine may enter "${folder}"`, `Close it: chmod 700 "${folder}"`);
}

async function openFiles(home: Parameters<Check>[0]["home"]): Promise<Finding[]> {
  const files = [home.dotenv, home.config, home.subscriptions, home.ledger];
  const found = await Promise.all(
    files.map(async (file): Promise<Finding[]> => {
      const mode = await modeOf(file);
      if (mode === undefined || !isOpen(mode)) return [];
      return [warning(`Other users of this machine may read "${file}"`, `Close it: chmod 600 "${file}"`)];
    }),
  );
  return found.flat();
}
