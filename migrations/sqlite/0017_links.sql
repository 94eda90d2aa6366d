-- People confirm that whoever used their code is them.

-- Of a code to link with: the turn in which somebody used it.
alter table pairings add column linked_by blob;
