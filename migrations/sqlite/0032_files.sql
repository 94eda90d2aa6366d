-- Files that came in events and answers, each stored once. In the URL of an attachment, in JSON columns, a reference
-- (sha256:<digest>?size=<bytes>) stands for the bytes. Rows that are older have the bytes there, in a data: URL: both are read.

create table files (
    digest blob not null unique,    -- SHA-256 of the content
    size integer not null,          -- of the content, in bytes
    content blob not null
) strict;

-- Which turns have rows that refer to a file. With its last turn a file is removed.
create table file_uses (
    turn_id blob not null,          -- no foreign keys: they are removed with the turn, and written with the file
    digest blob not null,
    primary key (turn_id, digest)
) strict, without rowid;

create index file_uses_of_file on file_uses (digest);
