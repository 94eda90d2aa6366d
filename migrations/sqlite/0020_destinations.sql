-- Turns that the gateway began about one conversation, and whose words go to another.

create table asides (
    turn_id blob not null primary key references turns (id),
    conversation_id blob not null,  -- whose history its agent gets; no foreign key: it may be removed first
    sender text not null            -- who began it: a schedule, a trigger, a hook
) strict, without rowid;

create index asides_about on asides (conversation_id, sender);
