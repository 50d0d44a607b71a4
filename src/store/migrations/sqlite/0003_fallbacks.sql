-- What goes instead of a message that is given up, and why one must not be sent where its route would send it.

-- JSON list of {target, extra, lane, refusal}: where it goes instead, one after the other; null when there is nothing.
alter table messages add column fallback text;
-- The message that it goes instead of.
alter table messages add column replaces text;
alter table messages add column refusal text;
