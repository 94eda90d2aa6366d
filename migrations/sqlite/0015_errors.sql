-- What operators say of errors: that they have seen one, or do not want to hear of it.

alter table errors add column acknowledged_at integer;          -- null: nobody has seen it
alter table errors add column muted integer not null default 0; -- 1: it is kept when its lines are removed
