import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Home } from "../config/home.ts";
import { UserError } from "../core/errors.ts";
import type { Lock } from "../lib/lock.ts";
import type { StoreSettings } from "../store/settings.ts";
import type { Store } from "../store/store.ts";
import { type CommonOptions, type Context, homeOf } from "./context.ts";

/** A gateway that was just stopped may take a moment to be gone. */
const lockWaitMs = 3_000;

/** `create` is `write` that makes the embedded file when there is none. */
export type StoreMode = "read" | "write" | "create";

/**
 * Opens the store that the home's configuration names, for as long as `use` takes, beside a running gateway or without one.
 * `undefined` when it is the embedded file and there is none yet.
 *
 * An older schema is brought up to date by `write`, but never only to read, nor while a gateway works on the file: then the
 * command is refused and says what to do.
 * @throws UserError, ConfigError, StoreRefused or StoreUnavailable, with a sentence for the person at the terminal.
 */
export async function withStore<Result>(
  context: Context,
  options: CommonOptions,
  mode: StoreMode,
  use: (store: Store) => Promise<Result>,
): Promise<Result | undefined> {
  const home = homeOf(context, options);
  return withStoreAt(home, await storeSettings(home, context), mode, use);
}

/** Where the home's ledger is, by its configuration. */
export async function storeSettings(home: Home, context: Pick<Context, "env">): Promise<StoreSettings> {
  const { loadStoreSettings } = await import("../config/store.ts");
  return loadStoreSettings({ home, env: context.env });
}

/** As `withStore`, on the store that the settings name. The home's lock tells whether a gateway runs on its file. */
export async function withStoreAt<Result>(
  home: Home,
  settings: StoreSettings,
  mode: StoreMode,
  use: (store: Store) => Promise<Result>,
): Promise<Result | undefined> {
  if (settings.kind === "sqlite" && !existsSync(settings.path) && mode !== "create") return undefined;
  if (settings.kind === "sqlite" && mode === "create") {
    const { makePrivateFolder } = await import("../lib/file.ts");
    await makePrivateFolder(home.data);
  }
  const store = await openLedger(home, settings, mode);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** The home's lock, that a gateway holds while it runs; or a refusal that says what this command wanted it for. */
export async function takeHomeLock(home: Home, why: string): Promise<Lock> {
  const { makePrivateFolder } = await import("../lib/file.ts");
  const { takeLock } = await import("../lib/lock.ts");
  await makePrivateFolder(home.data);
  const lock = takeLock(join(home.data, "gateway.lock"), lockWaitMs);
  if (lock) return lock;
  throw new UserError(`A gateway is running on "${home.folder}"; ${why}`);
}

/** Opens the store that the settings name; who asks closes it. Refuses what `withStore` refuses. */
export async function openLedger(home: Home, settings: StoreSettings, mode: StoreMode): Promise<Store> {
  const { openStore } = await import("../ledger/open.ts");
  const openIt = () => openStore(settings, { readOnly: mode === "read" });
  const mayMigrate = settings.kind === "sqlite" && mode !== "read" && (await isBehind(settings.path));
  if (!mayMigrate) return openIt();
  const why = "it is of an older Postern, as its ledger is: stop it, and start it again with this one";
  const lock = await takeHomeLock(home, why);
  try {
    return await openIt();
  } finally {
    lock.release();
  }
}

/** Whether a ledger's file has an older schema than this program needs. */
export async function isBehind(path: string): Promise<boolean> {
  if (!existsSync(path)) return false;
  const { schemaOf } = await import("../store/check.ts");
  const schema = schemaOf(path);
  return schema !== undefined && schema.reached < schema.newest;
}
