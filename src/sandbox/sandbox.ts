/** Where the terminal tool runs its commands (`terminal.backend`). One file each, listed in `registry.ts`. */
export interface Sandbox {
  readonly name: string;
  /**
   * Says why no workspace can be opened (program missing, no user namespaces) and how to mend it, or `undefined` when one
   * can. Tries for real; the caller caches. Nothing ever falls back to another backend.
   */
  blocked(): Promise<string | undefined>;
  /** Opens a fresh, empty workspace for one run. Throws when it cannot. */
  open(options: WorkspaceOptions): Promise<Workspace>;
}

export interface WorkspaceOptions {
  /** Environment variables that commands see besides PATH, HOME, LANG and TERM. Never the gateway's own. */
  readonly env: Readonly<Record<string, string>>;
  /** Aborting it closes the workspace and ends everything in it at once. */
  readonly signal: AbortSignal;
}

/** One run's folder and processes. Commands of one run share files; nothing in it outlives `close`. */
export interface Workspace {
  /** Runs a shell command line (bash) in the workspace folder. Rejects only when the workspace itself is broken or closed. */
  exec(command: string, options: ExecOptions): Promise<ExecResult>;
  /** Ends every process and removes every file of the workspace. May be called twice. */
  close(): Promise<void>;
}

export interface ExecOptions {
  readonly timeoutMs: number;
  /** Output beyond this many bytes is cut from the middle and `truncated` is set. */
  readonly maxOutputBytes: number;
}

export interface ExecResult {
  /** The command's exit status (128 + signal when a signal ended it). */
  readonly exitCode: number;
  /** Standard output and standard error, interleaved as written; invalid UTF-8 replaced. */
  readonly output: string;
  readonly truncated: boolean;
  readonly timedOut: boolean;
}
