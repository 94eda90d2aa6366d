//! Batches do what the row path does: random requests are written by both, and all that they wrote is compared.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use rejoinder_core::{
    CancelledBy, Clock, ConversationId, DeliveryId, HistoryLine, LineState, ModelInput, NodeId, Obligation, Outcome,
    Policy, Reply, SessionId, Speaker, StoreError, SystemClock, Timestamp, TurnId, Usage, Used,
    conformance::{answer, new_delivery},
    store::{
        AttemptEnd, AttemptStart, Beside, Commit, CursorMove, DeliveryChange, DeliveryRecord, DeliveryState, Fence,
        Granted, InboxStore, LeaseName, LogEvent, NewEvent, NewLogEntry, NodeStore, Remark, RunContent, RunEnd,
        RunStart, StoreState, Stored, Subject, TranscriptLine, Transition, Transitions, TurnChange,
    },
};
use rejoinder_guard::Event;
use rejoinder_store::{PostgresOptions, PostgresStore};
use sqlx::{AssertSqlSafe, Executor, PgConnection};

use crate::{common::Database, nodes, turns};

/// How many requests are written at the same time, at most.
const AT_ONCE: usize = 24;

const ROUNDS: usize = 60;

const START: Timestamp = Timestamp::from_millis(1_750_000_000_000);

/// Numbers that are the same in each run of a test.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn is_one_of(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }
}

/// A turn, as its writer knows it.
#[derive(Clone)]
struct Turn {
    id: TurnId,
    obligation: Obligation,
    version: i64,
    conversation: ConversationId,
    session: SessionId,
    /// Its places in the orders of acceptance of both databases.
    seqs: [i64; 2],
    delivery: Option<DeliveryRecord>,
    runs: u32,
}

/// A chat, with what is open in it.
struct Chat {
    name: String,
    events: u32,
    turns: Vec<Turn>,
}

/// A request, and what it makes of its turn.
enum Request {
    Accept(Box<NewEvent>, Option<Beside<Stored>>),
    Commit(Box<Transition>, Box<Turn>),
}

/// What became of a request, without the numbers that databases give.
#[derive(Debug, PartialEq)]
enum Became {
    Turn(ConversationId, SessionId, bool),
    Stored(Stored),
    Committed(Commit),
    NotOwner,
}

struct World {
    random: Random,
    /// Two that live, and one that is over.
    nodes: [NodeId; 3],
    now: Timestamp,
    /// Of the channel: the same ones in both databases.
    fence: (LeaseName, Fence),
    chats: Vec<Chat>,
}

impl World {
    fn node(&mut self) -> NodeId {
        self.nodes[usize::try_from(self.random.below(3)).expect("few")]
    }

    /// A request for a chat.
    fn request(&mut self, chat: usize) -> Request {
        let turns = self.chats[chat].turns.len();
        if turns == 0 || (turns < 3 && self.random.is_one_of(4)) {
            return self.message(chat);
        }
        let turn = usize::try_from(self.random.below(u64::try_from(turns).expect("few"))).expect("few");
        let known = self.chats[chat].turns[turn].clone();
        let mut next = known.clone();
        let mut transition = self.step(&mut next, chat);
        let expected = known.version;
        next.version += 1;
        let (turn, obligation, at) = (next.id, next.obligation.clone(), self.now);
        // Somebody who knows an earlier version, and a node that has lost the lease.
        let expected = if self.random.is_one_of(8) { expected - 1 } else { expected };
        transition.turns.push(TurnChange { turn, expected, obligation, at });
        let (name, Fence(fence)) = self.fence.clone();
        transition.fence = match self.random.below(8) {
            0 => Some((name, Fence(fence + 1))),
            1 => None,
            _ => Some((name, Fence(fence))),
        };
        let event = LogEvent::TurnAccepted { handler: turns::handler(), owed: true };
        let subject = Subject { turn_id: Some(next.id), conversation_id: Some(next.conversation), channel: None };
        transition.log.push(NewLogEntry { at, subject, event });
        if self.random.is_one_of(4) {
            let (kind, detail) = ("noted".to_owned(), format!("version {}", next.version));
            transition.remarks.push(Remark { turn: next.id, at, kind, detail });
        }
        Request::Commit(Box::new(transition), Box::new(next))
    }

