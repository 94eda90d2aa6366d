//! A long history: many settled turns, and what they cost.

use std::{path::Path, time::Instant};

use rejoinder_core::{
    ChannelId, Clock, Lifetimes, Store, SystemClock, Timestamp,
    store::{Cutoffs, Removal, TurnFilter, TurnListState},
};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row, SqliteConnection, sqlite::SqliteConnectOptions};

/// The turns per transaction.
const BATCH: usize = 50_000;

/// The conversations that the turns are in.
const CONVERSATIONS: usize = 20_000;

/// The time between the oldest turn and now: 80 days.
const AGE_MS: i64 = 80 * 24 * 3600 * 1000;

/// Fills a closed database with copies of its first turn, in their own conversations and spread over 80 days.
pub(crate) async fn fill(path: &Path, turns: usize) {
    let options = SqliteConnectOptions::new().filename(path).foreign_keys(false).pragma("synchronous", "off");
    let mut database = options.connect().await.expect("the database opens");
    let started = Instant::now();
    let first = SystemClock.now().as_millis() - AGE_MS;
    let step = AGE_MS / i64::try_from(turns).expect("it is a small number");
    let id = |kind: &str, at: &str, number: &str| format!("unhex(printf('%012x{kind}a%015x', {at}, {number}))");
    let at = format!("({first} + i * {step})");
    let (conversation, session) = (id("7004", &first.to_string(), "k"), id("7005", &first.to_string(), "k"));
    for statement in [
        "create temp table template as select t.id, t.seq, t.event, t.conversation_id, d.id as delivery
            from turns as t cross join deliveries as d on d.turn_id = t.id limit 1"
            .to_owned(),
        format!(
            "create temp table n as with recursive c (i) as (select 0 union all select i + 1 from c where i < {turns} - 1)
            select i, i % {CONVERSATIONS} as k, {at} as at, {} as turn, {} as event, {} as delivery from c",
            id("7001", &at, "i"),
            id("7002", &at, "i"),
            id("7003", &at, "i"),
        ),
        format!("create temp table c as select distinct k, {conversation} as id, {session} as session from n"),
        format!(
            "insert into conversations (id, channel, chat, thread, session_id, created_at)
            select c.id, t.channel, 'person ' || c.k, '', c.session, {first}
            from c cross join (select channel from conversations limit 1) as t"
        ),
        format!("insert into sessions (id, conversation_id, created_at) select session, id, {first} from c"),
    ] {
        run(&mut database, statement).await;
    }
    for from in (0..turns).step_by(BATCH) {
        let n = format!("(select * from n where i >= {from} and i < {from} + {BATCH}) as n");
        run(&mut database, "begin".to_owned()).await;
        for statement in [
            format!(
                "insert into events (seq, id, channel, chat, thread, external_id, revision, turn_id, text, details, raw, received_at)
                select n.i + 2, n.event, e.channel, 'person ' || n.k, '', 'event ' || n.i, 0, n.turn, e.text, e.details, e.raw, n.at
                from {n} cross join events as e on e.seq = (select event from template)"
            ),
            format!(
                "insert into turns (id, seq, event, conversation_id, session_id, agent, command, accepted_at, channel, person,
                    next_agent, version, owed, state, work, ended_at, rank, body)
                select n.turn, n.i + 2, n.i + 2, {conversation}, {session}, t.agent, t.command, n.at, t.channel, t.person,
                    t.next_agent, t.version, t.owed, t.state, t.work, n.at, n.i + 2, t.body
                from {n} cross join turns as t on t.id = (select id from template)"
            ),
            format!(
                "insert into runs (run, agent, command, owner, started_at, ended_at, ending, detail, usage)
                select n.i + 2 << 16 | (r.run & 65535), r.agent, r.command, r.owner, n.at, n.at, r.ending, r.detail, r.usage
                from {n} cross join runs as r on r.run >> 16 = (select seq from template)"
            ),
            format!(
                "insert into deliveries (id, turn_id, claim, part, parts, conversation_id, channel, seq, class, signal, via,
                    is_copy, action, state, attempts, next_attempt_at, parked, message_ids, created_at, delivered_at)
                select n.delivery, n.turn, claim, part, parts, {conversation}, channel, n.i + 2, class, signal,
                    via, is_copy, action, state, attempts, n.at, parked, message_ids, n.at, n.at
                from {n} cross join deliveries as d on d.id = (select delivery from template)"
            ),
            format!("insert into attempts select n.delivery, 1, n.turn, n.at, n.at, 'delivered', null from {n}"),
            format!(
                "insert into transcript (session_id, seq, claim, turn_id, speaker, author, forwarded, text, at)
                select {session}, n.i + 2, l.claim, n.turn, l.speaker, l.author, l.forwarded, l.text, n.at
                from {n} cross join transcript as l on l.turn_id = (select id from template)"
            ),
            "commit".to_owned(),
        ] {
            run(&mut database, statement).await;
        }
    }
    run(&mut database, "pragma wal_checkpoint(truncate)".to_owned()).await;
    let size = "select page_count * page_size from pragma_page_count, pragma_page_size";
    let size: i64 = sqlx::query(size).fetch_one(&mut database).await.expect("it is read").get(0);
    database.close().await.expect("it closes");
    println!(
        "{turns} settled turns in {CONVERSATIONS} conversations: {} MB, filled in {:?}",
        size / 1_000_000,
        started.elapsed()
    );
}

