import type { Home } from "../../config/home.ts";
import type { Context } from "../context.ts";
import { checkAgent, checkTerminal } from "./agent.ts";
import { checkConfiguration } from "./configuration.ts";
import type { Check, Finding, Patient } from "./finding.ts";
import { checkGateway } from "./gateway.ts";
import { checkHome } from "./home.ts";
import { checkLedger, checkSize } from "./ledger.ts";
import { checkClock, checkDisk } from "./machine.ts";
import { checkRoutes } from "./routes.ts";
import { checkServices } from "./targets.ts";
import { checkDead, checkPauses, checkWaiting } from "./work.ts";

/** In the order in which they are shown, after the first ones that they need. */
const checks: Readonly<Record<string, Check>> = {
  home: checkHome,
  size: checkSize,
  targets: checkServices,
  agent: checkAgent,
  terminal: checkTerminal,
  gateway: checkGateway,
  "dead events": checkDead,
  "waiting jobs": checkWaiting,
  "paused targets": checkPauses,
  disk: checkDisk,
  clock: checkClock,
};

/** Makes all checks of a home. One that cannot be made is a problem, and keeps no other from being made. */
export async function examineHome(home: Home, context: Context): Promise<readonly Finding[]> {
  const { config, found: configuration } = await checkConfiguration(home, context.env);
  const { settings, store, found: ledger } = await checkLedger(home, context);
  try {
    const subscriptions = await attempt("subscriptions", () => checkRoutes(home, config, store));
    const routes = "routes" in subscriptions ? subscriptions.routes : [];
    const patient: Patient = { home, env: context.env, config, settings, store, routes };
    const found: Finding[] = [...configuration, ...ledger, ...subscriptions.found];
    for (const [name, check] of Object.entries(checks)) {
      found.push(...(await attempt(name, async () => ({ found: await check(patient) }))).found);
    }
    return found;
  } finally {
    await store?.close();
  }
}

interface Result {
  readonly found: readonly Finding[];
}

async function attempt<Found extends Result>(check: string, make: () => Promise<Found>): Promise<Found | Result> {
  try {
    return await make();
  } catch (error) {
    const text = `It could not be looked at: ${error instanceof Error ? error.message : String(error)}`;
    return { found: [{ check, grade: "problem", text, next: "Mend that, and run the doctor again" }] };
  }
}
