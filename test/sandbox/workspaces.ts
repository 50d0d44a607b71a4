import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { createBubblewrap } from "../../src/sandbox/bubblewrap.ts";
import type { ExecResult, Sandbox, Workspace } from "../../src/sandbox/sandbox.ts";

export const mebibyte = 1024 ** 2;

/** bubblewrap with limits that a test reaches quickly. */
export const sandbox = createBubblewrap({
  limits: {
    addressSpaceBytes: 512 * mebibyte,
    fileBytes: 16 * mebibyte,
    workspaceBytes: 24 * mebibyte,
    tmpBytes: 8 * mebibyte,
  },
});

export type Run = (command: string) => Promise<ExecResult>;

export async function within(backend: Sandbox, use: (run: Run) => Promise<void>) {
  const workspace = await backend.open({ env: {}, signal: new AbortController().signal });
  try {
    await use((command) => workspace.exec(command, { timeoutMs: 20_000, maxOutputBytes: 100_000 }));
  } finally {
    await workspace.close();
  }
}

/** Runs one command, which must end by itself, in a workspace of its own. */
export async function exec(backend: Sandbox, command: string): Promise<ExecResult> {
  const results: ExecResult[] = [];
  await within(backend, async (run) => {
    results.push(await run(command));
  });
  assert.equal(results[0]?.timedOut, false);
  return results[0]!;
}

/** Closed at the test's end whatever happens: an open workspace would keep the test process alive. */
export async function openFor(t: TestContext, sandbox: Sandbox): Promise<Workspace> {
  const workspace = await sandbox.open({ env: {}, signal: new AbortController().signal });
  t.after(() => workspace.close());
  return workspace;
}
