-- Which deliveries have choices for the person: the questions that wait for an answer are listed.

alter table deliveries add column asks integer not null default 0;

update deliveries set asks = 1
where action like '%"choices":[%'
    and coalesce(
        json_array_length(action, '$.send.content.choices'), json_array_length(action, '$.edit.content.choices'), 0) > 0;

create index deliveries_asking on deliveries (turn_id, asks, is_copy, state) where asks = 1;
