import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { chown, mkdtemp, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client, type QueryResultRow } from "pg";
import { missing, postgresFolder } from "../needs.ts";
import { stablePort } from "./port.ts";
import { hasEnded, isStopped } from "./process.ts";
import { until } from "./wait.ts";

/** A real PostgreSQL server on 127.0.0.1 that believes everyone who they say they are. It syncs its commits to disk. */
export interface PostgresServer {
  readonly port: number;
  /** `postgres://postern@127.0.0.1:port/postgres`, of its superuser. */
  readonly url: string;
  /** Process id of the postmaster that runs now. */
  pid(): number;
  /**
   * URL of a fresh database for one test. It is dropped when the test ends, with its connections, and the server is thawed
   * and started first if need be. Hooks of a test run in the order in which they were added, so those added later find
   * their connections cut.
   */
  database(t: Pick<TestContext, "after">): Promise<string>;
  /** URL of a fresh database. */
  createDatabase(): Promise<string>;
  /** Fast: sessions end, everything is written. Immediate: as a crash, the next start has to recover. Thaws it. */
  stop(mode: StopMode): Promise<void>;
  /** Starts it on the same port and data; fulfils when it takes connections. */
  start(): Promise<void>;
  restart(mode: StopMode): Promise<void>;
  /** From its return on no process of the server does anything; the kernel still takes connections and bytes for it. */
  freeze(): void;
  thaw(): void;
  /** How many clients are connected to the database with this URL. */
  connections(url: string): Promise<number>;
  /** Rows of one statement, on a connection of its own; in the database with this URL, else in `postgres`. */
  query<Row extends QueryResultRow = Record<string, unknown>>(sql: string, url?: string): Promise<Row[]>;
}

export type StopMode = "fast" | "immediate";

export interface OwnPostgresServer extends PostgresServer {
  /** Stops it as in a crash and removes its folder. */
  close(): Promise<void>;
}

export interface PostgresOptions {
  /** As in postgresql.conf. `fsync` and `synchronous_commit` stay on whatever is said here. */
  readonly settings?: Readonly<Record<string, string>>;
}

interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** A folder with the data of a server. */
interface Cluster {
  readonly folder: string;
  readonly data: string;
  /** Whom the programs run as; oneself when not set. */
  readonly account: Account | undefined;
  remove(): Promise<void>;
}

/** PG* variables of whoever runs the tests shall change nothing. */
const environment = { PATH: process.env.PATH };

/** One server for all tests of a file: started when the first of them asks, closed after the last. */
export function sharedPostgres(options: PostgresOptions = {}): () => Promise<PostgresServer> {
  let server: Promise<OwnPostgresServer> | undefined;
  after(async () => (await server)?.close());
  return () => {
    server ??= startPostgres(options);
    return server;
  };
}

/** Makes and starts a server. It ends with this process, however that ends. */
export async function startPostgres(options: PostgresOptions = {}): Promise<OwnPostgresServer> {
  const cluster = await makeCluster();
  try {
    return await startOnFreePort(cluster, options.settings ?? {});
  } catch (error) {
    await cluster.remove();
    throw error;
  }
}

