import { existsSync } from "node:fs";
import type { Home } from "../../config/home.ts";
import { ConfigError, StoreUnavailable } from "../../core/errors.ts";
import type { StoreSettings } from "../../store/settings.ts";
import type { Store } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { inBytes } from "../ledger/bytes.ts";
import { isBehind, openLedger, storeSettings } from "../ledger.ts";
import { type Check, type Finding, findings } from "./finding.ts";

const { ok, warning, problem } = findings("ledger");

interface Opened {
  readonly settings: StoreSettings | undefined;
  /** Whoever asked closes it. */
  readonly store: Store | undefined;
  readonly found: readonly Finding[];
}

/** Whether the ledger can be reached and read. */
export async function checkLedger(home: Home, context: Context): Promise<Opened> {
  const settings = await settingsOf(home, context);
  // What is wrong in the configuration is said there.
  if (!settings) return { settings, store: undefined, found: [] };
  const absent = await whyNone(settings);
  if (absent) return { settings, store: undefined, found: [absent] };
  try {
    const store = await openLedger(home, settings, "read");
    return { settings, store, found: [ok(`${placeOf(settings)} can be read, and its schema is current`)] };
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    const next = settings.kind === "sqlite" ? 'See what is wrong with it: "postern ledger check"' : reachIt;
    return { settings, store: undefined, found: [problem(error.message, next)] };
  }
}

const reachIt = 'Start the database, or mend "store.url" or POSTERN_STORE_URL; until then senders are answered 503';

async function settingsOf(home: Home, context: Context): Promise<StoreSettings | undefined> {
  try {
    return await storeSettings(home, context);
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

async function whyNone(settings: StoreSettings): Promise<Finding | undefined> {
  if (settings.kind !== "sqlite") return undefined;
  if (!existsSync(settings.path)) return ok("There is none yet; the gateway makes it when it starts");
  if (!(await isBehind(settings.path))) return undefined;
  return warning(
    `${placeOf(settings)} was written by an older Postern`,
    "Start the gateway of this Postern, which brings it up to date",
  );
}

function placeOf(settings: StoreSettings): string {
  return settings.kind === "sqlite" ? `"${settings.path}"` : `The schema "${settings.schema}" in PostgreSQL`;
}

const size = findings("size");

/** Whether it is larger than it may be, which forgetting should see to. */
export const checkSize: Check = async ({ store, config }) => {
  const maxBytes = config?.retention.maxBytes;
  // A database would have to look at everything it holds.
  if (!store || store.isShared || maxBytes === undefined) return [];
  const { bytes } = await store.measure({});
  const sizes = `The ledger holds ${inBytes(bytes)}, and "retention.max_size" is ${inBytes(maxBytes)}`;
  if (bytes <= maxBytes) return [size.ok(sizes)];
  return [
    size.warning(sizes, "Let the gateway run, which forgets the oldest finished events, or see what is not finished"),
  ];
};
