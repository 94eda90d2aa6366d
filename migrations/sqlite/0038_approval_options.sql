-- What approvers may choose beside a plain yes and a plain no (JSON: name, allows), and the name of what they chose; null: neither of them.

alter table approvals add column options text not null default '[]';
alter table approvals add column chosen text;
