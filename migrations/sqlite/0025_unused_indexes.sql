-- One query reads what an event needs to know of its conversation. Nothing looks for all conversations with these any more.

drop index conversations_with_queue;
drop index sessions_with_choice;
