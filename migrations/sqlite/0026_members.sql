-- Agents that have members: which of them answered.

alter table runs add column member text; -- its name; null: the agent itself
