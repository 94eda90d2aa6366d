-- Sessions that people name, go back to, and use in several conversations.

alter table sessions add column name text;
-- The person whose it is, in direct chats; null: it belongs to its conversation. No foreign key: it is cleared with the person.
alter table sessions add column owner blob;
-- What was chosen for it; null: as messages are routed, and the agent's own model.
alter table sessions add column agent text;
alter table sessions add column model text;
-- When something was last put before an agent in it, to the minute; null: nothing was yet.
alter table sessions add column used_at integer;

update sessions set used_at = (
    select l.at from transcript as l where l.session_id = sessions.id order by l.seq desc limit 1);

create index sessions_of_owner on sessions (owner) where owner is not null;
create index sessions_with_choice on sessions (id) where agent is not null or model is not null;

-- The model that was chosen when the turn was accepted.
alter table turns add column model text;
-- 1: its lines are left out of what agents are shown of its session.
alter table turns add column left_out integer not null default 0;
