-- The questions with choices that were asked, each the answer to a turn. They take the place of deliveries.asks, and of
-- turns.picked, which is not written any more.

create table questions (
    turn_id blob not null primary key references turns (id),
    claim integer not null,         -- whose deliveries ask it
    conversation_id blob not null,  -- where it was asked; no foreign key, as in turns
    channel text not null,
    chooser text,                   -- the platform's id of the only person who may pick
    text text not null,             -- the question, without its choices
    choices text not null,          -- JSON: list of text
    free_text integer not null,     -- whether the person may also answer in their own words
    asked_at integer not null,
    expires_at integer,
    language text,                  -- of the person who was asked; null if it is not known
    state text not null,            -- open, picked, expired
    picked text                     -- the choice that was picked first
) strict;

create index questions_open on questions (conversation_id, asked_at) where state = 'open';
create index questions_expiring on questions (expires_at) where state = 'open' and expires_at is not null;

insert or replace into questions
    (turn_id, claim, conversation_id, channel, chooser, text, choices, free_text, asked_at, state, picked)
select d.turn_id, d.claim, d.conversation_id, d.channel,
    coalesce(json_extract(d.action, '$.send.content.chooser'), json_extract(d.action, '$.edit.content.chooser')),
    coalesce(json_extract(d.action, '$.send.content.text'), json_extract(d.action, '$.edit.content.text'), ''),
    coalesce(json_extract(d.action, '$.send.content.choices'), json_extract(d.action, '$.edit.content.choices')),
    1, d.created_at, iif(t.picked is null, 'open', 'picked'),
    iif(t.picked is null, null, coalesce((
        select e.text from turns as p cross join events as e on e.id = p.event_id where p.id = t.picked), ''))
from deliveries as d cross join turns as t on t.id = d.turn_id
where d.asks = 1 and d.is_copy = 0
order by d.seq;

drop index deliveries_asking;
alter table deliveries drop column asks;
