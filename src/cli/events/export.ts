import { randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import type { Store } from "../../store/store.ts";
import { type CommonOptions, type Context, print } from "../context.ts";
import { withStore } from "../ledger.ts";
import { inWords } from "./choose.ts";
import { toLine } from "./exchange.ts";
import { type Filters, findEvents } from "./filters.ts";

export interface ExportOptions extends CommonOptions, Filters {
  readonly output?: string;
}

/**
 * Writes the events that pass the filters as lines of JSON, newest first, to standard output, or to a file that is there
 * whole or not at all. Each is read when it is written: what comes meanwhile is not among them.
 */
export async function exportEvents(options: ExportOptions, context: Context): Promise<void> {
  const { output } = options;
  if (output === undefined) {
    await withStore(context, options, "read", (store) => writeAll(store, options, async (line) => context.out(line)));
    return;
  }
  const exported = await writeWhole(output, async (file) => {
    const write = (line: string) => file.appendFile(line);
    return (await withStore(context, options, "read", (store) => writeAll(store, options, write))) ?? 0;
  });
  print(context, options, { exported, file: output }, [`Exported ${inWords(exported)} to "${output}"`]);
}

async function writeAll(store: Store, filters: Filters, write: (line: string) => Promise<void>): Promise<number> {
  let count = 0;
  for await (const { id } of findEvents(store, filters)) {
    const record = await store.readEvent({ id });
    // Forgotten since it was listed.
    if (!record) continue;
    await write(`${toLine(record)}\n`);
    count += 1;
  }
  return count;
}

/** Writes a file that only its owner can read, and puts it in its place when it is whole and on disk. */
async function writeWhole(path: string, fill: (file: FileHandle) => Promise<number>): Promise<number> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      const count = await fill(file);
      await file.sync();
      await rename(temporary, path);
      return count;
    } finally {
      await file.close();
    }
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
