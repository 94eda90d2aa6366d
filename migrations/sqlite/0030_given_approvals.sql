-- The number of the run that was given an approval: it is for one run. Null: no run was given it.

alter table approvals add column given_to integer;

update approvals set given_to = 0
where state = 'approved' and exists (
    select 1 from approvals as later where later.turn_id = approvals.turn_id and later.seq > approvals.seq
    union all
    select 1 from runs as run where run.turn_id = approvals.turn_id
        and (run.started_at >= approvals.decided_at or run.ended_at is null or run.ended_at > approvals.decided_at));
