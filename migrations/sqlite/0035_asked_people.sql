-- What a run waits for may also be the answer of its person: these are the answers that they may give.

alter table approvals add column choices text;
