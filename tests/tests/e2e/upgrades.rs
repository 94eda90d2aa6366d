//! An upgrade of a database of the first version, with turns in flight.

use std::path::Path;

use rejoinder_tests::{Gate, Gateway, Reply, Script, ScriptedAgent, eventually};
use rusqlite::Connection;

use crate::{TOKEN, hook};

/// The first version of the schema.
const FIRST: &str = include_str!("../../../migrations/sqlite/0001_initial.sql");

/// Makes room for the tables of the first version, which later ones have put together.
const PUT_ASIDE: &str = "
    pragma foreign_keys = off;
    pragma legacy_alter_table = on;
    drop index events_by_key;
    drop index events_with_payload;
    drop index events_of_key_only;
    drop index turns_of_conversation;
    drop index turns_of_channel;
    drop index turns_open;
    drop index turns_waiting;
    drop index turns_first;
    drop index turns_line;
    drop index turns_of_person;
    drop index turns_wake;
    drop index turns_absent;
    drop index turns_deferred;
    drop index turns_undeliverable;
    drop index turns_ended;
    alter table events rename to all_events;
    alter table turns rename to all_turns;
    alter table runs rename to all_runs;";

/// Fills these tables again.
const TAKE_APART: &str = "
    insert into events
    select id, channel, chat, thread, external_id, revision, turn_id, text, details, raw, received_at
    from all_events order by seq;
    insert into turns
    select t.seq, t.id, e.id, t.conversation_id, t.session_id, t.agent, t.command, t.accepted_at, t.channel, t.picked
    from all_turns as t join all_events as e on e.seq = t.event;
    insert into obligations
    select id, seq, conversation_id, channel, person, next_agent, version, owed, state, work, wake_at, overdue_at, ended_at,
        absent, rank, place, body
    from all_turns;
    insert into runs
    select t.id, r.run & 65535, r.agent, r.command, r.owner, r.started_at, r.ended_at, r.ending, r.detail, r.usage, r.cost_micros,
        r.currency
    from all_turns as t join all_runs as r on r.run >> 16 = t.seq;
    drop table all_runs;
    drop table all_turns;
    drop table all_events;";

/// Undoes what later versions have changed in the rest of the schema.
const TO_THE_FIRST: &str = "
    drop table push_subscriptions;
    drop table invitations;
    drop table visits;
    drop table passkeys;
    alter table conversations drop column voice;
    alter table approvals drop column chosen;
    alter table approvals drop column options;
    drop table whole_requests;
    drop table reactions;
    alter table approvals drop column choices;
    alter table sessions drop column title;
    drop table file_uses;
    drop table files;
    drop table agent_use;
    alter table daily_use drop column micros;
    drop table agent_notices;
    drop table agent_sessions;
    drop table sign_in_links;
    drop table guesses;
    drop table versions;
    alter table conversations drop column sessions_version;
    drop table asides;
    alter table deliveries drop column resend_from;
    alter table deliveries drop column copies;
    drop table sign_ins;
    alter table errors drop column muted;
    alter table errors drop column acknowledged_at;
    alter table audit drop column not_reached;
    drop table schedule_runs;
    drop table schedules;
    alter table direct_chats drop column language;
    alter table direct_chats drop column is_home;
    drop table daily_use;
    drop table approval_notices;
    drop table approvals;
    drop index sessions_of_owner;
    drop view transcript_lines;
    delete from transcript where (session_id, seq, claim) not in (
        select session_id, seq, max(claim) from transcript group by session_id, seq, speaker);
    alter table transcript rename to lines;
    create table transcript (
    session_id blob not null,       -- no foreign key: the session's row may be gone when an old turn is answered
    seq integer not null,           -- as in turns
    turn_id blob not null,          -- no foreign key: it would need an index of its own
    speaker text not null,          -- person, agent, gateway
    author text,                    -- JSON: the sender, in chats of several people
    forwarded text,                 -- JSON: who first wrote a forwarded text
    text text,                      -- null: the text of the turn's event
    at integer not null,
    primary key (session_id, seq, speaker)
) strict, without rowid;
    insert into transcript select session_id, seq, turn_id, speaker, author, forwarded, text, at from lines;
    drop table lines;
    alter table sessions drop column used_at;
    alter table sessions drop column model;
    alter table sessions drop column agent;
    alter table sessions drop column owner;
    alter table sessions drop column name;
    drop table questions;
    alter table conversations drop column queue;
    drop table direct_chats;
    drop table languages;
    drop table pairings;
    drop table identities;
    drop table people;
    delete from _sqlx_migrations where version > 1;";

