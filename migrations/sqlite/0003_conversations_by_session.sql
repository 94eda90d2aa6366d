-- A session and its conversation refer to each other, so one of them is checked at the commit. For each
-- new session SQLite then looks for the conversations that wait for it.
create index conversations_by_session on conversations (session_id);
