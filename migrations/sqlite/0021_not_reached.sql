-- Who was meant by what was begun, and was not reached: JSON, by the ids of people, so that their names are forgotten with them.

alter table audit add column not_reached text not null default '[]';

alter table schedule_runs add column not_reached text not null default '[]';
