import type { Command } from "commander";
import { type Config, loadConfig } from "../../config/load.ts";
import { findTarget } from "../../config/platforms.ts";
import type { Route } from "../../config/route.ts";
import { DeliveryError, Rejection, UserError } from "../../core/errors.ts";
import { placesIn } from "../../ledger/fallback.ts";
import type { NewJob, NewMessage, Place, Store } from "../../store/store.ts";
import { readAddress } from "../../target/address.ts";
import { oneLine, plainText } from "../../target/neutralise.ts";
import { type CommonOptions, type Context, homeOf } from "../context.ts";
import { withStore } from "../ledger.ts";
import { checkChoice, chooseEvents, refuse } from "./choose.ts";
import type { Filters } from "./filters.ts";
import { type Beginning, type Remaking, remake } from "./remake.ts";
import { findRoute } from "./route.ts";
import { noSuchEvent, readEvent } from "./show.ts";

export interface ReplayOptions extends CommonOptions, Omit<Filters, "route"> {
  readonly from: Beginning;
  /** Where to, not which. */
  readonly route?: string;
  readonly ofRoute?: string;
  readonly all?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** What became of one event of a replay, or would. */
type Replayed =
  | { readonly id: string; readonly result: "replayed" | "would be replayed"; readonly job: NewJob }
  | { readonly id: string; readonly result: "ignored" | "would be ignored"; readonly reason: string }
  | { readonly id: string; readonly result: "failed"; readonly reason: string };

/**
 * Does again what follows from events that are there, as a new job of each, which a running gateway takes up. What the
 * event's route declines now is ignored, as it would be when it came in; only what cannot be replayed is a failure.
 */
export async function replay(
  ids: readonly string[],
  options: ReplayOptions,
  command: Command,
  context: Context,
): Promise<void> {
  const { dryRun = false } = options;
  checkOptions(ids, options, command);
  const config = await loadConfig({
    home: homeOf(context, options),
    env: context.env,
    warn: (message) => context.err(`postern: ${message}\n`),
  });
  const results = await withStore(context, options, dryRun ? "read" : "write", async (store) => {
    const deed = { verb: "Replay", done: "replayed", mustAsk: !dryRun && !options.yes };
    const chosen = await chooseEvents(ids, filtersOf(options), deed, store, command, context);
    const results = await replayAll(chosen, options, { config, store }, context);
    if (!dryRun) for (const news of ["jobs", "messages"] as const) store.announce(news);
    return results;
  });
  if (!results && ids[0] !== undefined) throw noSuchEvent(ids[0]);
  if (options.json) context.out(`${JSON.stringify(results ?? [], null, 2)}\n`);
}

function filtersOf(options: ReplayOptions): Filters {
  return { ...options, route: options.ofRoute };
}

function checkOptions(ids: readonly string[], options: ReplayOptions, command: Command): void {
  checkChoice(ids, filtersOf(options), command);
  if (options.route !== undefined && options.from !== "start") refuse(command, "--route goes with --from start only");
  if (options.all && options.from !== "delivery") refuse(command, "--all goes with --from delivery only");
}

interface Stage {
  readonly config: Config;
  readonly store: Store;
}

/** One after the other, so that they keep their order. Answers, for machines only, what became of each. */
async function replayAll(ids: readonly string[], options: ReplayOptions, stage: Stage, context: Context) {
  const { from, all = false, dryRun = false, route } = options;
  const remaking = { from, all, route, config: stage.config, findRoute: routesOf(stage) };
  const results: unknown[] = [];
  for (const id of ids) {
    const replayed = await replayOne(id, { ...remaking, now: stage.store.now() }, stage.store, dryRun);
    if (replayed.result === "failed") context.setExitCode(1);
    if (options.json) results.push(forMachines(replayed));
    else context.out(plainText(linesFor(replayed, stage.config).join("\n").concat("\n")));
  }
  return results;
}

/** Finds routes, each only once. */
function routesOf({ config, store }: Stage): Remaking["findRoute"] {
  const found = new Map<string, Promise<Route | undefined>>();
  return (name) => {
    const route = found.get(name) ?? findRoute(config, store, name);
    found.set(name, route);
    return route;
  };
}

async function replayOne(given: string, remaking: Remaking, store: Store, dryRun: boolean): Promise<Replayed> {
  let id = given;
  try {
    const record = await readEvent(store, given);
    id = record.id;
    const remade = await remake(record, remaking);
    if ("ignored" in remade) return { id, result: dryRun ? "would be ignored" : "ignored", reason: remade.ignored };
    const { job } = remade;
    if (dryRun) return { id, result: "would be replayed", job };
    if (!(await store.addJob({ eventId: id, now: remaking.now, job }))) throw new UserError("It is gone meanwhile");
    return { id, result: "replayed", job };
  } catch (error) {
    if (error instanceof UserError || error instanceof Rejection)
      return { id, result: "failed", reason: error.message };
    throw error;
  }
}

function forMachines(replayed: Replayed) {
  if (!("job" in replayed)) return replayed;
  const { plan, messages, ...job } = replayed.job;
  const opened = messages.map((message) => ({
    ...message,
    extra: JSON.parse(message.extra) as unknown,
    fallback: JSON.parse(message.fallback ?? "null") as unknown,
  }));
  return { ...replayed, job: { ...job, plan: JSON.parse(plan) as unknown, messages: opened } };
}

function linesFor(replayed: Replayed, config: Config): string[] {
  const { id, result } = replayed;
  if (!("job" in replayed)) return [`${id}  ${result}: ${oneLine(replayed.reason)}`];
  const { job } = replayed;
  const what = job.kind === "agent" ? "an agent run" : "a delivery";
  const head = `${id}  ${result} as ${what} of route "${job.route}"`;
  return result === "replayed" ? [`${head}, job ${job.id}`] : [head, ...preview(job, config)];
}

function preview({ kind, plan, messages }: NewJob, config: Config): string[] {
  const text = kind === "agent" ? (JSON.parse(plan) as { prompt: string }).prompt : (messages[0]?.text ?? "");
  return [
    kind === "agent" ? "  the prompt:" : "  the message:",
    ...text.split("\n").map((line) => `    | ${line}`),
    ...messages.map((message) => `  to ${wayOf(message, config)}`),
  ];
}

/** Where a message goes, and where instead. */
function wayOf({ target, extra, lane, refusal, fallback }: NewMessage, config: Config): string {
  const first = { target, extra: JSON.parse(extra) as Record<string, string>, lane, refusal };
  return [first, ...placesIn(fallback)].map((place) => placeOf(place, config)).join(", else to ");
}

/** A target and its address as the send will find it. */
function placeOf({ target: name, extra, refusal }: Place, { platforms }: Config): string {
  if (refusal !== null) return `${name}, which will not get it: ${oneLine(refusal)}`;
  const target = findTarget(name);
  const platform = target && platforms.get(name);
  if (!platform || "unusable" in platform) return name;
  try {
    const address = readAddress(target, extra, platform.values);
    const words = Object.entries(address).map(([key, value]) => `${key}=${oneLine(value ?? "")}`);
    return words.length === 0 ? name : `${name} (${words.join(" ")})`;
  } catch (error) {
    if (error instanceof DeliveryError) return `${name}, which will not take it: ${oneLine(error.message)}`;
    throw error;
  }
}
