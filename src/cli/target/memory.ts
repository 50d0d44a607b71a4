import { existsSync } from "node:fs";
import type { Home } from "../../config/home.ts";
import { StoreUnavailable, UserError } from "../../core/errors.ts";
import { storeMemory } from "../../gateway/memory.ts";
import type { StoreSettings } from "../../store/settings.ts";
import type { Store } from "../../store/store.ts";
import type { Memory, Remembered } from "../../target/target.ts";
import { openLedger } from "../ledger.ts";

/** What targets remember, for a command: beside a running gateway or without one. */
export interface OpenMemory {
  readonly memory: Memory;
  /** Why what a target remembers is forgotten with the command; `undefined` when it is not, or when there is no ledger yet. */
  readonly problem: string | undefined;
  close(): Promise<void>;
}

/** Opens what targets remember, where the ledger is. Makes no ledger, and needs none: most targets remember nothing. */
export async function openMemory(home: Home, settings: StoreSettings): Promise<OpenMemory> {
  const { store, problem } = await openIfThere(home, settings, "write");
  if (store) return { memory: storeMemory(store), problem, close: () => store.close() };
  return { memory: shortMemory(undefined), problem, close: async () => {} };
}

/** The ledger, where there is one that can be opened; whoever asked closes it. */
export async function openIfThere(
  home: Home,
  settings: StoreSettings,
  mode: "read" | "write",
): Promise<{ readonly store?: Store; readonly problem?: string }> {
  if (settings.kind === "sqlite" && !existsSync(settings.path)) return {};
  try {
    return { store: await openLedger(home, settings, mode) };
  } catch (error) {
    if (error instanceof StoreUnavailable || error instanceof UserError) return { problem: error.message };
    throw error;
  }
}

/** Knows what the ledger knows; what is written lasts as long as the command, for one that changes nothing. */
export function shortMemory(store: Store | undefined): Memory {
  const nothing = { version: 0, text: "" };
  const below = store && storeMemory(store);
  const kept = new Map<string, Remembered>();
  const read = async (name: string) => kept.get(name) ?? (await below?.read(name)) ?? nothing;
  return {
    read,
    async write(name, text, seen) {
      if ((await read(name)).version !== seen) return false;
      kept.set(name, { version: seen + 1, text });
      return true;
    },
  };
}
