-- The jobs in `state/openclaw.sqlite`, as the gateway of OpenClaw 2026.9.6 (npm) wrote it for `openclaw cron add`: the table
-- `cron_jobs`, and of its rows the columns that are not null. One is later than it was (2030), and a description is left out.
pragma user_version = 18;

create table cron_jobs (
  store_key text not null,
  job_id text not null,
  declaration_key text,
  owner_agent_id text,
  name text not null,
  description text,
  enabled integer not null,
  agent_id text,
  payload_kind text not null,
  job_json text not null,
  grant_definition_revision text,
  grant_definition_generation integer,
  grant_definition_updated_at integer,
  state_json text not null default '{}',
  runtime_updated_at_ms integer,
  schedule_identity text,
  sort_order integer not null default 0,
  updated_at integer not null,
  primary key (store_key, job_id)
) strict;

insert into cron_jobs (store_key, job_id, name, enabled, payload_kind, sort_order, updated_at, job_json) values
('/home/ada/.openclaw/cron/jobs.json', '769973fe-6b27-47dc-9dc3-43312638bd45', 'Memory Dreaming Promotion', 1, 'agentTurn', 0, 1795956001815,
  '{"id":"769973fe-6b27-47dc-9dc3-43312638bd45","declarationKey":"memory-core:memory-dreaming-promotion","name":"Memory Dreaming Promotion","enabled":true,"createdAtMs":1795955929400,"schedule":{"kind":"cron","expr":"0 3 * * *"},"sessionTarget":"isolated","wakeMode":"now","payload":{"kind":"agentTurn","message":"__openclaw_memory_core_short_term_promotion_dream__","lightContext":true,"toolsAllow":["*"]},"delivery":{"mode":"none"},"scheduledToolPolicy":{"version":1,"mode":"trusted"},"state":{}}'),
('/home/ada/.openclaw/cron/jobs.json', '68058fa9-7cf7-4531-865a-8f1c0dfbb8e0', 'heartbeat-main', 1, 'heartbeat', 1, 1795956001815,
  '{"id":"68058fa9-7cf7-4531-865a-8f1c0dfbb8e0","declarationKey":"heartbeat:main","displayName":"Heartbeat (main)","agentId":"main","name":"heartbeat-main","enabled":true,"createdAtMs":1795955930535,"schedule":{"kind":"every","everyMs":1800000,"anchorMs":1319720},"sessionTarget":"main","wakeMode":"next-heartbeat","payload":{"kind":"heartbeat"},"state":{}}'),
('/home/ada/.openclaw/cron/jobs.json', 'de505df4-b48c-49e9-a606-09f0e10a8920', 'Later', 1, 'systemEvent', 2, 1795956001815,
  '{"id":"de505df4-b48c-49e9-a606-09f0e10a8920","name":"Later","enabled":true,"deleteAfterRun":true,"createdAtMs":1795955959626,"schedule":{"kind":"at","at":"2130-02-01T16:00:00.000Z"},"sessionTarget":"main","wakeMode":"now","payload":{"kind":"systemEvent","text":"Reminder."},"state":{}}'),
('/home/ada/.openclaw/cron/jobs.json', 'b7c79aa1-f615-4289-847c-1b55f610d1af', 'Quiet', 0, 'agentTurn', 3, 1795956001815,
  '{"id":"b7c79aa1-f615-4289-847c-1b55f610d1af","name":"Quiet","enabled":false,"createdAtMs":1795955962619,"schedule":{"kind":"cron","expr":"0 3 * * *"},"sessionTarget":"isolated","wakeMode":"now","payload":{"kind":"agentTurn","message":"Tidy.","model":"openai/gpt-5.2","toolsAllow":["*"]},"delivery":{"mode":"none","channel":"last"},"scheduledToolPolicy":{"version":1,"mode":"trusted"},"state":{}}'),
('/home/ada/.openclaw/cron/jobs.json', '9677e10f-2578-45a1-b10d-5a808da91974', 'Morning brief', 1, 'agentTurn', 4, 1795956001815,
  '{"id":"9677e10f-2578-45a1-b10d-5a808da91974","name":"Morning brief","enabled":true,"createdAtMs":1795955992066,"schedule":{"kind":"cron","expr":"0 7 * * 1-5","tz":"Europe/Vienna"},"sessionTarget":"isolated","wakeMode":"now","payload":{"kind":"agentTurn","message":"Sum up the night.","toolsAllow":["*"]},"delivery":{"mode":"announce","channel":"telegram","to":"-1001234567890:topic:7"},"scheduledToolPolicy":{"version":1,"mode":"trusted"},"state":{}}'),
('/home/ada/.openclaw/cron/jobs.json', '4fb6ae9c-8cbf-4b79-941f-78d0c15e0577', 'Evening', 1, 'agentTurn', 5, 1795956001815,
  '{"id":"4fb6ae9c-8cbf-4b79-941f-78d0c15e0577","name":"Evening","enabled":true,"createdAtMs":1795955994293,"schedule":{"kind":"every","everyMs":21600000,"anchorMs":1795955994293},"sessionTarget":"isolated","wakeMode":"now","payload":{"kind":"agentTurn","message":"Look.","toolsAllow":["*"]},"delivery":{"mode":"announce","channel":"telegram","to":"-1001234567890","threadId":7},"scheduledToolPolicy":{"version":1,"mode":"trusted"},"state":{}}'),
('/home/ada/.openclaw/cron/jobs.json', 'c6b85f5e-cb0f-49df-bffe-da97b9ed2095', 'Watch', 0, 'agentTurn', 6, 1795956001815,
  '{"id":"c6b85f5e-cb0f-49df-bffe-da97b9ed2095","name":"Watch","enabled":false,"createdAtMs":1795955996637,"schedule":{"kind":"on-exit","command":"true"},"sessionTarget":"isolated","wakeMode":"now","payload":{"kind":"agentTurn","message":"Done?","toolsAllow":["*"]},"delivery":{"mode":"announce","channel":"telegram","to":"42"},"scheduledToolPolicy":{"version":1,"mode":"trusted"},"state":{}}'),
('/home/ada/.openclaw/cron/jobs.json', 'e6d32126-1f5c-4738-8f35-6b72f06d818f', 'Disk', 1, 'command', 7, 1795956001815,
  '{"id":"e6d32126-1f5c-4738-8f35-6b72f06d818f","name":"Disk","enabled":true,"createdAtMs":1795956001815,"schedule":{"kind":"cron","expr":"0 3 * * *"},"sessionTarget":"isolated","wakeMode":"now","payload":{"kind":"command","argv":["sh","-lc","df -h"]},"delivery":{"mode":"announce","channel":"telegram","to":"42"},"state":{}}');
