//! Invalid configurations, and the errors that the operator reads.

use rstest::rstest;

use crate::Machine;

/// One mistake each: the file, and the error text after "config key".
#[rstest]
#[case::unknown_key(
    "[server]\nlisen = \"127.0.0.1:1\"",
    "`server.lisen` is unknown: did you mean `listen`? (rejoinder.toml:2)"
)]
#[case::a_share_of_nothing(
    "[server]\nconnections_per_peer = 1",
    "`server.connections_per_peer` must be a whole number from 2 to 8192, not 1 (rejoinder.toml:2)"
)]
#[case::everybody_is_a_trusted_proxy(
    "[server]\ntrusted_proxies = [\"127.0.0.1\", \"::/0\"]",
    "`server.trusted_proxies` must not contain every address, because everybody could then choose the address that they seem to come from: name those of the proxies (rejoinder.toml:2)"
)]
#[case::every_ipv4_address_is_a_trusted_proxy(
    "[server]\ntrusted_proxies = [\"0.0.0.0/0\"]",
    "`server.trusted_proxies` must not contain every address, because everybody could then choose the address that they seem to come from: name those of the proxies (rejoinder.toml:2)"
)]
#[case::a_node_without_a_proxy(
    "[server]\nnode_url = \"http://one.internal:7420\"",
    "`server.node_url` needs `server.public_url`, where callers reach any of the nodes (rejoinder.toml:2)"
)]
#[case::unknown_section("[sever]\ndrain = \"1s\"", "`sever` is unknown: did you mean `server`? (rejoinder.toml:1)")]
#[case::a_value_for_a_table("server = 5", "`server` must be a table, not a number (rejoinder.toml:1)")]
#[case::two_agents_of_one_name(
    "[agents.main]\nkind = \"front-desk\"\n\n[agents.main]\nkind = \"robot\"",
    "`agents.main` is defined twice: rename or remove one of them (rejoinder.toml:4)"
)]
#[case::two_agents_of_one_name_in_one_line(
    "agents = { a = { kind = \"front-desk\" }, a = { kind = \"front-desk\" } }",
    "`agents.a` is defined twice: rename or remove one of them (rejoinder.toml:1)"
)]
#[case::a_key_twice(
    "[server]\ndrain = \"1s\"\ndrain = \"2s\"",
    "`server.drain` is defined twice: rename or remove one of them (rejoinder.toml:3)"
)]
#[case::another_database(
    "[store]\nurl = \"mysql://me:pw@host/db\"",
    "`store.url` must be \"sqlite:\" and the path of a file, such as \"sqlite:rejoinder.db\", or the URL of a PostgreSQL database, such as \"postgres://USER@HOST:5432/DATABASE\" (rejoinder.toml:2)"
)]
#[case::a_database_without_its_name(
    "[store]\nurl = \"postgres://me:pw@host\"",
    "`store.url` must name one database after the host: \"postgres://USER@HOST:5432/DATABASE\" (rejoinder.toml:2)"
)]
#[case::a_password_for_a_file(
    "[store]\npassword = \"pw\"",
    "`store.password` is for a PostgreSQL database, and `store.url` names an SQLite file (rejoinder.toml:2)"
)]
#[case::two_passwords(
    "[store]\nurl = \"postgres://me:pw@host/db\"\npassword = \"pw\"",
    "`store.password` is in `store.url` as well: remove one of them (rejoinder.toml:3)"
)]
#[case::a_password_for_nobody(
    "[store]\nurl = \"postgres://host/db\"\npassword = \"pw\"",
    "`store.password` needs a user in `store.url`: \"postgres://USER@HOST/DATABASE\" (rejoinder.toml:3)"
)]
#[case::a_database_that_forgets(
    "[store]\nurl = \"sqlite::memory:\"",
    "`store.url` names a database in memory, which would lose all owed answers when the gateway stops: name a file (rejoinder.toml:2)"
)]
#[case::a_database_without_its_kind(
    "[store]\nurl = \"rejoinder.db\"",
    "`store.url` must be \"sqlite:\" and the path of a file, such as \"sqlite:rejoinder.db\", or the URL of a PostgreSQL database, such as \"postgres://USER@HOST:5432/DATABASE\" (rejoinder.toml:2)"
)]
#[case::a_secret_of_another_type(
    "[admin]\ntoken = 5",
    "`admin.token` must be text in quotes, `{ env = \"NAME\" }`, `{ file = \"path\" }` or `{ generate = true }` (rejoinder.toml:2)"
)]
#[case::a_token_that_can_be_guessed(
    "[admin]\ntoken = \"nineteen-characters\"",
    "`admin.token` has less than 20 characters, so it could be guessed: write `{ generate = true }`, or use what `openssl rand -hex 24` prints (rejoinder.toml:2)"
)]
#[case::an_old_token_that_can_be_guessed(
    "[channels.hook.siri]\ntoken = [{ generate = true },\n\"4711\"]",
    "`channels.hook.siri.token[1]` has less than 20 characters, so it could be guessed: write `{ generate = true }`, or use what `openssl rand -hex 24` prints (rejoinder.toml:3)"
)]
#[case::three_tokens(
    "[admin]\ntoken = [\"token-of-these-tests\", \"token-of-these-tests\", \"token-of-these-tests\"]",
    "`admin.token` must be one token, or the new and the old one: [new, old] (rejoinder.toml:2)"
)]
#[case::an_empty_secret("[admin]\n\n\ntoken = \" \"", "`admin.token` is empty (rejoinder.toml:4)")]
#[case::a_variable_that_is_not_set(
    "[admin]\ntoken = { env = \"NOT_SET\" }",
    "`admin.token` is read from the environment variable `NOT_SET`, which is not set: set it, or write the value here (rejoinder.toml:2)"
)]
#[case::a_variable_that_is_empty(
    "[admin]\ntoken = { env = \"SET_TO_NOTHING\" }",
    "`admin.token` is empty: the environment variable `SET_TO_NOTHING` holds nothing (rejoinder.toml:2)"
)]
#[case::a_file_that_is_not_there(
    "[admin]\ntoken = { file = \"admin.token\" }",
    "`admin.token` is read from the file …/admin.token, which cannot be read: No such file or directory (os error 2) (rejoinder.toml:2)"
)]
#[case::a_file_that_is_empty(
    "[admin]\ntoken = { file = \"empty\" }",
    "`admin.token` is empty: the file `empty` holds nothing (rejoinder.toml:2)"
)]
#[case::a_token_that_no_caller_can_send(
    "[channels.hook.siri]\ntoken = \"one\\ntwo\"",
    "`channels.hook.siri.token` contains a line break or another control character, so no caller can send it (rejoinder.toml:2)"
)]
#[case::a_token_of_a_file_that_no_caller_can_send(
    "[admin]\ntoken = { file = \"two-lines\" }",
    "`admin.token` contains a line break or another control character, so no caller can send it (rejoinder.toml:2)"
)]
#[case::a_template_that_shows_nothing(
    "[guard.templates]\nlate = \"\\u200b\"",
    "`guard.templates.late` is empty: people would see nothing (rejoinder.toml:2)"
)]
#[case::a_choice_that_shows_nothing(
    "[guard.clarify.one]\nquestion = \"?\"\nchoices = [\"a\", \"\\u2060\"]",
    "`guard.clarify.one.choices[1]` is empty (rejoinder.toml:3)"
)]
#[case::an_api_key_cannot_be_made(
    "[agents.main]\nkind = \"robot\"\nbase_url = \"http://x\"\nmodel = \"x\"\napi_key = { generate = true }",
    "`agents.main.api_key` must be text in quotes, `{ env = \"NAME\" }` or `{ file = \"path\" }` (rejoinder.toml:5)"
)]
#[case::a_slip_in_a_choice(
    "[log]\nformat = \"jsn\"",
    "`log.format` must be `text` or `json`, not `jsn` (did you mean `json`?) (rejoinder.toml:2)"
)]
#[case::a_choice_of_another_type(
    "[log]\nlevel = 3",
    "`log.level` must be one of `error`, `warn`, `info`, `debug` or `trace`, not a number (rejoinder.toml:2)"
)]
#[case::a_platform_that_is_not_in_this_build(
    "[channels.semaphore.main]\ntoken = \"token-of-these-tests\"",
    "`channels.semaphore` names a platform that this build does not have: it has `hook` and `page` (rejoinder.toml:1)"
)]
#[case::a_platform_that_was_left_out(
    "[channels.smoke.main]\ntoken = \"token-of-these-tests\"\n[guard.templates.smoke]\nlate = \"x\"",
    "`channels.smoke` names a platform that this build does not have: remove it, or build with the feature `smoke` (rejoinder.toml:1)"
)]
#[case::a_group_among_people(
    "[channels.page.main]\nallow_from = [\"-5\"]",
    "`channels.page.main.allow_from[0]` is a group: groups belong in group_allow_from (rejoinder.toml:2)"
)]
#[case::a_policy_for_direct_chats_that_there_is_not(
    "[channels.page.main]\ndm_policy = \"nobody\"",
    "`channels.page.main.dm_policy` must be one of `pairing`, `allowlist`, `open` or `disabled`, not `nobody` (rejoinder.toml:2)"
)]
#[case::a_person_of_a_channel_that_is_not_there(
    "[people.ada]\nidentities = [\"page.mian/42\"]",
    "`people.ada.identities[0]` names the channel `page.mian`, which does not exist: did you mean `page.main`? (rejoinder.toml:2)"
)]
#[case::a_person_of_a_channel_whose_callers_have_a_token(
    "[people.ada]\nidentities = [\"page.main/42\", \"hook.default/42\"]",
    "`people.ada.identities[1]` names hook.default/42, but callers of hook.default have a token instead: remove it (rejoinder.toml:2)"
)]
#[case::a_home_where_somebody_is_nobody(
    "[people.ada]\nidentities = [\"page.main/42\"]\nhome = \"page.other\"",
    "`people.ada.home` is page.other, but identities name nobody there: use the channel of one of them (rejoinder.toml:3)"
)]
#[case::a_slip_in_a_platform(
    "[channels.hok.siri]\ntoken = \"token-of-these-tests\"",
    "`channels.hok` names a platform that this build does not have: it has `hook` and `page` (did you mean `hook`?) (rejoinder.toml:1)"
)]
#[case::a_name_that_cannot_be_one(
    "[channels.hook.Siri]\ntoken = \"token-of-these-tests\"",
    "`channels.hook.Siri` has an invalid name: use a-z, 0-9, `_` and `-`, at most 64 characters (rejoinder.toml:1)"
)]
#[case::a_name_that_is_taken(
    "[channels.page.ws]",
    "`channels.page.ws` has a reserved name: choose another (rejoinder.toml:1)"
)]
#[case::a_wait_that_is_too_long(
    "[channels.hook.siri]\ntoken = \"token-of-these-tests\"\nwait = \"11m\"",
    "`channels.hook.siri.wait` must be from 0s to 10m, not 11m (rejoinder.toml:3)"
)]
#[case::a_channel_for_an_agent_that_is_not_there(
    "[channels.hook.siri]\ntoken = \"token-of-these-tests\"\nagent = \"front-dsk\"",
    "`channels.hook.siri.agent` names the agent `front-dsk`, which does not exist: did you mean `front-desk`? (rejoinder.toml:3)"
)]
#[case::an_agent_of_no_kind(
    "[agents.main]\nmodel = \"x\"",
    "`agents.main.kind` must be set: `front-desk` or `robot` (rejoinder.toml:1)"
)]
#[case::an_agent_of_an_unknown_kind(
    "[agents.main]\nkind = \"robto\"",
    "`agents.main.kind` must be `front-desk` or `robot`, not `robto` (did you mean `robot`?) (rejoinder.toml:2)"
)]
#[case::a_key_for_the_front_desk(
    "[agents.main]\nkind = \"front-desk\"\nmodel = \"x\"",
    "`agents.main.model` is a key of the kind `robot`, not of `front-desk`; nothing can be set here (rejoinder.toml:3)"
)]
#[case::a_key_of_another_platform(
    "[channels.page.main]\ntitle = \"x\"\nwait = \"5s\"",
    "`channels.page.main.wait` is a key of the platform `hook`, not of `page`; known here: `title`, `dm_policy`, `allow_from`, `group_policy`, `group_allow_from`, `tell_reactions`, `max_attachment` and `on_unknown` (rejoinder.toml:3)"
)]
#[case::several_agents_and_no_default(
    "[agents.a]\nkind = \"front-desk\"\n[agents.b]\nkind = \"front-desk\"",
    "`routing.default_agent` must be set, because there are several agents: `a` or `b` (rejoinder.toml:1)"
)]
#[case::a_default_agent_that_does_not_exist(
    "[agents.main]\nkind = \"front-desk\"\n[routing]\ndefault_agent = \"boss\"",
    "`routing.default_agent` names the agent `boss`, which does not exist: there is only `main` (rejoinder.toml:4)"
)]
#[case::no_turns_at_all(
    "[routing]\nmax_concurrent_turns = 0",
    "`routing.max_concurrent_turns` must be a whole number from 1 to 4096, not 0 (rejoinder.toml:2)"
)]
#[case::messages_without_files(
    "[files]\nper_message = 0",
    "`files.per_message` must be a whole number from 1 to 50, not 0 (rejoinder.toml:2)"
)]
#[case::no_room_for_files(
    "[files]\nin_flight = \"1 MiB\"",
    "`files.in_flight` must be a size from \"2 MiB\" to \"2048 MiB\", not \"1 MiB\" (rejoinder.toml:2)"
)]
#[case::room_for_less_than_two_files(
    "[files]\nmax = \"9 MiB\"\nin_flight = \"17 MiB\"",
    "`files.in_flight` must be at least twice `files.max`: one turn has half of it at most (rejoinder.toml:3)"
)]
#[case::links_that_open_nothing(
    "[files]\nlink_for = \"0s\"",
    "`files.link_for` must be from 1m to 365d, not 0s (rejoinder.toml:2)"
)]
#[case::a_server_for_speech_without_a_voice(
    "[voice]\nspeech = { base_url = \"http://x/v1\", model = \"m\" }",
    "`voice.speech.voice` must be set (rejoinder.toml:2)"
)]
#[case::a_server_for_speech_with_a_query(
    "[voice.transcriptions]\nbase_url = \"http://x/v1?key=k\"\nmodel = \"m\"",
    "`voice.transcriptions.base_url` must not contain `?` or `#` (rejoinder.toml:2)"
)]
#[case::a_key_of_two_lines(
    "[voice.transcriptions]\nbase_url = \"http://x/v1\"\nmodel = \"m\"\napi_key = \"one\\ntwo\"",
    "`voice.transcriptions.api_key` contains a character that is not allowed in a header (a line break, perhaps) (rejoinder.toml:4)"
)]
#[case::a_recording_that_ends_at_once(
    "[voice]\nlongest = \"0s\"",
    "`voice.longest` must be from 1s to 1h, not 0s (rejoinder.toml:2)"
)]
#[case::a_delivery_that_is_given_up_at_once(
    "[outbox]\nlifetime = \"0s\"",
    "`outbox.lifetime` must be from 1s to 720h, not 0s (rejoinder.toml:2)"
)]
#[case::a_delivery_that_is_never_tried(
    "[outbox]\nmin_attempts = 0",
    "`outbox.min_attempts` must be a whole number from 1 to 1000, not 0 (rejoinder.toml:2)"
)]
#[case::an_answer_of_no_message(
    "[outbox]\nmax_parts = 0",
    "`outbox.max_parts` must be a whole number from 1 to 100, not 0 (rejoinder.toml:2)"
)]
#[case::turns_that_go_at_once(
    "[retention]\nturns = \"0s\"",
    "`retention.turns` must be from 1s to 3650d, not 0s (rejoinder.toml:2)"
)]
#[case::a_lifetime_that_is_no_duration(
    "[retention]\npayloads = \"off\"",
    "`retention.payloads` must be a duration such as \"90d\" or \"12h\", or \"forever\", not \"off\" (rejoinder.toml:2)"
)]
#[case::sounds_for_ever(
    "[retention]\nvoice = \"forever\"",
    "`retention.voice` must be a duration such as \"7d\" or \"12h\", or \"off\", not \"forever\" (rejoinder.toml:2)"
)]
#[case::a_soft_deadline_after_the_hard_one(
    "[guard]\nsoft_deadline = \"10m\"",
    "`guard.soft_deadline` must be shorter than guard.hard_deadline, or \"off\" (rejoinder.toml:2)"
)]
#[case::a_hard_deadline_before_the_soft_one(
    "[guard]\nhard_deadline = \"20s\"",
    "`guard.hard_deadline` must be longer than guard.soft_deadline: also set that to less, or to \"off\" (rejoinder.toml:2)"
)]
#[case::a_ladder_for_a_platform_that_is_not_in_this_build(
    "[guard.ladder.semaphore.direct]\nsilent = [{ say = \"silent\" }]",
    "`guard.ladder.semaphore` names neither a platform nor a channel: there are `hook`, `page`, `smoke`, `hook.default` and `page.main` (rejoinder.toml:1)"
)]
#[case::a_text_that_no_store_can_keep(
    "[guard.templates]\nlate = \"a\\u0000b\"",
    "`guard.templates.late` must not contain the character U+0000 (rejoinder.toml:2)"
)]
#[case::a_kind_of_chat_that_there_is_not(
    "[guard.ladder.page.dierct]\nsilent = [{ say = \"silent\" }]",
    "`guard.ladder.page.dierct` is unknown: did you mean `direct`? (rejoinder.toml:1)"
)]
#[case::a_cause_that_there_is_not(
    "[guard.ladder.page.direct]\nslient = [{ say = \"silent\" }]",
    "`guard.ladder.page.direct.slient` is unknown: did you mean `silent`? (rejoinder.toml:2)"
)]
fn a_mistake_is_named_with_its_key_file_and_line(#[case] toml: &str, #[case] said: &str) {
    let machine = Machine::with_toml(toml)
        .with_file("empty", "\n")
        .with_file("two-lines", "one\ntwo\n")
        .with_environment(&[("SET_TO_NOTHING", "")]);

    assert_eq!(machine.errors(), format!("config key {said}"));
}

