//! Measures the search in a long history, and what indexing it costs.
//!
//! `cargo run --release -p rejoinder-store --example search [lines] [directory] [turns]`
//!
//! In one step, so many `turns` are indexed.
//!
//! The words of the lines are as frequent as in a language: the second one half as frequent as the first, and so on. The first
//! word is in most lines.

use std::time::{Duration, Instant};

use rejoinder_core::{
    ChannelId, ConversationId,
    store::{SearchFilter, SearchQuery, SearchStore, StoreState},
};
use rejoinder_store::{OpenOptions, SqliteStore};
use rusqlite::{Connection, params};
use uuid::Uuid;

/// The number of different words.
const WORDS: usize = 50_000;

/// The number of words in a line, on average.
const LENGTH: u64 = 15;

/// The conversations that the turns are in. The last one is the only one of its channel.
const CONVERSATIONS: i64 = 1000;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let lines: i64 = arguments.next().map_or(1_000_000, |text| text.parse().expect("lines is a number"));
    let directory = arguments.next().map_or_else(tempfile::tempdir, tempfile::tempdir_in).expect("a directory is made");
    let step: u32 = arguments.next().map_or(100, |text| text.parse().expect("turns is a number"));
    let path = directory.path().join("search.db");
    let open = async || SqliteStore::open(OpenOptions::new(&path)).await.expect("the store opens");
    let size = || path.metadata().map_or(0, |file| file.len() / 1_000_000);
    open().await.close().await;
    fill(&Connection::open(&path).expect("the database opens"), lines / 2);
    println!("{lines} lines: {} MB", size());

    let store = open().await;
    index(&store, step).await;
    store.close().await;
    println!("with the index: {} MB", size());

    let store = open().await;
    let (common, second, rare) = (word(0), word(1), word(WORDS - 2));
    let prefix = |length: usize| word(0)[..length].to_owned();
    for (what, query) in [
        ("a common word", format!("{common} ")),
        ("a common word, quoted", format!("\"{common}\"")),
        ("a rare word", rare.clone()),
        ("a word that does not occur", "qqqqq".to_owned()),
        ("two common words", format!("{common} {second}")),
        ("a common and a rare word", format!("{common} {rare}")),
        ("two rare words", format!("{rare} {}", word(WORDS - 3))),
        ("a phrase of common words", format!("\"{common} {second}\"")),
        ("one letter", prefix(1)),
        ("two letters", prefix(2)),
        ("three letters", prefix(3)),
        ("two common words, the second of them two letters", format!("{second} {}", prefix(2))),
    ] {
        let query = SearchQuery::parse(&query).expect("it has a word");
        let all = SearchFilter { query, channels: None, conversations: None, session: None, before: None, limit: 51 };
        let channels = Some(vec![ChannelId::new("webhook", "rare")]);
        let conversations = Some(vec![ConversationId::from(Uuid::from_u128(1))]);
        measure(&store, what, &all).await;
        measure(&store, "  from the middle", &SearchFilter { before: Some(lines), ..all.clone() }).await;
        measure(&store, "  in a channel with few of them", &SearchFilter { channels, ..all.clone() }).await;
        measure(&store, "  in one conversation", &SearchFilter { conversations, ..all.clone() }).await;
    }
    store.close().await;
}

async fn measure(store: &SqliteStore, what: &str, filter: &SearchFilter) {
    let (mut times, mut found) = (Vec::new(), 0);
    for _ in 0..21 {
        let started = Instant::now();
        found = store.search(filter).await.expect("it is searched").len();
        times.push(started.elapsed());
    }
    times.sort_unstable();
    println!(
        "{what:50} {found:3} found in {:?} (median), {:?} (worst)",
        times[times.len() / 2],
        times[times.len() - 1]
    );
}

