-- Who said a line of the person's, in chats of several people.
alter table transcript add column name text;

-- The scheduler asks which conversations have turns waiting, and steps from one to the next: a conversation
-- with a long line costs it no more than any other.
drop index obligations_waiting;
create index obligations_waiting on obligations (conversation_id, turn_id, work) where work = 'waiting';
