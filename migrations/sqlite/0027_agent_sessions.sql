-- The sessions of which agents with a memory of their own have had a turn, and what these agents must be told of them.

create table agent_sessions (
    session_id blob not null,       -- no foreign key: the row stays until the agent is told that the session is gone
    agent text not null,
    own_session text,               -- the agent's own id of the session; null: it has named none
    primary key (session_id, agent)
) strict, without rowid;

create table agent_notices (
    session_id blob not null,
    agent text not null,
    change text not null,           -- left, deleted, turn_removed
    turn_id blob not null,          -- the removed turn, or empty; no foreign key: the turn is gone
    due_at integer not null,        -- 0: at once
    attempts integer not null,
    primary key (session_id, agent, change, turn_id)
) strict, without rowid;

create index agent_notices_due on agent_notices (due_at);
