-- Who has tried codes that do not exist: a restart gives nobody new tries.

create table guesses (
    who text not null,              -- an operator's name, an identity, or a channel
    code text not null,
    since integer not null,         -- when the first of the tries came that count together
    primary key (who, code)
) strict, without rowid;
