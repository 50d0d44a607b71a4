-- Bodies apart from events, so that what changes is small; jobs know their route; messages know their place.

alter table events rename to old_events;
alter table claims rename to old_claims;
alter table jobs rename to old_jobs;
alter table runs rename to old_runs;
alter table messages rename to old_messages;
alter table attempts rename to old_attempts;
drop index jobs_by_event;
drop index jobs_due;
drop index jobs_leased;
drop index messages_by_job;
drop index messages_due;
drop index messages_leased;

create table events (
  id text primary key,
  route text not null,
  type text not null,
  delivery_id text not null,
  received_at integer not null,
  headers text not null,
  -- Set when no job followed: why the event was ignored.
  ignored text
) strict;
create index events_by_route on events (route, id);
create index events_ignored on events (id) where ignored is not null;

create table bodies (
  event_id text primary key references events (id),
  -- Zstandard (RFC 8878) when that is what the codec says.
  body blob not null,
  codec text not null check (codec in ('none', 'zstd'))
) strict;

-- A delivery id that was accepted on a route, for as long as a repeat of it counts as a duplicate.
create table claims (
  route text not null,
  delivery_id text not null,
  event_id text not null,
  expires_at integer not null,
  primary key (route, delivery_id)
) strict, without rowid;
create index claims_by_end on claims (expires_at);

create table jobs (
  id text primary key,
  event_id text not null references events (id),
  kind text not null check (kind in ('agent', 'direct', 'delivery')),
  route text not null,
  -- How a job that was added by hand came about.
  origin text,
  on_crash text not null check (on_crash in ('rerun', 'fail')),
  state text not null,
  reason text,
  plan text not null,
  run_at integer not null,
  -- Counts the claims; whoever shows an older number has lost the lease.
  fence integer not null default 0,
  owner text,
  lease_until integer,
  failures integer not null default 0,
  interruptions integer not null default 0,
  -- Set when somebody stopped it while a message was being sent: that one is not tried again.
  stop_reason text,
  created_at integer not null,
  updated_at integer not null
) strict;
create index jobs_by_event on jobs (event_id, id);
create index jobs_due on jobs (route, run_at, id) where state = 'queued';
create index jobs_leased on jobs (lease_until, route) where state = 'running';
-- For lists of what is not done, which is little beside what is. What is queued or running has the indexes above.
create index jobs_open on jobs (state, event_id) where state not in ('done', 'queued', 'running');

create table runs (
  job_id text not null references jobs (id),
  number integer not null,
  started_at integer not null,
  ended_at integer,
  outcome text,
  reason text,
  answer text,
  transcript text,
  input_tokens integer,
  output_tokens integer,
  primary key (job_id, number)
) strict;

create table messages (
  id text primary key,
  job_id text not null references jobs (id),
  position integer not null,
  target text not null,
  extra text not null,
  -- The place it goes to, when order counts there.
  lane text,
  text text,
  state text not null,
  reason text,
  reference text,
  parts_sent integer not null default 0,
  -- When its text was known.
  ready_at integer,
  due_at integer not null,
  -- 1 when the target may have taken the next part already.
  unsure integer not null default 0,
  fence integer not null default 0,
  owner text,
  lease_until integer,
  failures integer not null default 0,
  updated_at integer not null
) strict;
create index messages_by_job on messages (job_id, position);
create index messages_due on messages (target, due_at, id) where state = 'pending';
create index messages_leased on messages (lease_until, target) where state = 'sending';
create index messages_in_lane on messages (lane, state, ready_at, id)
  where lane is not null and state in ('waiting', 'pending', 'sending');

create table attempts (
  message_id text not null references messages (id),
  number integer not null,
  started_at integer not null,
  ended_at integer,
  outcome text,
  error text,
  primary key (message_id, number)
) strict, without rowid;

-- Targets that failed lately. After a pause the first message goes alone.
create table troubles (
  target text primary key,
  failures integer not null,
  last_message text not null,
  pauses integer not null,
  paused_until integer not null,
  -- Until when it asked to be left alone.
  busy_until integer not null,
  reason text
) strict;

-- What is spent of each route's requests per minute. Used where several gateways share the ledger.
create table budgets (
  route text primary key,
  window_start integer not null,
  spent integer not null,
  granted integer not null
) strict;

create table documents (
  name text primary key,
  version integer not null,
  text text not null
) strict;

insert into events select id, route, type, delivery_id, received_at, headers, ignored from old_events;
insert into bodies select id, body, body_codec from old_events;
insert into claims select route, delivery_id, event_id, expires_at from old_claims;
insert into jobs
  select j.id, j.event_id, j.kind, e.route, null, 'rerun', j.state, j.reason, j.plan, j.run_at, j.fence, j.owner,
    j.lease_until, j.failures, j.interruptions, null, j.created_at, j.updated_at
  from old_jobs j join old_events e on e.id = j.event_id;
insert into runs select * from old_runs;
insert into messages
  select id, job_id, position, target, extra, null, text, state, reason, reference, parts_sent,
    case state when 'held' then null else due_at end, due_at, case state when 'sending' then 1 else 0 end, fence, owner,
    lease_until, failures, updated_at
  from old_messages;
insert into attempts select * from old_attempts;

drop table old_attempts;
drop table old_messages;
drop table old_runs;
drop table old_jobs;
drop table old_claims;
drop table old_events;