#[test]
fn everything_that_is_wrong_is_said_at_once_in_the_order_of_the_file() {
    let machine = Machine::with_toml(
        r#"[server]
listen = "localhost:7420"
body_limit = "1 TiB"
drain = "20 parsecs"
request_timeout = 20
colour = "blue"

[channels.hook.siri]
token = ""
wiat = "5s"

[agents.main]
kind = "robot"
modle = "llama3.1"
max_tokens = 0

[routing]
default_agent = "mian"

[guard]
soft_deadline = "-5s"
max_runs = -1
late_answer = "drop"
"#,
    );

    insta::assert_snapshot!(machine.errors(), @r#"
    15 problems in the configuration:
      config key `server.listen` must be an IP address and a port such as "127.0.0.1:7420", not "localhost:7420" (rejoinder.toml:2)
      config key `server.body_limit` must be a size from "1 KiB" to "64 MiB", not "1 TiB" (rejoinder.toml:3)
      config key `server.drain` must be a duration such as "250ms", "20s", "10m" or "1h30m", not "20 parsecs" (rejoinder.toml:4)
      config key `server.request_timeout` must be a duration such as "250ms", "20s", "10m" or "1h30m", not 20 (rejoinder.toml:5)
      config key `server.colour` is unknown; known here: `listen`, `public_url`, `node_url`, `body_limit`, `request_timeout`, `drain`, `trusted_proxies` and `connections_per_peer` (rejoinder.toml:6)
      config key `channels.hook.siri.token` is empty (rejoinder.toml:9)
      config key `channels.hook.siri.wiat` is unknown: did you mean `wait`? (rejoinder.toml:10)
      config key `agents.main.base_url` must be set (rejoinder.toml:12)
      config key `agents.main.model` must be set (rejoinder.toml:12)
      config key `agents.main.modle` is unknown: did you mean `model`? (rejoinder.toml:14)
      config key `agents.main.max_tokens` must be a whole number from 1 to 1000000, not 0 (rejoinder.toml:15)
      config key `routing.default_agent` names the agent `mian`, which does not exist: did you mean `main`? (rejoinder.toml:18)
      config key `guard.soft_deadline` must be from 10ms to 24h, not -5s (rejoinder.toml:21)
      config key `guard.max_runs` must be a whole number from 1 to 100, not -1 (rejoinder.toml:22)
      config key `guard.late_answer` must be `deliver` or `record`, not `drop` (rejoinder.toml:23)
    "#);
}

#[test]
fn every_rung_that_leads_nowhere_is_named() {
    let wrong_names = Machine::with_toml(
        r#"[guard.ladder.page.direct]
silent = [{ handoff = "boss" }, { clarify = "what" }, { say = "silnt" }, { react = "ok" }]
error = []
"#,
    );
    let wrong_shapes = Machine::with_toml(
        r#"[guard.ladder.page.direct]
silent = [{ say = "silent", react = "👀" }]
error = [{ shout = "failed" }]
timeout = "late"
refused = ["say"]
"#,
    );

    insta::assert_snapshot!(wrong_names.errors(), @r#"
    5 problems in the configuration:
      config key `guard.ladder.page.direct.silent[0].handoff` names the agent `boss`, which does not exist: there is only `front-desk` (rejoinder.toml:2)
      config key `guard.ladder.page.direct.silent[1].clarify` names the question `what`, which does not exist: there is only `what_next` (rejoinder.toml:2)
      config key `guard.ladder.page.direct.silent[2].say` names the template `silnt`, which does not exist: did you mean `silent`? (rejoinder.toml:2)
      config key `guard.ladder.page.direct.silent[3].react` must be one emoji (rejoinder.toml:2)
      config key `guard.ladder.page.direct.error` is empty: name at least one rung, or a turn that is owed an answer could get none (rejoinder.toml:3)
    "#);
    insta::assert_snapshot!(wrong_shapes.errors(), @r#"
    4 problems in the configuration:
      config key `guard.ladder.page.direct.silent[0]` must name exactly one of `handoff`, `clarify`, `say` or `react`, not 2 of them (rejoinder.toml:2)
      config key `guard.ladder.page.direct.error[0]` must be one of `handoff`, `clarify`, `say` or `react`, not `shout` (rejoinder.toml:3)
      config key `guard.ladder.page.direct.timeout` must be a list, not text (rejoinder.toml:4)
      config key `guard.ladder.page.direct.refused[0]` needs a value: write it as `{ name = "value" }` (rejoinder.toml:5)
    "#);
}

#[test]
fn a_handoff_to_the_agent_that_failed_is_named() {
    let machine = Machine::with_toml(
        r#"[agents.main]
kind = "front-desk"
[agents.boss]
kind = "front-desk"
[routing]
default_agent = "main"
[channels.hook.siri]
token = "token-of-these-tests"
[channels.hook.office]
token = "token-of-these-tests"
agent = "boss"
[guard.ladder.default.direct]
silent = [{ handoff = "boss" }]
error = [{ handoff = "main" }]
[guard.ladder."hook.siri".direct]
error = [{ handoff = "boss" }, { say = "failed" }, { handoff = "boss" }]
[channels.hook.door]
token = "token-of-these-tests"
[guard.ladder."hook.door".direct]
silent = [{ handoff = "boss" }]
"#,
    );

    insta::assert_snapshot!(machine.errors(), @r#"
    3 problems in the configuration:
      config key `guard.ladder.default.direct.silent[0].handoff` names `boss`, which is the agent of `hook.office` and has failed by then: name another agent, or give this channel a ladder of its own (rejoinder.toml:13)
      config key `guard.ladder.default.direct.error[0].handoff` names `main`, which is the agent of `hook.door` and has failed by then: name another agent, or give this channel a ladder of its own (rejoinder.toml:14)
      config key `guard.ladder."hook.siri".direct.error[2].handoff` hands the turn to `boss` a second time (rejoinder.toml:16)
    "#);
}

#[test]
fn questions_and_templates_that_nobody_could_use_are_named() {
    let questions = Machine::with_toml(
        r#"[guard.clarify.one]
question = "?"
choices = ["a"]
[guard.clarify.two]
question = "?"
choices = ["a", "a", ""]
"#,
    );
    let empty = Machine::with_toml(
        r#"[guard.clarify.one]
question = " "
choices = ["a", "b"]
[guard.clarify.two]
choices = [1, 2]
"#,
    );
    let templates = Machine::with_toml(
        r#"[guard.templates]
flaied = "x"
late = ""
[guard.templates.hok]
late = "x"
[guard.templates.hook]
laet = "x"
"#,
    );

    insta::assert_snapshot!(questions.errors(), @r#"
    3 problems in the configuration:
      config key `guard.clarify.one.choices` must be a list of 2 to 8 texts, not of 1 (rejoinder.toml:3)
      config key `guard.clarify.two.choices[1]` is listed twice: the choices must differ (rejoinder.toml:6)
      config key `guard.clarify.two.choices[2]` is empty (rejoinder.toml:6)
    "#);
    insta::assert_snapshot!(empty.errors(), @r#"
    3 problems in the configuration:
      config key `guard.clarify.one.question` is empty (rejoinder.toml:2)
      config key `guard.clarify.two.question` must be set (rejoinder.toml:4)
      config key `guard.clarify.two.choices[0]` must be a string, not 1 (rejoinder.toml:5)
    "#);
    insta::assert_snapshot!(templates.errors(), @r#"
    4 problems in the configuration:
      config key `guard.templates.flaied` is not used by the gateway or a ladder: did you mean `failed`? (rejoinder.toml:2)
      config key `guard.templates.late` is empty: people would see nothing (rejoinder.toml:3)
      config key `guard.templates.hok` names neither a platform nor a channel: did you mean `hook`? (rejoinder.toml:4)
      config key `guard.templates.hook.laet` is unknown: did you mean `late`? (rejoinder.toml:7)
    "#);
}

#[test]
fn commands_that_nobody_could_use_are_named() {
    let mistaken = Machine::with_toml(
        r#"[commands.Weather]
description = "The weather"
words = "Rain"
[commands.stop]
description = "Stop"
words = "No"
[commands.joke]
description = ""
[commands.both]
description = "Both"
words = " "
prompt = "Tell a joke."
"#,
    );

    insta::assert_snapshot!(mistaken.errors(), @r#"
    6 problems in the configuration:
      config key `commands.Weather` has an invalid name: use a-z, 0-9 and `_`, at most 32 characters (rejoinder.toml:1)
      config key `commands.stop` is a command of the gateway: choose another name (rejoinder.toml:4)
      config key `commands.joke` must have either `words`, which the gateway answers with, or a `prompt` for the agent (rejoinder.toml:7)
      config key `commands.joke.description` must be one line of 1 to 100 characters (rejoinder.toml:8)
      config key `commands.both` must have either `words`, which the gateway answers with, or a `prompt` for the agent (rejoinder.toml:9)
      config key `commands.both.words` is empty (rejoinder.toml:11)
    "#);
}

#[test]
fn people_whom_nobody_could_recognise_are_named() {
    let unreadable = Machine::with_toml(
        r#"[people.ada]
role = "admin"
identities = ["page.main"]
[people.bob]
role = "owner"
"#,
    );
    let mistaken = Machine::with_toml(
        r#"[people.ada]
identities = []
[people.bob]
identities = ["page.main/8", "page.main/8"]
[people.cy]
identities = [
  "page.main/8",
  "page.main/@cy_l",
  "page.main/*",
  "page.main/*:example.org",
]
[people." "]
identities = ["page.main/9"]
"#,
    );

    insta::assert_snapshot!(unreadable.errors(), @r#"
    3 problems in the configuration:
      config key `people.ada.role` must be one of `guest`, `member` or `owner`, not `admin` (rejoinder.toml:2)
      config key `people.ada.identities[0]` must be a channel and a person's id there, such as "telegram.main/123456789", not "page.main" (rejoinder.toml:3)
      config key `people.bob.identities` must be set (rejoinder.toml:4)
    "#);
    insta::assert_snapshot!(mistaken.errors(), @r#"
    7 problems in the configuration:
      config key `people.ada.identities` is empty: name at least one identity, such as "telegram.main/123456789" (rejoinder.toml:2)
      config key `people.bob.identities[1]` names page.main/8, as people.bob.identities[0] does: remove one of the two (rejoinder.toml:4)
      config key `people.cy.identities[0]` names page.main/8, as people.bob.identities[0] does: remove one of the two (rejoinder.toml:7)
      config key `people.cy.identities[1]` names a username, which can be given to somebody else: write the person's id (rejoinder.toml:8)
      config key `people.cy.identities[2]` names everyone, but an identity is one person's: use allow_from of the channel (rejoinder.toml:9)
      config key `people.cy.identities[3]` names a whole server, but an identity is one person's: use allow_from of the channel (rejoinder.toml:10)
      config key `people." "` has an invalid name: use at most 100 characters, without control characters (rejoinder.toml:12)
    "#);
}

#[test]
fn what_is_not_toml_is_named_with_its_line() {
    let machine = Machine::with_toml("[server]\nlisten = \"127.0.0.1:1\ndrain = 5s\n");

    insta::assert_snapshot!(machine.errors(), @r#"
    2 problems in the configuration:
      not TOML: invalid basic string, expected `"` (rejoinder.toml:2)
      not TOML: string values must be quoted, expected literal string (rejoinder.toml:3)
    "#);
}
