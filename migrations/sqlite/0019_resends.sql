-- What may have been shown is sent again with care: how often that was, and when it may be again.

alter table deliveries add column copies integer not null default 0;  -- attempts that may each have shown it
alter table deliveries add column resend_from integer;                -- null: nothing waits for a time
