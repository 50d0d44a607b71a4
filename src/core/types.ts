/** A number kept as its sender wrote it (`1.0`, `12345678901234567890`), made by `JSON.rawJSON`. */
export interface RawNumber {
  readonly rawJSON: string;
}

export type Json = null | boolean | number | string | RawNumber | readonly Json[] | JsonObject;

/** A parsed JSON object. Its keys are a stranger's: read them with `core/path.ts` only, never by plain property access. */
export interface JsonObject {
  readonly [key: string]: Json;
}

/** Request headers by lower-case name, each value as it stood on the wire, in order. A repeated header has several values. */
export type HeaderMap = ReadonlyMap<string, readonly string[]>;

/** Environment variables by name. Never `process.env` itself below the command line, so that tests and runs pass their own. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What arrived on a route, verified and parsed. */
export interface Event {
  /** Our own id (UUIDv7): sorts by time of arrival. */
  readonly id: string;
  readonly route: string;
  /** As the sender named it, for example `pull_request` or `Merge Request Hook`. */
  readonly type: string;
  /** Every name the type goes by in an `events` list; holds `type`. */
  readonly typeNames: readonly string[];
  /** The sender's id of this delivery, or one made from the time of arrival. */
  readonly deliveryId: string;
  readonly payload: JsonObject;
  readonly headers: HeaderMap;
  /** The raw bytes that were signed. */
  readonly body: Buffer;
  /** Unix time in milliseconds. */
  readonly receivedAt: number;
}

/** An Agent Skill that goes before the prompt (format: YAML frontmatter and a Markdown body in `SKILL.md`). */
export interface Skill {
  readonly name: string;
  /** The Markdown body, without the frontmatter. */
  readonly text: string;
  /** Folder of its `SKILL.md`. */
  readonly folder: string;
}