async function makeCluster(): Promise<Cluster> {
  // A socket's path may have 107 characters.
  const parent = tmpdir().length > 60 ? "/tmp" : tmpdir();
  const folder = await realpath(await mkdtemp(join(parent, "postern-postgres-")));
  const remove = guard(folder);
  const account = process.getuid?.() === 0 ? ordinaryAccount() : undefined;
  if (account) await chown(folder, account.uid, account.gid);
  const data = join(folder, "data");
  const args = ["--auth=trust", "--username=postern", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"];
  // Segments of 1 MB instead of 16: a third of initdb's time goes into the first one.
  args.push("--wal-segsize=1", `--pgdata=${data}`);
  try {
    await promisify(execFile)(programPath("initdb"), args, { cwd: folder, env: environment, ...account });
  } catch (error) {
    await remove();
    throw error;
  }
  return { folder, data, account, remove };
}

function programPath(name: "initdb" | "postgres"): string {
  const folder = postgresFolder();
  if (folder === undefined) throw new Error(String(missing("postgres")));
  return join(folder, name);
}

/** PostgreSQL refuses to run as root. */
function ordinaryAccount(): Account {
  const [name] = ["postgres", "nobody"].filter((user) => idOf("-u", user) !== undefined);
  if (name === undefined) throw new Error('Neither a user "postgres" nor "nobody" to run PostgreSQL as');
  return { uid: idOf("-u", name)!, gid: idOf("-g", name)! };
}

function idOf(kind: "-u" | "-g", user: string): number | undefined {
  try {
    return Number(execFileSync("id", [kind, user], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  } catch {
    return undefined;
  }
}

/** Ends what runs in the folder and removes it: when it is told to, or when this process ends, even by SIGKILL. */
function guard(folder: string): () => Promise<void> {
  const script = fileURLToPath(new URL("postgres-guard.sh", import.meta.url));
  // In a session of its own, else Ctrl-C in a terminal ends it together with this process.
  const child = spawn("sh", [script, folder], { cwd: "/", detached: true, stdio: ["pipe", "ignore", "ignore"] });
  child.unref();
  return async () => {
    child.ref();
    child.stdin.end();
    if (child.exitCode === null) await once(child, "exit");
  };
}

async function startOnFreePort(cluster: Cluster, settings: Readonly<Record<string, string>>) {
  for (let tries = 1; ; tries += 1) {
    const server = new Server(cluster, await stablePort(), settings);
    try {
      await server.start();
      return server;
    } catch (error) {
      // Somebody else took the port in the meantime.
      if (tries === 5 || !/Address already in use/.test(String(error))) throw error;
    }
  }
}

const startTimeoutMs = 60_000;

class Server implements OwnPostgresServer {
  readonly port: number;
  readonly url: string;
  readonly #cluster: Cluster;
  readonly #settings: Readonly<Record<string, string>>;
  #postmaster: ChildProcess | undefined;
  #frozen: readonly number[] = [];
  #databases = 0;

  constructor(cluster: Cluster, port: number, settings: Readonly<Record<string, string>>) {
    this.#cluster = cluster;
    this.port = port;
    this.url = `postgres://postern@127.0.0.1:${port}/postgres`;
    this.#settings = {
      ...{ shared_buffers: "16MB", max_connections: "100", ...settings },
      ...{ fsync: "on", synchronous_commit: "on" },
      // Files in the data folder, which go with it even when the server was killed.
      dynamic_shared_memory_type: "mmap",
      ...{ listen_addresses: "127.0.0.1", port: String(port), unix_socket_directories: cluster.folder },
    };
  }

  pid(): number {
    if (!this.#isRunning()) throw new Error("PostgreSQL does not run");
    return this.#postmaster!.pid!;
  }

  #isRunning(): boolean {
    const { pid, exitCode, signalCode } = this.#postmaster ?? {};
    // One that was killed may have ended before this process has heard of it.
    return pid !== undefined && exitCode === null && signalCode === null && !hasEnded(pid);
  }

  async start(): Promise<void> {
    if (this.#isRunning()) throw new Error("PostgreSQL runs already");
    const { folder, data, account } = this.#cluster;
    // Children of a postmaster that was killed hold on to the data for a moment.
    await until("the end of the last server's processes", () => processesIn(data).length === 0);
    const log = openSync(join(folder, "log"), "w");
    const settings = Object.entries(this.#settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    this.#postmaster = spawn(programPath("postgres"), ["-D", data, ...settings], {
      ...{ cwd: folder, env: environment, stdio: ["ignore", log, log], detached: true, ...account },
    });
    // A test file that forgot to close the server shall end all the same. Ctrl-C in a terminal is for that alone.
    this.#postmaster.unref();
    closeSync(log);
    // After a crash it reads its log first, on a machine that may be busy.
    await until("PostgreSQL to take connections", () => this.#isReady(), startTimeoutMs);
  }

  async #isReady(): Promise<boolean> {
    const rows = await this.query<{ data_directory: string }>("show data_directory").catch(() => []);
    // Whoever listens on the port may be another server.
    if (rows[0]?.data_directory === this.#cluster.data) return true;
    if (this.#isRunning()) return false;
    throw new Error(`PostgreSQL does not start: ${readFileSync(join(this.#cluster.folder, "log"), "utf8")}`);
  }

  async stop(mode: StopMode): Promise<void> {
    const postmaster = this.#postmaster;
    if (!postmaster || !this.#isRunning()) return;
    const ended = once(postmaster, "exit");
    postmaster.ref();
    postmaster.kill(mode === "fast" ? "SIGINT" : "SIGQUIT");
    this.thaw();
    await ended;
  }

  async restart(mode: StopMode): Promise<void> {
    await this.stop(mode);
    await this.start();
  }

  freeze(): void {
    // The postmaster first: from then on there are no new children.
    freezeProcesses([this.pid()]);
    this.#frozen = processesIn(this.#cluster.data);
    freezeProcesses(this.#frozen);
  }

  thaw(): void {
    for (const pid of this.#frozen) signal(pid, "SIGCONT");
    this.#frozen = [];
  }

  async createDatabase(): Promise<string> {
    this.#databases += 1;
    const name = `test_${this.#databases}`;
    await this.query(`create database ${name}`);
    return this.url.replace(/postgres$/, name);
  }

  async database(t: Pick<TestContext, "after">): Promise<string> {
    const url = await this.createDatabase();
    t.after(async () => {
      this.thaw();
      if (!this.#isRunning()) await this.start();
      await this.query(`drop database if exists ${nameIn(url)} with (force)`);
    });
    return url;
  }

  async connections(url: string): Promise<number> {
    const [row] = await this.query<{ count: number }>(
      `select count(*)::int from pg_stat_activity
       where datname = '${nameIn(url)}' and backend_type = 'client backend' and pid <> pg_backend_pid()`,
    );
    return row!.count;
  }

  async query<Row extends QueryResultRow>(sql: string, url = this.url): Promise<Row[]> {
    const client = new Client({ connectionString: url });
    // What fails is the query; that the connection is gone, too, is no news.
    client.on("error", () => {});
    await client.connect();
    try {
      return (await client.query<Row>(sql)).rows;
    } finally {
      await client.end();
    }
  }

  async close(): Promise<void> {
    await this.stop("immediate");
    await this.#cluster.remove();
  }
}

function nameIn(url: string): string {
  return new URL(url).pathname.slice(1);
}

/** Processes that work in the folder (Linux), as all of a server do in its data. */
function processesIn(folder: string): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => workingFolder(pid) === folder);
}

function workingFolder(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}

/** Stops processes and waits until they stand: one that syncs a file goes on until that is done. */
function freezeProcesses(pids: readonly number[]): void {
  for (const pid of pids) signal(pid, "SIGSTOP");
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const deadline = Date.now() + 10_000;
  while (!pids.every((pid) => isStopped(pid) || hasEnded(pid))) {
    if (Date.now() > deadline) throw new Error(`Processes ${pids.join(", ")} do not stop`);
    Atomics.wait(pause, 0, 0, 1);
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
