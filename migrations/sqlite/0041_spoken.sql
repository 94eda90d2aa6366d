-- Since when the sound of spoken words is kept, which goes before its turn: the recording of a voice note, or an answer that was spoken.
alter table file_uses add column spoken_at integer;     -- null: a file that is kept as long as its turn

create index file_uses_spoken on file_uses (spoken_at) where spoken_at is not null;
