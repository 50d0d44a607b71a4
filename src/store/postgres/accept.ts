import { pack } from "../sql/body.ts";
import { claimKey } from "../sql/claims.ts";
import { newMessage } from "../sql/rows.ts";
import { row, type Work } from "../sql/statement.ts";
import { beginnings } from "../states.ts";
import type { AcceptArgs, Accepted } from "../store.ts";
import { plain } from "./bind.ts";

/**
 * `accept` as one statement, and so one round trip and one commit: what follows the claim is only there when the claim was
 * made. A copy that comes meanwhile waits for the first one's commit.
 */
const acceptAtOnce = row<{ accepted: number }>(`
  with claim as (
    insert into claims (route, delivery_id, event_id, expires_at) values (:route, :claimKey, :eventId, :claimUntil)
    on conflict (route, delivery_id) do update set event_id = excluded.event_id, expires_at = excluded.expires_at
      where claims.expires_at <= :now
    returning event_id
  ), event as (
    insert into events (id, route, type, delivery_id, received_at, headers)
    select event_id, cast(:route as text), cast(:type as text), cast(:deliveryId as text), cast(:now as bigint),
      cast(:headers as text) from claim
  ), body as (
    insert into bodies (event_id, body, codec) select event_id, cast(:body as bytea), cast(:codec as text) from claim
  ), job as (
    insert into jobs (id, event_id, kind, route, origin, on_crash, state, plan, run_at, created_at, updated_at)
    select cast(:jobId as text), event_id, cast(:kind as text), cast(:jobRoute as text), cast(:origin as text),
      cast(:onCrash as text), cast(:state as text), cast(:plan as text), cast(:now as bigint), cast(:now as bigint),
      cast(:now as bigint) from claim
  ), message as (
    insert into messages (id, job_id, position, target, extra, lane, text, refusal, fallback, state, ready_at, due_at,
      fence, owner, lease_until, updated_at)
    select m.id, cast(:jobId as text), m.position, m.target, m.extra, m.lane, m.text, m.refusal, m.fallback, m.state,
      m.ready_at, cast(:now as bigint), m.fence, m.owner, m.lease_until, cast(:now as bigint)
    from claim, json_to_recordset(cast(:messages as json)) as m (id text, position bigint, target text, extra text,
      lane text, text text, refusal text, fallback text, state text, ready_at bigint, fence bigint, owner text,
      lease_until bigint)
    returning id, fence
  ), attempt as (
    insert into attempts (message_id, number, started_at) select id, fence, cast(:now as bigint) from message where fence > 0
  )
  select count(*) as accepted from claim`);

const readClaim = row<{ isUnderWay: boolean }>(
  `select exists (
     select from jobs j where j.event_id = c.event_id and j.kind = 'direct' and j.state = 'delivering'
   ) as "isUnderWay"
   from claims c where c.route = :route and c.delivery_id = :claimKey`,
);

/** A claim that is gone again each time it is looked at: then the sender may come again. */
const mostTries = 5;

export function* accept(args: AcceptArgs): Work<Accepted> {
  const { event, job, claimUntil } = args;
  const claim = { route: event.route, claimKey: claimKey(event.deliveryId) };
  const values = {
    ...claim,
    ...{ eventId: event.id, claimUntil, now: event.receivedAt, type: event.type, deliveryId: event.deliveryId },
    ...{ headers: event.headers, ...pack(event.body) },
    ...{ jobId: job.id, kind: job.kind, jobRoute: job.route, origin: job.origin, onCrash: job.onCrash, plan: job.plan },
    state: beginnings[job.kind].job,
    messages: JSON.stringify(
      job.messages.map((_, position) => messageRow(args, position)),
      (_name, value) => plain(value),
    ),
  };
  for (let tries = 0; tries < mostTries; tries += 1) {
    const answer = yield* acceptAtOnce(values);
    if (answer && answer.accepted > 0) return { duplicate: false };
    const first = yield* readClaim(claim);
    if (first) return { duplicate: true, isUnderWay: first.isUnderWay };
    // Between the two looks the first one failed and its id became free: this one is no copy of anything any more.
  }
  return { duplicate: true, isUnderWay: true };
}

function messageRow({ job, event, owner, leaseUntil }: AcceptArgs, position: number) {
  const message = job.messages[position]!;
  const row = newMessage(job, message, position, { event, owner, leaseUntil });
  const { id, target, extra, text, refusal, fallback } = message;
  return {
    ...{
      id,
      position,
      target,
      extra,
      lane: row.lane,
      text,
      refusal,
      fallback,
      state: row.state,
      ready_at: row.readyAt,
    },
    ...{ fence: row.fence, owner: row.owner, lease_until: row.leaseUntil },
  };
}