/// What a schema consists of, without what SQLite and the library for migrations make themselves.
fn schema(connection: &Connection) -> Vec<String> {
    let sql = "select sql from sqlite_master where sql is not null and tbl_name not like '%sqlx%' order by name";
    let mut statement = connection.prepare(sql).expect("it is readable");
    let all = statement.query_map([], |row| row.get(0)).expect("it is readable");
    all.collect::<Result<_, _>>().expect("it is text")
}

fn take_back(database: &Path) {
    let connection = Connection::open(database).expect("it opens");
    let place = |what: &str| FIRST.find(what).expect("the first version has it");
    let tables = &FIRST[place("create table events")..place("-- What the models of runs")];
    for sql in [PUT_ASIDE, tables, TAKE_APART, TO_THE_FIRST] {
        connection.execute_batch(sql).expect("it is taken back");
    }
    let first = Connection::open_in_memory().expect("it opens");
    first.execute_batch(FIRST).expect("it is made");
    assert_eq!(schema(&connection), schema(&first));
}

/// One turn runs, one waits for it, one was promised an answer, and one was answered with a question. The copy that is made
/// before has them all.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn turns_in_flight_survive_an_upgrade_from_the_first_version() {
    let never = Gate::default();
    let agent = {
        let never = never.clone();
        ScriptedAgent::start(move |call, number| match call.said().as_str() {
            "unclear" => Script::is_silent("what does it mean?"),
            said if number < 3 => Script::replies(said).waiting(&never),
            said => Script::replies(&format!("answer to {said}")),
        })
        .await
    };
    let ladder = "[guard.ladder.webhook.direct]\nsilent = [{ clarify = \"which\" }]\n\
        [guard.clarify.which]\nquestion = \"Which one?\"\nchoices = [\"this\", \"that\"]\n";
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).config(ladder).start().await;
    let hook = gateway.hook("test", TOKEN);
    let says = async |place: &str, words: &str, wait: &str| {
        Reply::of(hook.message_in(place, words).header("Prefer", wait)).await
    };
    assert_eq!(says("ada", "unclear", "wait=10").await.text(), "Which one?");
    let running = says("bob", "running", "wait=0").await;
    let waiting = says("bob", "waiting", "wait=0").await;
    let deferred = says("cy", "deferred", "wait=1").await;
    assert_eq!(deferred.state(), "deferred", "{deferred:?}");
    eventually("both run", async || (agent.calls().len() == 3).then_some(())).await;

    gateway.kill();
    take_back(&gateway.data().join("rejoinder.db"));
    gateway.restart().await;

    for (turn, words) in [(running, "running"), (waiting, "waiting"), (deferred, "deferred")] {
        let answer = hook.until_settled(&turn.turn()).await;
        assert_eq!(answer.text(), format!("answer to {words}"), "{}", gateway.explain(&turn.turn()));
    }
    assert_eq!(gateway.turns("asked").len(), 1, "the question still waits");
    assert!(gateway.log().contains("to go back, put the copy in its place"), "{}", gateway.log());
    let copy = Connection::open(gateway.data().join("rejoinder.db.schema-1")).expect("it opens");
    let open: u32 = copy
        .query_row("select count(*) from obligations where ended_at is null", [], |row| row.get(0))
        .expect("it is readable");
    assert_eq!(open, 3);
}