    /// A message, which is new or was sent before, and whose turn runs at once or waits.
    fn message(&mut self, chat: usize) -> Request {
        let key = if self.random.is_one_of(8) { 0 } else { self.chats[chat].events + 1 };
        let (name, node, now) = (self.chats[chat].name.clone(), self.node(), self.now);
        let mut new = turns::new_turn(&name, &format!("{name} {key}"), format!("text {key}"));
        // Some people have limits: one who writes in several chats, and some whose days change.
        let (who, day) = match chat % 8 {
            0 => ("bob", Some(20_000)),
            4 => (&*name, Some(20_000 + i64::try_from(self.random.below(12)).expect("few"))),
            _ => ("ann", None),
        };
        who.clone_into(&mut Arc::make_mut(&mut new.event).sender.id);
        if let Some(turn) = new.turn.as_mut() {
            turn.day = day;
        }
        if self.random.is_one_of(8) {
            new.turn = None;
        }
        if let Some(turn) = new.turn.as_mut().filter(|_| self.random.below(3) > 0) {
            let _ = turn.obligation.on(Event::Begin, &Policy::default(), now);
            turn.run = Some(RunStart { turn: turn.id, number: 1, handler: turn.handler.clone(), node, at: now });
        }
        let (lease, Fence(fence)) = self.fence.clone();
        let fence = Fence(fence + i64::from(self.random.is_one_of(8)));
        let beside = match self.random.below(3) {
            0 => None,
            1 => Some(Beside::Lease((lease, fence))),
            _ => Some(Beside::Cursor(CursorMove {
                channel: new.event.conversation.channel.clone(),
                name: name.clone(),
                position: key.to_string(),
                fence: Some((lease, fence)),
            })),
        };
        Request::Accept(Box::new(new), beside)
    }

    /// What happens next to a turn.
    fn step(&mut self, turn: &mut Turn, chat: usize) -> Transition {
        let (now, node) = (self.now, self.node());
        let mut transition = Transition::default();
        let on = |turn: &mut Turn, event| drop(turn.obligation.on(event, &Policy::default(), now));
        if turn.runs > 0 && self.random.is_one_of(5) {
            // A run of which another node may have written the end, or will.
            let number = 1 + u32::try_from(self.random.below(turn.runs.into())).expect("few");
            let end = ["reply", "failed", "crashed", "stopped"][usize::try_from(self.random.below(4)).expect("few")];
            transition.runs_ended.push(self.run_end(turn, chat, number, end));
        } else if turn.obligation.is_waiting() {
            if self.random.is_one_of(4) {
                on(turn, Event::Cancelled { by: CancelledBy::Deletion });
                return transition;
            }
            on(turn, Event::Begin);
            turn.runs += 1;
            let (handler, number) = (turns::handler(), turn.runs);
            transition.runs_started.push(RunStart { turn: turn.id, number, handler, node, at: now });
        } else if turn.obligation.is_running() {
            match self.random.below(8) {
                // The run goes on, and its node keeps the slot.
                0 => on(turn, Event::Cancelled { by: CancelledBy::Deletion }),
                // So does this one, and nothing waits for it.
                1 => {
                    let policy = Policy::default();
                    let _ = turn.obligation.on(Event::Tick { ran: None }, &policy, now + policy.hard_deadline);
                }
                2 => {
                    on(turn, Event::Recovered);
                    transition.runs_ended.push(self.run_end(turn, chat, turn.runs, "crashed"));
                }
                _ => self.end_run(turn, chat, &mut transition),
            }
        } else if let Some(delivery) = turn.delivery.as_mut().filter(|delivery| is_on_its_way(delivery)) {
            let number = delivery.attempts;
            let (id, state) = (delivery.id, delivery.state);
            if state == DeliveryState::Pending {
                delivery.state = DeliveryState::Sending;
                delivery.attempts += 1;
                transition.attempts_started.push(AttemptStart { delivery: id, number: number + 1, node, at: now });
            } else {
                let is_delivered = self.random.below(3) > 0;
                delivery.state = if is_delivered { DeliveryState::Delivered } else { DeliveryState::Pending };
                let result = if is_delivered { "delivered" } else { "unavailable" }.to_owned();
                transition.attempts_ended.push(AttemptEnd { delivery: id, number, at: now, result, detail: None });
                delivery.delivered_at = is_delivered.then_some(now);
                if is_delivered {
                    delivery.message_ids = vec![format!("message {number}")];
                }
            }
            transition.delivery_changes.push(DeliveryChange::of(delivery));
            if delivery.state == DeliveryState::Delivered {
                let (claim, messages) = (delivery.claim, delivery.message_ids.clone());
                on(turn, Event::Delivered { claim, messages });
            }
        } else {
            on(turn, Event::Cancelled { by: CancelledBy::Deletion });
        }
        transition
    }

