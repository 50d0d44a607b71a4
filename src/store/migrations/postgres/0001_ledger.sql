-- Times are Unix milliseconds. States and their moves: store/states.ts. Texts sort by their bytes, as in the embedded store.

create table events (
  id text collate "C" primary key,
  route text collate "C" not null,
  type text collate "C" not null,
  delivery_id text collate "C" not null,
  received_at bigint not null,
  headers text collate "C" not null,
  -- Set when no job followed: why the event was ignored.
  ignored text
);
create index events_by_route on events (route, id);
create index events_ignored on events (id) where ignored is not null;

create table bodies (
  event_id text collate "C" primary key references events (id),
  -- Zstandard (RFC 8878) when that is what the codec says.
  body bytea not null,
  codec text collate "C" not null check (codec in ('none', 'zstd'))
);

-- A delivery id that was accepted on a route, for as long as a repeat of it counts as a duplicate.
create table claims (
  route text collate "C" not null,
  delivery_id text collate "C" not null,
  event_id text collate "C" not null,
  expires_at bigint not null,
  primary key (route, delivery_id)
);
create index claims_by_end on claims (expires_at);

create table jobs (
  id text collate "C" primary key,
  event_id text collate "C" not null references events (id),
  kind text collate "C" not null check (kind in ('agent', 'direct', 'delivery')),
  route text collate "C" not null,
  -- How a job that was added by hand came about.
  origin text,
  on_crash text collate "C" not null check (on_crash in ('rerun', 'fail')),
  state text collate "C" not null,
  reason text,
  plan text collate "C" not null,
  run_at bigint not null,
  -- Counts the claims; whoever shows an older number has lost the lease.
  fence bigint not null default 0,
  owner text,
  lease_until bigint,
  failures bigint not null default 0,
  interruptions bigint not null default 0,
  -- Set when somebody stopped it while a message was being sent: that one is not tried again.
  stop_reason text,
  created_at bigint not null,
  updated_at bigint not null
);
create index jobs_by_event on jobs (event_id, id);
create index jobs_due on jobs (route, run_at, id) where state = 'queued';
create index jobs_leased on jobs (lease_until, route) where state = 'running';
-- For lists of what is not done, which is little beside what is. What is queued or running has the indexes above.
create index jobs_open on jobs (state, event_id) where state not in ('done', 'queued', 'running');

create table runs (
  job_id text collate "C" not null references jobs (id),
  number bigint not null,
  started_at bigint not null,
  ended_at bigint,
  outcome text,
  reason text,
  answer text,
  transcript text,
  input_tokens bigint,
  output_tokens bigint,
  primary key (job_id, number)
);

create table messages (
  id text collate "C" primary key,
  job_id text collate "C" not null references jobs (id),
  position bigint not null,
  target text collate "C" not null,
  extra text collate "C" not null,
  -- The place it goes to, when order counts there.
  lane text collate "C",
  text text,
  state text collate "C" not null,
  reason text,
  reference text,
  parts_sent bigint not null default 0,
  -- When its text was known.
  ready_at bigint,
  due_at bigint not null,
  -- 1 when the target may have taken the next part already.
  unsure bigint not null default 0,
  fence bigint not null default 0,
  owner text,
  lease_until bigint,
  failures bigint not null default 0,
  updated_at bigint not null
);
create index messages_by_job on messages (job_id, position);
create index messages_due on messages (target, due_at, id) where state = 'pending';
create index messages_leased on messages (lease_until, target) where state = 'sending';
create index messages_in_lane on messages (lane, state, ready_at, id)
  where lane is not null and state in ('waiting', 'pending', 'sending');

create table attempts (
  message_id text collate "C" not null references messages (id),
  number bigint not null,
  started_at bigint not null,
  ended_at bigint,
  outcome text,
  error text,
  primary key (message_id, number)
);

-- Targets that failed lately. After a pause the first message goes alone.
create table troubles (
  target text collate "C" primary key,
  failures bigint not null,
  last_message text collate "C" not null,
  pauses bigint not null,
  paused_until bigint not null,
  -- Until when it asked to be left alone.
  busy_until bigint not null,
  reason text
);

-- What is spent of each route's requests per minute. Not logged: after a crash of the server windows begin anew.
create unlogged table budgets (
  route text collate "C" primary key,
  window_start bigint not null,
  spent bigint not null,
  granted bigint not null
);

create table documents (
  name text collate "C" primary key,
  version bigint not null,
  text text collate "C" not null
);

