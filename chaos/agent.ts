import { existsSync, readFileSync } from "node:fs";

/** From and to, Unix milliseconds. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** A run of the agent from its first to its last moment. */
export interface AgentRun extends Span {
  readonly route: string;
}

/**
 * The agent of the gateways: answers with its prompt after a while, and writes down in a file when it ran. A run that is
 * killed leaves a beginning without an end.
 */
export function watchedAgent(file: string): string[] {
  const note = (what: string) => `echo "${what} $$ $WEBHOOK_ROUTE $(date +%s%3N)" >> '${file}'`;
  const nap = 'if [ "$WEBHOOK_ROUTE" = few ]; then sleep 0.15; fi';
  return ["sh", "-c", `${note("begin")}; ${nap}; cat; ${note("end")}`];
}

/** The runs that the file tells of, without those that were killed. */
export function readRuns(file: string): AgentRun[] {
  if (!existsSync(file)) return [];
  const begun = new Map<string, number>();
  const runs: AgentRun[] = [];
  for (const line of readFileSync(file, "utf8").split("\n")) {
    const [what, pid = "", route = "", at] = line.split(" ");
    const from = begun.get(pid);
    if (what === "begin") begun.set(pid, Number(at));
    if (what === "end" && from !== undefined) runs.push({ route, from, to: Number(at) });
  }
  return runs;
}
