-- How often the agent's memory of a session had to go because a turn of it was removed.

alter table agent_sessions add column removals integer not null default 0;
