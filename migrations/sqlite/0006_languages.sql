-- The languages in which the gateway speaks to people.

-- What people chose with /language. The languages that platforms tell are in the details of events.
create table languages (
    channel text not null,
    id text not null,               -- who chose, as InboundEvent::person names them
    language text not null,         -- two or three letters: de
    primary key (channel, id)
) strict, without rowid;

alter table pairings add column language text;  -- of whoever asks; null if it is not known
