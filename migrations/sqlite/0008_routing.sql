-- The rule of routing that held for a turn when it was accepted: its deadlines and its ladder do not change while it waits.
alter table turns add column rule text;
