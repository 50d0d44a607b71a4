import { type Command, InvalidArgumentError, Option } from "commander";
import { UserError } from "../core/errors.ts";
import { jobStates } from "../store/states.ts";
import type { EventRecord, EventRow } from "../store/store.ts";
import { type CommonOptions, type Context, homeOf, print } from "./context.ts";
import { readLedger } from "./ledger.ts";

interface ListOptions extends CommonOptions {
  readonly limit: number;
  readonly route?: string;
  readonly state?: string;
}

/** `postern events list|show`: what arrived and what became of it. Works while the gateway runs, and while it does not. */
export function events(program: Command, context: Context): void {
  const group = program
    .command("events")
    .description("See what arrived and what became of it")
    .addHelpText("after", "\nExample:\n  $ postern events list --limit 5");
  group
    .command("list")
    .description("List events, newest first")
    .option("--limit <number>", "how many", parseLimit, 20)
    .option("--route <name>", "only this route")
    .addOption(new Option("--state <state>", "only this state").choices([...Object.keys(jobStates), "ignored"]))
    .addHelpText("after", "\nExample:\n  $ postern events list --state dead")
    .action(async (_options: ListOptions, command: Command) => list(command.optsWithGlobals<ListOptions>(), context));
  group
    .command("show <id>")
    .description("Show one event's whole life; the beginning of an id is enough")
    .addHelpText("after", "\nExample:\n  $ postern events show 019a2b3c")
    .action(async (id: string, _options: CommonOptions, command: Command) =>
      show(id, command.optsWithGlobals<CommonOptions>(), context),
    );
}

function parseLimit(text: string): number {
  if (/^\d{1,6}$/.test(text) && Number(text) > 0) return Number(text);
  throw new InvalidArgumentError("Expected a whole number above 0");
}

async function list(options: ListOptions, context: Context): Promise<void> {
  const { limit, route, state } = options;
  const found =
    (await readLedger(homeOf(context, options), (store) => store.listEvents({ limit, route, state }))) ?? [];
  const { table } = await import("./table.ts");
  const lines = table(
    ["ID", "RECEIVED", "ROUTE", "EVENT", "STATE", "REASON"],
    found.map((event) => [
      event.id,
      isoTime(event.receivedAt),
      event.route,
      event.type,
      event.state,
      event.reason ?? "",
    ]),
  );
  print(context, options, found.map(rowForMachines), found.length === 0 ? ["No events"] : lines);
}

async function show(id: string, options: CommonOptions, context: Context): Promise<void> {
  const { timeline } = await import("./timeline.ts");
  const event = await readLedger(homeOf(context, options), (store) => store.readEvent({ id }));
  if (!event) {
    throw new UserError(`No single event begins with "${id}"; see "postern events list", and give more of the id`);
  }
  print(context, options, recordForMachines(event), timeline(event));
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}

function rowForMachines({ receivedAt, ...row }: EventRow) {
  return { ...row, receivedAt: new Date(receivedAt).toISOString() };
}

function recordForMachines({ body, headers, jobs, ...row }: EventRecord) {
  return {
    ...rowForMachines(row),
    headers: JSON.parse(headers) as unknown,
    body: Buffer.from(body).toString("utf8"),
    jobs: jobs.map(({ plan, runs, messages, ...job }) => ({
      ...job,
      plan: JSON.parse(plan) as unknown,
      runs: runs.map((run) => ({ ...run, transcript: JSON.parse(run.transcript ?? "[]") as unknown })),
      messages: messages.map((message) => ({ ...message, extra: JSON.parse(message.extra) as unknown })),
    })),
  };
}