async fn index(store: &SqliteStore, step: u32) {
    let (started, mut times) = (Instant::now(), Vec::new());
    loop {
        let begun = Instant::now();
        let through = store.index(step).await.expect("lines are indexed");
        times.push(begun.elapsed());
        if through > 0 {
            break;
        }
    }
    times.sort_unstable();
    let all: Duration = times.iter().sum();
    println!(
        "indexed in {:?}: a step of {step} turns takes {:?} (mean), {:?} (median), {:?} (99 %), {:?} (worst)",
        started.elapsed(),
        all / u32::try_from(times.len()).expect("there are not so many"),
        times[times.len() / 2],
        times[times.len() * 99 / 100],
        times[times.len() - 1],
    );
}

/// A word by its rank.
fn word(rank: usize) -> String {
    const CONSONANTS: &[u8] = b"tnsrhldcumfpgwybvk";
    const VOWELS: &[u8] = b"eaoiu";
    let (mut rest, mut word) = (rank + 90, String::new());
    while rest > 0 {
        word.push(char::from(CONSONANTS[rest % CONSONANTS.len()]));
        rest /= CONSONANTS.len();
        word.push(char::from(VOWELS[rest % VOWELS.len()]));
        rest /= VOWELS.len();
    }
    word
}

/// Numbers that look random, and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn line(&mut self, words: &[String]) -> String {
        let count = 1 + self.next() % (2 * LENGTH);
        let mut line = String::new();
        for _ in 0..count {
            // The logarithm of the rank is even.
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a rank"
            )]
            let rank = (words.len() as f64).powf((self.next() >> 11) as f64 / (1_u64 << 53) as f64) as usize - 1;
            line.push_str(&words[rank.min(words.len() - 1)]);
            line.push(' ');
        }
        line
    }
}

/// Fills a database with turns that have ended and are not indexed.
fn fill(database: &Connection, turns: i64) {
    let words: Vec<String> = (0..WORDS).map(word).collect();
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    database
        .execute_batch("pragma synchronous = off; pragma foreign_keys = off; pragma cache_size = -200000; begin")
        .expect("it begins");
    let id = |kind: u128, number: i64| Uuid::from_u128(kind << 64 | u128::try_from(number).expect("it is positive"));
    let channel = |conversation| if conversation == CONVERSATIONS - 1 { "webhook.rare" } else { "telegram.main" };
    let mut insert = database
        .prepare("insert into conversations (id, channel, chat, thread, created_at) values (?, ?, ?, '', 0)")
        .expect("it is prepared");
    for number in 0..CONVERSATIONS {
        insert.execute(params![id(0, number), channel(number), format!("chat {number}")]).expect("it is inserted");
    }
    let prepare = |sql| database.prepare(sql).expect("it is prepared");
    let mut event = prepare(
        "insert into events (seq, id, channel, chat, thread, external_id, revision, turn_id, text, details, received_at)
        values (?6, ?1, ?2, '', '', hex(?1), 0, ?3, ?4, '{}', ?5)",
    );
    let mut turn = prepare(
        "insert into turns (id, seq, event, conversation_id, session_id, agent, accepted_at, channel, person, next_agent,
            version, owed, state, ended_at, rank)
        values (?1, ?2, ?2, ?3, ?4, 'main', ?5, ?6, 'ann', 'main', 2, 1, 'settled', ?5, ?2)",
    );
    let mut line = prepare(
        "insert into transcript (session_id, seq, claim, turn_id, speaker, text, at) values
            (?1, ?2, 0, ?3, 'person', null, ?5), (?1, ?2, 1, ?3, 'agent', ?4, ?5)",
    );
    for seq in 1..=turns {
        let (number, at) = (seq % CONVERSATIONS, 1_750_000_000_000 + seq * 1000);
        let (conversation, channel) = (id(0, number), channel(number));
        let (event_id, turn_id, session) = (id(1, seq), id(2, seq), id(3, number));
        event.execute(params![event_id, channel, turn_id, numbers.line(&words), at, seq]).expect("it is inserted");
        turn.execute(params![turn_id, seq, conversation, session, at, channel]).expect("it is inserted");
        line.execute(params![session, seq, turn_id, numbers.line(&words), at]).expect("it is inserted");
    }
    database
        .execute_batch(
            "insert into log (at, topic, data) values (0, 'channel.up', '{}');
            update search_progress set logged = 1, turn = 0; commit",
        )
        .expect("it is committed");
}
