import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { UserError } from "../../core/errors.ts";
import type { StoreSettings } from "../../store/settings.ts";
import { type CommonOptions, type Context, homeOf, print } from "../context.ts";
import { storeSettings, withStoreAt } from "../ledger.ts";
import { inBytes } from "./bytes.ts";

export interface BackupOptions extends CommonOptions {
  readonly force?: boolean;
}

/** Copies the home's ledger to a file as it is now, and fails when that is not a good copy. */
export async function backup(file: string, options: BackupOptions, context: Context): Promise<void> {
  const home = homeOf(context, options);
  const settings = await storeSettings(home, context);
  const copy = resolve(file);
  if (settings.kind === "postgres") throw refusal(settings, copy);
  refuseBadPlace(copy, settings.path, options.force === true);
  const saved = await withStoreAt(home, settings, "read", async () => {
    const { backUpSqlite } = await import("../../store/upkeep.ts");
    return backUpSqlite(settings.path, copy);
  });
  if (!saved) throw new UserError("There is no ledger yet, so there is nothing to back up");
  print(context, options, { ledger: settings.path, copy, bytes: saved.bytes }, [
    `Copied the ledger to "${copy}" (${inBytes(saved.bytes)}), and the copy is sound`,
    "config.yaml, .env and webhook_subscriptions.json are not in it",
  ]);
}

function refuseBadPlace(copy: string, ledger: string, force: boolean): void {
  if (!existsSync(dirname(copy))) throw new UserError(`There is no folder "${dirname(copy)}"; make it first`);
  const found = statSync(copy, { throwIfNoEntry: false });
  if (found?.isDirectory()) throw new UserError(`"${copy}" is a folder; name a file in it`);
  if (isOneOf(copy, ledger)) throw new UserError(`"${copy}" belongs to the ledger itself; name another file`);
  if (found && !force) throw new UserError(`"${copy}" is there already; name another file, or replace it with --force`);
}

/** The ledger's own files, whatever way leads to them. */
function isOneOf(copy: string, ledger: string): boolean {
  const real = (path: string) =>
    existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path));
  if (!existsSync(ledger)) return false;
  return ["", "-wal", "-shm", "-journal"].some((end) => real(copy) === `${real(ledger)}${end}`);
}

/** A database has tools of its own, and they know more. */
function refusal({ url, schema }: Extract<StoreSettings, { kind: "postgres" }>, copy: string): UserError {
  return new UserError(
    `The ledger is in PostgreSQL, which has its own tool for that:\n` +
      `  pg_dump --schema=${schema} --format=custom --file=${copy} "${masked(url)}"\n` +
      "To have the events in a file that any ledger can take in: postern events export > events.jsonl",
  );
}

function masked(url: string): string {
  const address = new URL(url);
  if (address.password !== "") address.password = "***";
  for (const name of [...address.searchParams.keys()]) {
    if (/password/i.test(name)) address.searchParams.set(name, "***");
  }
  return address.href;
}
