-- No query uses these indexes: what an event needs to know of its conversation is read by the conversation's address.

drop index conversations_with_queue;
drop index sessions_with_choice;
