import { open } from "node:fs/promises";
import { UserError } from "../../core/errors.ts";
import { finalJobStates, type JobState } from "../../store/states.ts";
import type { EventRecord, Store } from "../../store/store.ts";
import { oneLine } from "../../target/neutralise.ts";
import { type CommonOptions, type Context, print } from "../context.ts";
import { withStore } from "../ledger.ts";
import { inWords } from "./choose.ts";
import { fromLine } from "./exchange.ts";

export interface ImportOptions extends CommonOptions {
  readonly resume?: boolean;
}

interface Counts {
  imported: number;
  /** There already. */
  skipped: number;
  failed: number;
  /** Imported ones that had not ended. */
  unfinished: number;
}

const reason = "Imported unfinished; replay it to do it here";
/** A repeated delivery id counts as a duplicate for one hour (specification section 8), wherever the first one came in. */
const claimMs = 3_600_000;
/** A longer line is no event: a body has 1 MiB unless the configuration says otherwise. */
const longestLineBytes = 268_435_456;
/** More complaints than that are one about the whole file. */
const mostComplaints = 20;

/**
 * Reads events that `postern events export` has written from a file, or standard input when it is named `-`, and keeps
 * those that are not there yet. A line that is no event is told with its number, and the others are read all the same.
 */
export async function importEvents(file: string, options: ImportOptions, context: Context): Promise<void> {
  // Opened first: where there is nothing to import, no ledger is made.
  const source = file === "-" ? context.input() : (await open(file)).createReadStream();
  const counts = await withStore(context, options, "create", async (store) => {
    const counts = await importAll(source, store, options.resume ?? false, context);
    if (options.resume) for (const news of ["jobs", "messages"] as const) store.announce(news);
    return counts;
  });
  if (counts && counts.failed > 0) context.setExitCode(1);
  print(context, options, counts, counts ? [inAll(counts, options.resume ?? false)] : []);
}

async function importAll(
  source: AsyncIterable<Buffer>,
  store: Store,
  resume: boolean,
  context: Context,
): Promise<Counts> {
  const counts: Counts = { imported: 0, skipped: 0, failed: 0, unfinished: 0 };
  let number = 0;
  for await (const line of linesOf(source)) {
    number += 1;
    if (line.trim() === "") continue;
    try {
      const record = fromLine(line);
      const isNew = await store.importEvent(argumentsFor(record, store.now(), resume));
      counts[isNew ? "imported" : "skipped"] += 1;
      if (isNew && isUnfinished(record)) counts.unfinished += 1;
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      counts.failed += 1;
      if (counts.failed <= mostComplaints) context.err(`Line ${number}: ${oneLine(error.message)}\n`);
    }
  }
  return counts;
}

function argumentsFor(record: EventRecord, now: number, resume: boolean) {
  const claimUntil = record.receivedAt + claimMs;
  // Of what was ignored or refused, the sender may send another copy.
  const isClaimed = claimUntil > now && record.state !== "ignored" && record.state !== "refused";
  return {
    record,
    now,
    claimUntil: isClaimed ? claimUntil : null,
    unfinished: resume ? ("resume" as const) : { cancel: reason },
  };
}

function isUnfinished({ jobs }: EventRecord): boolean {
  return jobs.some(({ state }) => !(finalJobStates as readonly JobState[]).includes(state));
}

function inAll({ imported, skipped, failed, unfinished }: Counts, resume: boolean): string {
  const fate = resume ? "go on here" : "are cancelled: replay them to do them here, or import with --resume";
  return [
    `Imported ${inWords(imported)}`,
    skipped > 0 && `${skipped} there already`,
    unfinished > 0 && `${unfinished} unfinished, which ${fate}`,
    failed > 0 && `${inWords(failed, "line")} could not be read`,
  ]
    .filter(Boolean)
    .join("; ");
}

/** Lines of a stream that ends, or not, in a newline. A line end of another kind is part of a text. */
async function* linesOf(source: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  const take = () => {
    const line = Buffer.concat(pieces).toString("utf8");
    pieces = [];
    bytes = 0;
    return line;
  };
  for await (const chunk of source) {
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      pieces.push(chunk.subarray(from, end));
      from = end + 1;
      yield take();
    }
    pieces.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes > longestLineBytes) throw new UserError("This is no export of events: a line of it has no end");
  }
  if (bytes > 0) yield take();
}
