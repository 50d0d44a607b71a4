import type { Home } from "../../config/home.ts";
import type { Config } from "../../config/load.ts";
import type { Route } from "../../config/route.ts";
import { buildSubscriptions, filePlace, storePlace } from "../../config/subscriptions.ts";
import { StoreUnavailable } from "../../core/errors.ts";
import type { Store } from "../../store/store.ts";
import { type Finding, findings } from "./finding.ts";

const subscriptions = findings("subscriptions");

/** The routes that can be used, and why subscriptions cannot. */
export async function checkRoutes(
  home: Home,
  config: Config | undefined,
  store: Store | undefined,
): Promise<{ readonly routes: readonly Route[]; readonly found: readonly Finding[] }> {
  if (!config) return { routes: [], found: [] };
  const fixed = [...config.routes.values()];
  const isElsewhere = config.store.kind === "postgres";
  // Of a database that cannot be reached another check tells.
  if (isElsewhere && !store) return { routes: fixed, found: [] };
  const place = isElsewhere && store ? storePlace(store) : filePlace(home.subscriptions);
  try {
    const { routes, errors } = buildSubscriptions((await place.read()).text, home, config.routeContext);
    const names = [...routes.keys()].filter((name) => !config.routes.has(name));
    return {
      routes: [...fixed, ...names.map((name) => routes.get(name)!)],
      found: errors.length > 0 ? errors.map(skipped) : [subscriptions.ok(inWords(routes.size))],
    };
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    const text = `${place.name} cannot be read: ${(error as Error).message}`;
    return { routes: fixed, found: [subscriptions.problem(text, "Mend it or restore a copy")] };
  }
}

function inWords(count: number): string {
  return count === 0 ? "There are none" : `${count}, all usable`;
}

function skipped(error: string): Finding {
  const next = 'Senders are answered 404; mend it with "postern webhook subscribe NAME …", or remove it';
  return subscriptions.problem(error, next);
}
