-- The message that shows a draft of a turn's answer, where drafts are messages: the answer is edited into it.
alter table turns add column draft text;
