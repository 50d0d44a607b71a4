import { statSync } from "node:fs";
import type { Home } from "../../config/home.ts";
import { UserError } from "../../core/errors.ts";
import type { StoreSettings } from "../../store/settings.ts";
import { type CommonOptions, type Context, homeOf, print } from "../context.ts";
import { storeSettings, takeHomeLock, withStoreAt } from "../ledger.ts";
import { inBytes } from "./bytes.ts";

/** Gives the space of what was forgotten back to the disk. */
export async function compact(options: CommonOptions, context: Context): Promise<void> {
  const home = homeOf(context, options);
  const settings = await storeSettings(home, context);
  const { before, after } =
    settings.kind === "sqlite" ? await compactFile(home, settings) : await compactTables(settings);
  const freed = Math.max(0, before - after);
  print(context, options, { before, after, freed }, [
    `The ledger took up ${inBytes(before)} and takes up ${inBytes(after)} now: ${inBytes(freed)} are free again`,
  ]);
}

interface Sizes {
  readonly before: number;
  readonly after: number;
}

async function compactFile(home: Home, settings: Extract<StoreSettings, { kind: "sqlite" }>): Promise<Sizes> {
  const { path } = settings;
  // Only to be told now if it is not a ledger that this program knows.
  const isThere = await withStoreAt(home, settings, "read", async () => true);
  if (!isThere) throw new UserError("There is no ledger yet, so there is nothing to compact");
  const { canCompactOnline, compactAlone, compactOnline } = await import("../../store/upkeep.ts");
  const before = sizeOf(path);
  if (canCompactOnline(path)) {
    await compactOnline(path);
  } else {
    const why = "this ledger was made by an older Postern: stop the gateway for the first time it is compacted";
    const lock = await takeHomeLock(home, why);
    try {
      await compactAlone(path);
    } finally {
      lock.release();
    }
  }
  return { before, after: sizeOf(path) };
}

async function compactTables(settings: Extract<StoreSettings, { kind: "postgres" }>): Promise<Sizes> {
  const { compactPostgres } = await import("../../store/upkeep.ts");
  return compactPostgres(settings);
}

/** The file and the log beside it. */
function sizeOf(path: string): number {
  const size = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return size(path) + size(`${path}-wal`);
}
