import * as stores from "../store/registry.ts";
import type { StoreSettings } from "../store/settings.ts";
import type { Store } from "../store/store.ts";

/**
 * Opens the store that the settings name; brings its schema up to date unless it is only read.
 * @throws StoreRefused when it is not one this program can use; StoreUnavailable when it cannot be reached.
 */
export function openStore(settings: StoreSettings, options: { readonly readOnly: boolean }): Promise<Store> {
  if (settings.kind === "sqlite") return stores.sqlite({ path: settings.path, ...options });
  return stores.postgres({ url: settings.url, schema: settings.schema, ...options });
}