    fn run_end(&mut self, turn: &Turn, chat: usize, number: u32, end: &str) -> RunEnd {
        let content = self.random.is_one_of(3).then(|| {
            let settings = format!(r#"{{"model":{}}}"#, self.random.below(3));
            let input = ModelInput { settings, messages: r#"[{"role":"user"}]"#.to_owned(), left_out: 0 };
            Arc::new(RunContent { input: Some(input), tools: Vec::new(), tools_left_out: 0 })
        });
        let usage = Some(Usage { input_tokens: 3, output_tokens: self.random.below(9) });
        let used = Used { tokens: if chat.is_multiple_of(4) { 7 } else { 0 }, ..Used::default() };
        RunEnd { usage, content, used, ..RunEnd::new(turn.id, number, self.now, end.to_owned(), None) }
    }

    /// A run ends with an answer, which may be sent at once.
    fn end_run(&mut self, turn: &mut Turn, chat: usize, transition: &mut Transition) {
        let (now, node) = (self.now, self.node());
        let _ = turn.obligation.on(Event::Outcome(Outcome::Reply(Reply::text("Yes."))), &Policy::default(), now);
        transition.runs_ended.push(self.run_end(turn, chat, turn.runs, "reply"));
        let address = turns::new_turn(&self.chats[chat].name, "", String::new()).event.conversation.clone();
        let mut record = answer(turn.id, turn.conversation, address.clone(), "Yes.", now);
        record.claim = turn.obligation.claims();
        record.id = DeliveryId::new(now);
        if self.random.below(3) > 0 {
            transition.empty_lane = Some((turn.conversation, address));
            record.state = DeliveryState::Sending;
            record.attempts = 1;
            transition.attempts_started.push(AttemptStart { delivery: record.id, number: 1, node, at: now });
        }
        transition.deliveries.push(new_delivery(record.clone()));
        for (speaker, text, claim) in [(Speaker::Person, "text 1", 0), (Speaker::Agent, "Yes.", record.claim)] {
            let (author, forwarded, text, state) = (None, None, text.to_owned(), LineState::Seen);
            let line = HistoryLine { spoken: false, speaker, author, forwarded, text, at: now, state };
            transition.transcript.push(TranscriptLine { session: turn.session, turn: turn.id, seq: 0, claim, line });
        }
        turn.delivery = Some(record);
    }

    /// What a request has made of its chat.
    fn note(&mut self, chat: usize, request: Request, became: &Became, seqs: [i64; 2]) {
        let chat = &mut self.chats[chat];
        match (request, became) {
            (Request::Accept(new, _), Became::Turn(conversation, session, _)) => {
                chat.events += 1;
                let turn = new.turn.expect("it has opened a turn");
                let runs = u32::from(turn.run.is_some());
                let (conversation, session, delivery) = (*conversation, *session, None);
                let (id, obligation) = (turn.id, turn.obligation);
                chat.turns.push(Turn { id, obligation, version: 1, conversation, session, seqs, delivery, runs });
            }
            (Request::Accept(..), Became::Stored(Stored::Kept)) => chat.events += 1,
            (Request::Commit(_, next), Became::Committed(Commit::Done)) => {
                chat.turns.retain(|turn| turn.id != next.id);
                if !next.obligation.state().is_final() {
                    chat.turns.push(*next);
                }
            }
            _ => {}
        }
    }
}

fn is_on_its_way(delivery: &DeliveryRecord) -> bool {
    matches!(delivery.state, DeliveryState::Pending | DeliveryState::Sending)
}

/// Writes a request to one of the databases.
async fn write(store: &PostgresStore, request: &Request, database: usize) -> (Became, i64) {
    match request {
        Request::Accept(new, beside) => match store.accept(vec![(**new).clone()], beside.clone()).await {
            Ok(mut stored) => match stored.remove(0) {
                Stored::Turn { seq, conversation, session, has_history } => {
                    (Became::Turn(conversation, session, has_history), seq)
                }
                stored => (Became::Stored(stored), 0),
            },
            Err(StoreError::NotOwner) => (Became::NotOwner, 0),
            Err(error) => panic!("an event is accepted: {error}"),
        },
        Request::Commit(transition, turn) => {
            let mut transition = (**transition).clone();
            for line in &mut transition.transcript {
                line.seq = turn.seqs[database];
            }
            (Became::Committed(store.commit(transition).await.expect("a transition is executed")), 0)
        }
    }
}

/// The tables that are written, the columns of numbers that databases give, and what is compared in their place.
const WRITTEN: [(&str, &str, &str); 15] = [
    ("attempts", "", ""),
    ("channels_cursor", "", ""),
    ("conversations", "", ""),
    ("daily_use", "", ""),
    (
        "deliveries",
        "seq",
        "'part', x.seq & 65535, 'number', row_number() over (partition by x.conversation_id order by x.seq)",
    ),
    ("events", "seq", ""),
    ("log", "seq", "'number', row_number() over (partition by x.conversation_id order by x.seq)"),
    ("remarks", "id", "'number', row_number() over (partition by x.turn_id order by x.id)"),
    (
        "run_contents",
        "run,settings",
        "'turn', (select id from turns where seq = x.run >> 16), 'number', x.run & 65535,
        'settings', (select body from run_settings where id = x.settings)",
    ),
    ("run_settings", "id,used", ""),
    ("runs", "run", "'turn', (select id from turns where seq = x.run >> 16), 'number', x.run & 65535"),
    ("sessions", "", ""),
    ("slots", "since", ""),
    ("transcript", "seq", "'has_its_place', x.seq = (select seq from turns where id = x.turn_id)"),
    (
        "turns",
        "seq,rank,place,event",
        "'rank', x.rank - x.seq, 'is_placed', x.place is not null,
        'number', row_number() over (partition by x.conversation_id order by x.seq),
        'event', (select external_id from events where seq = x.event)",
    ),
];

/// Tables with times, or with numbers of lanes.
const NOT_COMPARED: [&str; 4] = ["_sqlx_migrations", "leases", "nodes", "writers"];

const SELECT_TABLES: &str = "select tablename::text from pg_tables where schemaname = 'public'";

async fn rows(connection: &mut PgConnection, table: &str) -> Vec<String> {
    let written = WRITTEN.iter().find(|(written, ..)| *written == table).copied();
    let (_, numbers, in_place) = written.unwrap_or_default();
    let sql = format!(
        "select (to_jsonb(x) - '{{{numbers}}}'::text[] || jsonb_build_object({in_place}))::text from {table} as x order by 1"
    );
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(connection).await.expect("the table is read")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_write_what_the_row_path_writes() {
    let (Some(batches), Some(single)) = (Database::new().await, Database::new().await) else { return };
    let nodes = [(); 3].map(|()| NodeId::new(SystemClock.now()));
    let rows_only = PostgresOptions::new(&*single.url, Arc::new(SystemClock)).without_batches().open().await;
    let rows_only = rows_only.expect("the store opens");
    let channel = turns::new_turn("", "", String::new()).event.conversation.channel.clone();
    let wanted = [LeaseName::Channel(channel)];
    let mut fences = Vec::new();
    for store in [&*batches.store, &rows_only] {
        for node in &nodes[..2] {
            nodes::lives(store, *node).await;
        }
        let Granted::These(leases) = store.take_leases(nodes[0], &wanted).await.expect("leases are taken") else {
            panic!("leases end")
        };
        fences.push(leases[0].fence);
    }
    assert_eq!(fences[0], fences[1]);
    let [name] = wanted;
    let chats = (0..AT_ONCE).map(|number| Chat { name: format!("chat {number}"), events: 0, turns: Vec::new() });
    let (random, fence) = (Random(7), (name, fences[0]));
    let mut world = World { random, nodes, now: START, fence, chats: chats.collect() };
    let mut is_busy = false;

    for round in 0..ROUNDS {
        world.now = START + Duration::from_secs(u64::try_from(round).expect("few"));
        // The lease and the nodes are to last as long as the test.
        for database in [&batches, &single] {
            let mut elsewhere = database.elsewhere().await;
            for table in ["leases", "nodes"] {
                let renew = format!("update {table} set until = clock_timestamp() + interval '1 hour'");
                elsewhere.execute(AssertSqlSafe(renew)).await.expect("they are renewed");
            }
        }
        let requests: Vec<Request> = (0..AT_ONCE).map(|chat| world.request(chat)).collect();
        let together = join_all(requests.iter().map(|request| write(&batches.store, request, 0))).await;
        for (chat, (request, (became, seq))) in requests.into_iter().zip(together).enumerate() {
            let (other, other_seq) = write(&rows_only, &request, 1).await;
            assert_eq!(became, other, "in round {round}, chat {chat}");
            is_busy |= became == Became::Stored(Stored::Busy);
            world.note(chat, request, &became, [seq, other_seq]);
        }
    }

    let (mut one, mut other) = (batches.elsewhere().await, single.elsewhere().await);
    let tables: Vec<String> = sqlx::query_scalar(SELECT_TABLES).fetch_all(&mut one).await.expect("tables are listed");
    for table in tables.iter().filter(|table| !NOT_COMPARED.contains(&table.as_str())) {
        let (one, other) = (rows(&mut one, table).await, rows(&mut other, table).await);
        let is_written = WRITTEN.iter().any(|(written, ..)| written == table);
        assert!(!is_written || !one.is_empty(), "{table}");
        assert_eq!(one, other, "{table}");
    }
    assert!(is_busy, "another node has had a slot");
    rows_only.close().await;
}
