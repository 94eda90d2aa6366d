-- What a session is about, as an agent says.

alter table sessions add column title text;
