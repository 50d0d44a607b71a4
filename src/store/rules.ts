import { among, quote } from "./sql/statement.ts";
import { finalJobStates, finalMessageStates, jobStates, messageStates } from "./states.ts";

/** Something that must never be found in a ledger. */
export interface Rule {
  /** Finds what breaks it: columns `id`, and `other` and `state` where `says` needs them. Both databases know these words. */
  readonly sql: string;
  readonly says: (found: Found) => string;
}

export interface Found {
  readonly id: string;
  readonly other: string;
  readonly state: string;
}

const openMessage = `not ${among(finalMessageStates, "m.state")}`;
const atTheFront = ["pending", "sending"] as const;
const beforeAnswer = ["queued", "waiting", "running"] as const;

/** Our own rules, besides what the database itself sees to. */
export const rules: readonly Rule[] = [
  {
    sql: `select id, state from jobs j where not ${among(Object.keys(jobStates))}`,
    says: ({ id, state }) => `The job ${id} is in a state that nobody knows, "${state}"`,
  },
  {
    sql: `select id, state from messages m where not ${among(Object.keys(messageStates))}`,
    says: ({ id, state }) => `The message ${id} is in a state that nobody knows, "${state}"`,
  },
  {
    sql: `select e.id from events e where e.ignored is null
      and not exists (select 1 from jobs j where j.event_id = e.id)`,
    says: ({ id }) => `The event ${id} was accepted, but no job follows it`,
  },
  {
    sql: "select e.id from events e where not exists (select 1 from bodies b where b.event_id = e.id)",
    says: ({ id }) => `The event ${id} has lost its body`,
  },
  {
    sql: `select j.id from jobs j where j.state = 'delivering'
      and not exists (select 1 from messages m where m.job_id = j.id and ${openMessage})`,
    says: ({ id }) => `The job ${id} is "delivering", but none of its messages is left to be sent`,
  },
  {
    sql: `select m.id, j.id as other, m.state from messages m join jobs j on j.id = m.job_id
      where ${among(finalJobStates, "j.state")} and ${openMessage}`,
    says: ({ id, other, state }) => `The job ${other} has ended, but its message ${id} is still "${state}"`,
  },
  {
    sql: `select m.id, j.id as other, m.state from messages m join jobs j on j.id = m.job_id
      where j.kind = 'agent' and ${among(beforeAnswer, "j.state")} and m.state <> 'held'`,
    says: ({ id, other, state }) => `The message ${id} is "${state}" before its job ${other} has an answer`,
  },
  {
    sql: `select m.id, j.id as other from messages m join jobs j on j.id = m.job_id
      where j.state = 'delivering' and m.state = 'held'`,
    says: ({ id, other }) => `The message ${id} is "held", but its job ${other} has its answer`,
  },
  {
    sql: `select id, state from messages m where ${among(["waiting", ...atTheFront, "sent"])} and text is null`,
    says: ({ id, state }) => `The message ${id} is "${state}" and has no text`,
  },
  {
    sql: `select m.id from messages m where m.state = 'waiting' and not exists
      (select 1 from messages f where f.lane = m.lane and ${among(atTheFront, "f.state")})`,
    says: ({ id }) => `The message ${id} waits for an earlier one to the same place, but there is none`,
  },
  {
    sql: `select m.id, f.id as other from messages m join messages f on f.lane = m.lane and f.id < m.id
      where ${among(atTheFront, "m.state")} and ${among(atTheFront, "f.state")}`,
    says: ({ id, other }) => `The messages ${other} and ${id} go to the same place and are both on their way`,
  },
  {
    sql: `select m.id from messages m where m.state = 'replaced'
      and not exists (select 1 from messages n where n.job_id = m.job_id and n.replaces = m.id)`,
    says: ({ id }) => `The message ${id} was given up for the next of its fallback, but there is none`,
  },
  {
    sql: `select n.id, m.id as other, m.state from messages n join messages m on m.id = n.replaces
      where m.state <> 'replaced' or m.job_id <> n.job_id`,
    says: ({ id, other, state }) => `The message ${id} goes instead of ${other}, but that one is "${state}"`,
  },
  ...leases("job", "jobs", "running"),
  ...leases("message", "messages", "sending"),
  ...tries("run", "job", "runs", "jobs", "running"),
  ...tries("try", "message", "attempts", "messages", "sending"),
  {
    sql: `select j.event_id as id from claims c join jobs j on j.event_id = c.event_id
      where j.state = 'refused' and j.id = (select max(n.id) from jobs n where n.event_id = j.event_id)`,
    says: ({ id }) => `The delivery id of the event ${id} is taken, but its sender was told to send again`,
  },
];

/** A lease is held by whoever works on a row, and by nobody else. */
function leases(what: string, table: string, atWork: string): Rule[] {
  const isAtWork = `state = ${quote(atWork)}`;
  return [
    {
      sql: `select id from ${table} where ${isAtWork} and (owner is null or lease_until is null)`,
      says: ({ id }) => `The ${what} ${id} is "${atWork}", but nobody has a lease on it`,
    },
    {
      sql: `select id, owner as other, state from ${table} where not ${isAtWork} and owner is not null`,
      says: ({ id, other, state }) => `The ${what} ${id} is "${state}", but "${other}" has a lease on it`,
    },
  ];
}

/** What is at work has one open run or attempt, and nothing else has. */
function tries(what: string, of: string, table: string, owners: string, atWork: string): Rule[] {
  const open = `t.${of}_id = o.id and t.ended_at is null`;
  return [
    {
      sql: `select o.id from ${owners} o where o.state = ${quote(atWork)}
        and not exists (select 1 from ${table} t where ${open} and t.number = o.fence)`,
      says: ({ id }) => `The ${of} ${id} is "${atWork}", but no ${what} of it is under way`,
    },
    {
      sql: `select o.id, o.state from ${owners} o join ${table} t on ${open}
        where o.state <> ${quote(atWork)} or t.number <> o.fence`,
      says: ({ id, state }) => `The ${of} ${id} is "${state}", but an old ${what} of it has not ended`,
    },
  ];
}
