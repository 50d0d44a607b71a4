-- Times are Unix milliseconds. States and their moves: store/states.ts.

create table events (
  id text primary key,
  route text not null,
  type text not null,
  delivery_id text not null,
  received_at integer not null,
  headers text not null,
  -- Zstandard (RFC 8878) when that is what body_codec says.
  body blob not null,
  body_codec text not null check (body_codec in ('none', 'zstd')),
  -- Set when no job follows: why the event was ignored.
  ignored text
) strict;

-- A delivery id that was accepted on a route, for as long as a repeat of it counts as a duplicate.
create table claims (
  route text not null,
  delivery_id text not null,
  event_id text not null,
  expires_at integer not null,
  primary key (route, delivery_id)
) strict, without rowid;

create table jobs (
  id text primary key,
  event_id text not null references events (id),
  kind text not null check (kind in ('agent', 'direct')),
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
  created_at integer not null,
  updated_at integer not null
) strict;
create index jobs_by_event on jobs (event_id);
create index jobs_due on jobs (run_at) where state = 'queued';
create index jobs_leased on jobs (lease_until) where state = 'running';

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
  text text,
  state text not null,
  reason text,
  reference text,
  parts_sent integer not null default 0,
  due_at integer not null,
  fence integer not null default 0,
  owner text,
  lease_until integer,
  failures integer not null default 0,
  updated_at integer not null
) strict;
create index messages_by_job on messages (job_id);
create index messages_due on messages (due_at) where state = 'pending';
create index messages_leased on messages (lease_until) where state = 'sending';

create table attempts (
  message_id text not null references messages (id),
  number integer not null,
  started_at integer not null,
  ended_at integer,
  outcome text,
  error text,
  primary key (message_id, number)
) strict, without rowid;
