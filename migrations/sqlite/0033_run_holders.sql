-- Who does a run outside of the gateway's process, as its runtime wrote it down; null: nobody does.

alter table runs add column holder text;
