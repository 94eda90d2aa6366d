-- Which answers are spoken in a conversation, if somebody has chosen it.
alter table conversations add column voice text;
