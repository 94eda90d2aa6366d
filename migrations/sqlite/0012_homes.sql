-- Where people who are known on several channels want to be reached.

-- Whether its person chose this chat with /home.
alter table direct_chats add column is_home integer not null default 0;
