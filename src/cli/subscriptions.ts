import type { SubscriptionsPlace } from "../config/subscriptions.ts";
import { type CommonOptions, type Context, homeOf } from "./context.ts";
import { openLedger, storeSettings } from "./ledger.ts";

/** The subscriptions where the home's configuration keeps them: in its file, or in the database that gateways share. */
export async function withSubscriptions<Result>(
  context: Context,
  options: CommonOptions,
  mode: "read" | "write",
  use: (place: SubscriptionsPlace) => Promise<Result>,
): Promise<Result> {
  const { filePlace, storePlace } = await import("../config/subscriptions.ts");
  const home = homeOf(context, options);
  const settings = await storeSettings(home, context);
  if (settings.kind === "sqlite") return use(filePlace(home.subscriptions));
  const store = await openLedger(home, settings, mode);
  try {
    return await use(storePlace(store));
  } finally {
    await store.close();
  }
}
