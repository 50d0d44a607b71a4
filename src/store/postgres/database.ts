import { type PoolClient, default as pg } from "pg";
import { StoreUnavailable } from "../../core/errors.ts";
import { createWorks } from "../sql/operations.ts";
import type { Work } from "../sql/statement.ts";
import type { Works } from "../sql/statements.ts";
import type { News, Operations } from "../store.ts";
import { accept } from "./accept.ts";
import { bind } from "./bind.ts";
import { DatabaseClock } from "./clock.ts";
import {
  clientConfig,
  describe,
  describeOpening,
  isCollision,
  type Place,
  prepareSession,
  stateOf,
} from "./connect.ts";
import { createDialect } from "./dialect.ts";
import { Announcer, channelOf, Listener } from "./listener.ts";
import { checkSchema, migrate } from "./schema.ts";

/** Connections of one gateway, besides the one that listens. */
const mostConnections = 16;
/** Calls beyond this many wait for nobody. */
const mostWaiting = 10_000;
/** Two gateways that meet again and again have something else wrong. */
const mostCollisions = 5;

/** One statement, or several that need not agree with each other: no transaction around them, and no round trips for it. */
const single: ReadonlySet<keyof Operations> = new Set([
  ...(["accept", "recordPart", "park", "unpark", "lostLeases", "nextDue", "listEvents", "tallyJobs"] as const),
  ...(["listTroubles", "pruneClaims", "measure", "spend", "giveBack", "readDocument", "writeDocument"] as const),
]);

/** The connections to one database. */
export class Database {
  readonly place: Place;
  readonly clock: DatabaseClock;
  readonly listener: Listener;
  readonly announcer: Announcer;
  readonly #readOnly: boolean;
  readonly #pool: pg.Pool;
  readonly #works: Works;
  readonly #prepared = new WeakSet<PoolClient>();
  readonly #underWay = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(place: Place, readOnly: boolean) {
    this.place = place;
    this.#readOnly = readOnly;
    this.#works = { ...createWorks(createDialect(place.schema)), accept };
    this.#pool = new pg.Pool({ ...clientConfig(place), max: mostConnections, allowExitOnIdle: true });
    // A connection that breaks while nobody uses it is simply gone; the next call makes another.
    this.#pool.on("error", () => {});
    // One that breaks while it is lent says so besides failing the query; nobody listening would end the process. It may
    // break in the very moment in which it was made, before whoever asked for it has it.
    this.#pool.on("connect", (client) => void client.on("error", () => {}));
    this.clock = new DatabaseClock(() => this.#askTime());
    this.listener = new Listener(place);
    this.announcer = new Announcer((news) => this.#notify(news));
  }

  /** @throws StoreRefused, StoreUnavailable; it is closed then. */
  async open(): Promise<void> {
    try {
      await this.#withClient((client) =>
        this.#readOnly ? checkSchema(client, this.place) : migrate(client, this.place),
      );
      await this.clock.start();
    } catch (error) {
      await this.close();
      throw describeOpening(error, this.place);
    }
  }

  /** Carries an operation out. Rejects with `StoreUnavailable` when it could not be, or when nobody can tell. */
  call(name: keyof Operations, args: unknown): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(new StoreUnavailable("The ledger is closed"));
    if (this.#underWay.size >= mostWaiting) {
      return Promise.reject(new StoreUnavailable(`${mostWaiting} operations are waiting for the ledger already`));
    }
    const answer = this.#carryOut(name, args);
    this.#underWay.add(answer);
    const forget = () => void this.#underWay.delete(answer);
    answer.then(forget, forget);
    return answer;
  }

  async #notify(news: News): Promise<void> {
    await this.#withClient((client) => client.query("select pg_notify($1, $2)", [channelOf(this.place), news]));
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    while (this.#underWay.size > 0) await Promise.allSettled([...this.#underWay]);
    await this.announcer.flush();
    this.clock.stop();
    await this.listener.stop();
    await this.#pool.end();
  }

  async #carryOut(name: keyof Operations, args: unknown): Promise<unknown> {
    const begin = () => (this.#works[name] as (args: unknown) => Work<unknown>)(args);
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#withClient((client) =>
          single.has(name) ? drive(begin(), client) : inTransaction(client, name, begin),
        );
      } catch (error) {
        if (isCollision(error) && tries < mostCollisions) continue;
        throw describe(error, this.place);
      }
    }
  }

  /** Lends a connection. One that failed in any other way than by the server's word is not used again. */
  async #withClient<Result>(use: (client: PoolClient) => Promise<Result>): Promise<Result> {
    const client = await this.#pool.connect();
    let isBroken = true;
    try {
      if (!this.#prepared.has(client)) await this.#prepare(client);
      const result = await use(client);
      isBroken = false;
      return result;
    } catch (error) {
      isBroken = stateOf(error) === undefined;
      throw error;
    } finally {
      client.release(isBroken);
    }
  }

  async #prepare(client: PoolClient): Promise<void> {
    await prepareSession(client, this.place, this.#readOnly);
    this.#prepared.add(client);
  }

  async #askTime(): Promise<number> {
    const { rows } = await this.#withClient((client) =>
      client.query<{ ms: number }>("select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as ms"),
    );
    return rows[0]?.ms ?? Date.now();
  }
}

async function inTransaction<Answer>(
  client: PoolClient,
  name: keyof Operations,
  begin: () => Work<Answer>,
): Promise<Answer> {
  // What is read in several statements belongs together.
  await client.query(name === "readEvent" ? "begin isolation level repeatable read" : "begin");
  try {
    const answer = await drive(begin(), client);
    await client.query("commit");
    return answer;
  } catch (error) {
    if (stateOf(error) !== undefined) await client.query("rollback");
    throw error;
  }
}

/** Carries out an operation's work, statement by statement. */
async function drive<Answer>(work: Work<Answer>, client: PoolClient): Promise<Answer> {
  let step = work.next({ changes: 0, rows: [] });
  while (!step.done) {
    const { rowCount, rows } = await client.query(bind(step.value));
    step = work.next({ changes: rowCount ?? 0, rows });
  }
  return step.value;
}
