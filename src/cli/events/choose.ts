import type { Command } from "commander";
import { UserError } from "../../core/errors.ts";
import type { EventRow, Store } from "../../store/store.ts";
import { confirm } from "../confirm.ts";
import type { Context } from "../context.ts";
import { areGiven, type Filters, findEvents } from "./filters.ts";

/** What a command wants to do with many events, and whether it must ask first. */
export interface Deed {
  /** As it begins a sentence: `Replay`. */
  readonly verb: string;
  readonly done: string;
  /** Which of those that pass the filters it can be done with; all when not set. */
  readonly canBeDone?: (row: EventRow) => boolean;
  /** False when nothing is changed, or somebody has said yes already. */
  readonly mustAsk: boolean;
}

/** Refuses, as wrong usage, a command that names no events, or names them in two ways. */
export function checkChoice(ids: readonly string[], filters: Filters, command: Command): void {
  const isFiltered = areGiven(filters);
  if (ids.length > 0 && isFiltered) refuse(command, "name events by their ids or by filters, not both");
  if (ids.length === 0 && !isFiltered) refuse(command, "name events by their ids, or by filters such as --state dead");
}

/**
 * The ids that were named, or those of the events that pass the filters, oldest first. Of the latter their number is told
 * first, and the person asked; where nobody can be asked the command is refused as wrong usage.
 */
export async function chooseEvents(
  ids: readonly string[],
  filters: Filters,
  deed: Deed,
  store: Store,
  command: Command,
  context: Context,
): Promise<readonly string[]> {
  if (ids.length > 0) return ids;
  const found: string[] = [];
  for await (const row of findEvents(store, filters)) if (deed.canBeDone?.(row) ?? true) found.push(row.id);
  const count = inWords(found.length);
  if (found.length === 0 || !deed.mustAsk) context.err(`${count}\n`);
  else await ask(`${deed.verb} ${count}?`, deed, command, context);
  return found.reverse();
}

async function ask(question: string, { done }: Deed, command: Command, context: Context): Promise<void> {
  const terminal = context.terminal();
  if (!terminal) return refuse(command, `${question} There is no terminal to ask at; add --yes, or --help for more`);
  if (!(await confirm(question, terminal))) throw new UserError(`Nothing was ${done}`);
}

export function inWords(count: number, noun = "event"): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

export function refuse(command: Command, problem: string): never {
  command.error(`error: ${problem}`, { exitCode: 2 });
}
