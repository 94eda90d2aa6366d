-- A line of the transcript counts when it was seen.

create table lines (
    session_id blob not null,       -- no foreign key: the session's row may be gone when an old turn is answered
    seq integer not null,           -- as in turns
    claim integer not null,         -- the claim that says it; 0: what the person wrote
    turn_id blob not null,          -- no foreign key: it would need an index of its own
    speaker text not null,          -- person, agent, gateway
    author text,                    -- JSON: the sender, in chats of several people
    forwarded text,                 -- JSON: who first wrote a forwarded text
    text text,                      -- null: the text of the turn's event
    at integer not null,
    stopped integer not null default 0,     -- 1: what the person wrote was to be answered no more
    primary key (session_id, seq, claim, turn_id)
) strict, without rowid;

-- The latest claim of the agent or of the gateway: 0 is what the person wrote, so that the line of a turn without deliveries has 1 or 2.
insert into lines (session_id, seq, claim, turn_id, speaker, author, forwarded, text, at)
select l.session_id, l.seq,
    case l.speaker when 'person' then 0 else coalesce((
        select max(d.claim) from deliveries as d cross join turns as t on t.id = d.turn_id
        where d.turn_id = l.turn_id and d.claim > 0 and d.is_copy = 0 and (l.speaker = 'gateway') = (
            t.command is not null or d.via = '"deferral"' or (d.via like '%"fallback"%' and d.via not like '%"handoff"%'))),
        iif(l.speaker = 'agent', 1, 2)) end,
    l.turn_id, l.speaker, l.author, l.forwarded, l.text, l.at
from transcript as l;

drop table transcript;
alter table lines rename to transcript;

-- The lines of the transcript with what follows from the deliveries of their claims: their state, and as much of their text as was
-- seen. A line without deliveries was seen.
create view transcript_lines as
select session_id, seq, claim, turn_id, speaker, author, forwarded, at, state,
    iif(state = 'partly', (
        select group_concat(coalesce(action ->> '$.send.content.text', action ->> '$.edit.content.text', ''), char(10, 10))
        from (
            select iif(json_valid(d.action), d.action, '{}') as action from deliveries as d
            where d.turn_id = s.turn_id and d.claim = s.claim and d.is_copy = 0 and d.state = 'delivered'
            order by d.part)), text) as text
from (
    select l.*, case when l.claim = 0 then iif(l.stopped, 'stopped', 'seen') else (
        select case
            when total(d.state = 'delivered') = count(*) then 'seen'
            when total(d.state = 'delivered') > 0 then 'partly'
            when total(d.state in ('pending', 'held', 'sending')) > 0 then 'on_its_way'
            else 'not_delivered' end
        from deliveries as d where d.turn_id = l.turn_id and d.claim = l.claim and d.is_copy = 0) end as state
    from transcript as l) as s;

-- All turns are indexed anew.
update search_progress set turn = 0 where exists (select 1 from transcript);
