import type { Config } from "../../config/load.ts";
import type { Route } from "../../config/route.ts";
import { buildSubscriptions, filePlace, storePlace } from "../../config/subscriptions.ts";
import { UserError } from "../../core/errors.ts";
import type { Store } from "../../store/store.ts";

/**
 * The route of this name as it is configured now, or `undefined`: a static one, or a subscription, which stands in the home
 * or in a store that several gateways share.
 * @throws UserError when there is a subscription of this name that cannot be used, or the subscriptions are damaged.
 */
export async function findRoute(config: Config, store: Store, name: string): Promise<Route | undefined> {
  const fixed = config.routes.get(name);
  if (fixed) return fixed;
  const place = store.isShared ? storePlace(store) : filePlace(config.home.subscriptions);
  const { text } = await place.read();
  try {
    const { routes, errors } = buildSubscriptions(text, config.home, config.routeContext);
    const error = errors.find((candidate) => candidate.startsWith(`The subscription "${name}" `));
    if (error !== undefined) throw new UserError(error);
    return routes.get(name);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new UserError(`${place.name} is damaged (${cause.message}); mend it or restore a copy`, { cause });
  }
}
