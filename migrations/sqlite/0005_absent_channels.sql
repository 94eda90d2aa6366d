-- Whether the channel of what is not done yet is missing from the configuration: nothing is done about it until the
-- channel is back. Written at every start.
alter table obligations add column absent integer not null default 0;
alter table deliveries add column absent integer not null default 0;

-- What is worked on is found without going past what waits for its channel.
drop index obligations_waiting;
drop index obligations_running;
drop index obligations_wake;
drop index deliveries_pending;
create index obligations_waiting on obligations (conversation_id, turn_id, work, absent) where work = 'waiting' and absent = 0;
create index obligations_running on obligations (turn_id) where work = 'running' and absent = 0;
create index obligations_wake on obligations (wake_at) where wake_at is not null and absent = 0;
create index deliveries_pending on deliveries (next_attempt_at, state, absent) where state = 'pending' and absent = 0;
create index obligations_absent on obligations (turn_id, absent) where absent = 1;
create index deliveries_absent on deliveries (turn_id, absent) where absent = 1;
