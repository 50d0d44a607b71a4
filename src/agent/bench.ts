import type { ExecResult, Workspace } from "../sandbox/sandbox.ts";
import type { RunContext } from "./agent.ts";
import { failed, messageOf } from "./ending.ts";
import { type Halt, untilAborted } from "./halt.ts";

/** What the tools of one run share: its one workspace, opened when the first command comes. */
export interface Bench {
  /**
   * Runs a command in the workspace. A workspace that breaks is replaced by an empty one and the error says so, for the
   * model to read; when none can be opened the run is stopped as failed.
   */
  exec(command: string): Promise<ExecResult>;
  /** Ends the workspace, if there is one. Never throws. */
  close(): Promise<void>;
}

/** A bench without a workspace yet. */
export function layBench(context: Pick<RunContext, "sandbox" | "settings">, halt: Halt): Bench {
  let workspace: Workspace | undefined;

  const open = async (): Promise<Workspace> => {
    const opening = Promise.try(() => context.sandbox.open({ env: {}, signal: halt.signal }));
    try {
      return await untilAborted(opening, halt.signal);
    } catch (error) {
      // One that opens after the run was stopped has no owner any more.
      opening.then(closeQuietly, () => {});
      halt.stop(failed(`no workspace could be opened: ${messageOf(error)}`, true));
      throw error;
    }
  };
  const replace = async (error: unknown): Promise<never> => {
    const broken = workspace;
    workspace = undefined;
    await closeQuietly(broken);
    workspace = await open();
    throw new Error(`The workspace broke (${messageOf(error)}). A new one is open; files of earlier commands are gone`);
  };

  return {
    async exec(command) {
      halt.signal.throwIfAborted();
      workspace ??= await open();
      try {
        return await untilAborted(workspace.exec(command, context.settings.terminal), halt.signal);
      } catch (error) {
        halt.signal.throwIfAborted();
        return replace(error);
      }
    },
    close: () => closeQuietly(workspace),
  };
}

/** The run's outcome stands whatever its workspace does on the way out. */
async function closeQuietly(workspace: Workspace | undefined): Promise<void> {
  try {
    await workspace?.close();
  } catch {
    // Nobody could do more about it than the sandbox has tried.
  }
}
