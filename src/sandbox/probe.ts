import type { Sandbox } from "./sandbox.ts";

/** Opens a workspace and runs `true` in it. Returns what went wrong, or `undefined` when nothing did. */
export async function probe(open: Sandbox["open"]): Promise<string | undefined> {
  try {
    const workspace = await open({ env: {}, signal: new AbortController().signal });
    try {
      const { exitCode, output } = await workspace.exec("true", { timeoutMs: 5000, maxOutputBytes: 1000 });
      return exitCode === 0 ? undefined : `the command "true" ended with status ${exitCode}: ${output.trim()}`;
    } finally {
      await workspace.close();
    }
  } catch (error) {
    return (error as Error).message;
  }
}
