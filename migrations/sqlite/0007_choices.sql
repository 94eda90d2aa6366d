-- The turn that the first pick from a question opened, where the turn was answered with a question.
alter table turns add column picked blob;
