-- The languages of what the gateway says to people of its own accord.

alter table direct_chats add column language text;  -- the one that the platform told last; null if it never did
