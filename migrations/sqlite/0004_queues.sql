-- What happens to messages that come while a turn of their conversation runs.

-- followup, collect, steer or interrupt, if somebody has chosen it; null: as the channel is configured.
alter table conversations add column queue text;

create index conversations_with_queue on conversations (id, queue) where queue is not null;

-- The parts of an album are turns that are merged, and no events that change the first one.
update events set details = json_remove(details, '$.amends')
where iif(json_valid(details), json_extract(details, '$.amends'), null) = 'continues';
