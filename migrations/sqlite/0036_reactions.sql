-- People's reactions to the answers of agents: the latest one of each person, and of few people to each answer.

create table reactions (
    turn_id blob not null references turns (id),    -- the turn that was answered
    person text not null,                           -- as in obligations
    emoji text not null,
    author text,                                    -- JSON: the person, in chats of several people
    at integer not null,
    channel text not null,
    external_id text not null,                      -- of its event, by which some platforms take it back
    primary key (turn_id, person)
) strict, without rowid;

create index reactions_by_event on reactions (external_id);
