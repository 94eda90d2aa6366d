-- The message of a draft is a delivery now, with claim 0, and what became of it stands in the obligation.
alter table turns drop column draft;
