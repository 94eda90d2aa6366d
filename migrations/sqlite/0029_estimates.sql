-- How many of the tokens that were used are estimated, because no agent said how many there were.

alter table daily_use add column estimated integer not null default 0;
alter table agent_use add column estimated integer not null default 0;