async fn run(database: &mut SqliteConnection, statement: String) {
    let failed = |error| panic!("{error}: {statement}");
    sqlx::query(AssertSqlSafe(statement.clone())).execute(database).await.unwrap_or_else(failed);
}

/// Measures what the operator and the sweep read.
pub(crate) async fn measure_reads(store: &dyn Store) {
    let filter = |state| TurnFilter { state, limit: 50, ..TurnFilter::default() };
    let now = SystemClock.now();
    median("the newest 50 turns", async || drop(store.list_turns(&filter(None)).await)).await;
    median("open turns", async || drop(store.list_turns(&filter(Some(TurnListState::Open))).await)).await;
    median("overdue turns", async || drop(store.list_turns(&filter(Some(TurnListState::Overdue))).await)).await;
    median("dead letters", async || drop(store.list_turns(&filter(Some(TurnListState::Undeliverable))).await)).await;
    median("the backlog", async || drop(store.backlog().await)).await;
    median("one sweep", async || {
        drop(store.due(now, 256).await);
        drop(store.upcoming(&ChannelId::new("webhook", "default"), 256).await);
        drop(store.next_wake().await);
    })
    .await;
    median("waiting turns", async || drop(store.waiting(256).await)).await;
    median("what is past its time", async || drop(store.expired(&cutoffs(now, 100), 100).await)).await;
    let lifetimes = Lifetimes { turns: Some(std::time::Duration::from_hours(24 * 90)), ..Lifetimes::default() };
    median("when the next is", async || drop(store.next_expiry(&lifetimes).await)).await;
}

fn cutoffs(now: Timestamp, days: u64) -> Cutoffs {
    let turns = Some(std::time::Duration::from_hours(24 * days));
    Cutoffs::at(now, &Lifetimes { turns, ..Lifetimes::default() })
}

async fn median(what: &str, mut call: impl AsyncFnMut()) {
    let mut times = Vec::new();
    for _ in 0..101 {
        let started = Instant::now();
        call().await;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    println!("  {what}: {:?}", times[times.len() / 2]);
}

/// Removes turns as a running gateway does, with pauses.
pub(crate) async fn remove_in_the_background(store: &dyn Store) {
    let cutoffs = cutoffs(SystemClock.now(), 50);
    while let Some(removal) = store.expired(&cutoffs, 100).await.expect("rows are read") {
        let begun = Instant::now();
        store.remove(removal).await.expect("rows are removed");
        tokio::time::sleep(begun.elapsed() * 3).await;
    }
}

/// Removes the oldest eighth of the turns, without pauses.
pub(crate) async fn measure_removal(store: &dyn Store) {
    let cutoffs = cutoffs(SystemClock.now(), 70);
    let (mut turns, mut pages, mut times) = (0, 0, Vec::new());
    let started = Instant::now();
    let mut removed_in = started.elapsed();
    while let Some(removal) = store.expired(&cutoffs, 100).await.expect("rows are read") {
        let begun = Instant::now();
        match &removal {
            Removal::Turns(ids) => turns += ids.len(),
            Removal::Pages(number) => pages += number,
            Removal::Payloads(_)
            | Removal::Quotes(_)
            | Removal::Contents(_)
            | Removal::Sounds(_)
            | Removal::Keys(_)
            | Removal::Mentions(_)
            | Removal::Log { .. }
            | Removal::Lines { .. } => {}
        }
        let is_turns = matches!(removal, Removal::Turns(_));
        store.remove(removal).await.expect("rows are removed");
        if is_turns {
            times.push(begun.elapsed());
            removed_in = started.elapsed();
        }
    }
    times.sort_unstable();
    let shrunk_in = started.elapsed().checked_sub(removed_in).unwrap_or_default();
    println!(
        "  removed {turns} turns in {removed_in:?}, a step of 100 takes {:?} (median), {:?} (99 %); gave back {pages} pages in {shrunk_in:?}",
        times[times.len() / 2],
        times[times.len() * 99 / 100],
    );
}
