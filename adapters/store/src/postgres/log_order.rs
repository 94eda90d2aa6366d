//! The order of the log: up to where it can be read.
//!
//! The number of an entry is taken from `log_seq` before its transaction commits, so that an entry can appear after one with a higher
//! number. A reader goes on after the last number that it has read. So it must not read beyond the *horizon*: the last entry before
//! which none is still to come. It is found in this order:
//!
//! 1. the last number that was taken;
//! 2. the transactions that write, again until all of the first look have ended;
//! 3. the last entry up to that number.
//!
//! One statement reads the number and then takes the first look. Another statement reads the last entry: a statement does not see what was
//! committed while it ran.
//!
//! A transaction has its id before its first number (`write/log.rs` sees to that), and keeps it until others see what it has
//! committed. So a transaction with a number up to that one has ended, or is found in the first look. Transactions of other programs
//! are not waited for. That an entry is committed, and not only its number taken, makes the horizon hold over a crash of the
//! database, which may give numbers again that nothing was stored with.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use rejoinder_core::{StoreError, store::LogSeq};
use sqlx::{PgConnection, postgres::PgRow};
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    error::{late, standby, store_error},
    hosts::Connector,
    values::statement,
};
use crate::records::columns::Columns;

/// The beginning of the `application_name` of each connection that adds entries to the log: `rejoinder-writer/<node>/<lane>`. All nodes
/// and versions have it: the entries of a connection without it are skipped by readers.
pub(super) const WRITER: &str = "rejoinder-writer";

/// How long after a commit of this node the horizon is renewed: for several commits at once.
const COMPANY: Duration = Duration::from_millis(5);

/// How many times the length of a renewal passes before a commit causes the next one. A renewal takes 1 ms, or more while transactions run.
const REST: u32 = 10;

const LONGEST_REST: Duration = Duration::from_millis(100);

/// How long after another node has told of a commit.
const TOLD: Duration = Duration::from_millis(50);

/// How often it is renewed for the commits of other nodes.
const RENEWAL: Duration = Duration::from_secs(1);

/// How long a renewal waits for transactions to end. Then readers get the horizon that is known.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the first renewal waits. A transaction lasts less long, as the database ends it.
const FIRST_PATIENCE: Duration = Duration::from_secs(15);

/// How long the database has for the statements of a renewal.
const DEADLINE: Duration = Duration::from_secs(5);

/// The pauses between two looks at the transactions that write: the first, and the longest. Most transactions end within the first.
const PAUSES: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(20));

/// How many readers can ask at once; more wait.
const ASKING: usize = 64;

type Answer = oneshot::Sender<Result<LogSeq, StoreError>>;

/// The horizon of the log, and the task that renews it.
#[derive(Debug)]
pub(super) struct LogOrder {
    /// The last entry that this node has committed.
    committed: watch::Sender<LogSeq>,
    /// Told that another node may have committed.
    told: Arc<Notify>,
    asked: mpsc::Sender<Answer>,
    horizon: watch::Receiver<LogSeq>,
    closing: CancellationToken,
}

impl LogOrder {
    /// Reads the first horizon, and starts the task on a connection of its own. The task ends when this is closed or dropped.
    pub(super) async fn start(connector: Connector) -> Result<Self, StoreError> {
        let (horizon, renewed) = watch::channel(0);
        let mut follower = Follower { connector, connection: None, end: End::default(), horizon };
        if !follower.renew(FIRST_PATIENCE).await? {
            return Err(StoreError::Unavailable("a transaction of another node does not end".to_owned()));
        }
        let (committed, commits) = watch::channel(0);
        let (asked, questions) = mpsc::channel(ASKING);
        let (told, closing) = (Arc::new(Notify::new()), CancellationToken::new());
        let following = follower.run(commits, Arc::clone(&told), questions);
        tokio::spawn(closing.clone().run_until_cancelled_owned(following));
        Ok(Self { committed, told, asked, horizon: renewed, closing })
    }

    /// Called after each commit that added entries, with the number of the last one.
    pub(super) fn committed(&self, entry: LogSeq) {
        raise(&self.committed, entry);
    }

    /// Called when another node may have added entries.
    pub(super) fn look_soon(&self) {
        self.told.notify_one();
    }

    /// The horizon as it is known. It never becomes less.
    pub(super) fn watch(&self) -> watch::Receiver<LogSeq> {
        self.horizon.clone()
    }

    /// Renews the horizon. It has all entries that were committed before, unless a transaction does not end: a reader then gets the
    /// horizon that is known.
    pub(super) async fn renewed(&self) -> Result<LogSeq, StoreError> {
        let closed = || StoreError::Unavailable("the store is closed".to_owned());
        let (answer, answered) = oneshot::channel();
        self.asked.send(answer).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }

    /// Ends the task, and returns when its connection is closed.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        self.asked.closed().await;
    }
}

/// The task that renews the horizon.
struct Follower {
    connector: Connector,
    /// `None` before the first renewal, and after one that failed.
    connection: Option<PgConnection>,
    end: End,
    horizon: watch::Sender<LogSeq>,
}

impl Follower {
    async fn run(
        mut self,
        mut committed: watch::Receiver<LogSeq>,
        told: Arc<Notify>,
        mut asked: mpsc::Receiver<Answer>,
    ) {
        let mut answers = Vec::new();
        let mut rested = Instant::now();
        let mut due = rested + RENEWAL;
        loop {
            tokio::select! {
                answer = asked.recv() => match answer {
                    Some(answer) => answers.push(answer),
                    None => return,
                },
                changed = committed.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    if *committed.borrow_and_update() > self.end.entry {
                        due = due.min(rested.max(Instant::now() + COMPANY));
                    }
                    continue;
                }
                () = told.notified() => {
                    due = due.min(rested.max(Instant::now() + TOLD));
                    continue;
                }
                () = sleep_until(due) => {}
            }
            while let Ok(answer) = asked.try_recv() {
                answers.push(answer);
            }
            let begun = Instant::now();
            let renewed = self.renew(PATIENCE).await;
            rested = Instant::now() + (begun.elapsed() * REST).min(LONGEST_REST);
            due = if matches!(renewed, Ok(false)) { rested } else { Instant::now() + RENEWAL };
            let horizon = renewed.map(|is_renewed| if is_renewed { self.end.entry } else { *self.horizon.borrow() });
            if let Err(error) = &horizon {
                tracing::debug!(%error, "the end of the log cannot be read");
            }
            for answer in answers.drain(..) {
                // The reader may be gone.
                let _ = answer.send(horizon.clone());
            }
        }
    }

    /// Renews the horizon; `false` if a transaction did not end in time.
    async fn renew(&mut self, patience: Duration) -> Result<bool, StoreError> {
        let end = timeout(patience + DEADLINE, self.read(patience)).await.map_err(|_| late())??;
        let Some(end) = end else { return Ok(false) };
        self.end = end;
        raise(&self.horizon, end.entry);
        Ok(true)
    }

    /// Reads the end of the log. The connection is kept only if each statement was answered.
    async fn read(&mut self, patience: Duration) -> Result<Option<End>, StoreError> {
        let (mut connection, known) = if let Some(connection) = self.connection.take() {
            (connection, self.end)
        } else {
            let mut connection = self.connector.connect().await.map_err(store_error)?;
            let is_standby: bool =
                sqlx::query_scalar(IS_STANDBY).fetch_one(&mut connection).await.map_err(store_error)?;
            if is_standby {
                return Err(standby());
            }
            // The database may have ended without all numbers that were taken.
            (connection, End::default())
        };
        let end = end(&mut connection, known, patience).await?;
        self.connection = Some(connection);
        Ok(end)
    }
}

/// Sets a number that never becomes less.
fn raise(number: &watch::Sender<LogSeq>, to: LogSeq) {
    number.send_if_modified(|known| {
        let is_more = *known < to;
        *known = to.max(*known);
        is_more
    });
}

/// The end of the log, when all transactions with a number up to `number` had ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct End {
    /// The last number that was taken.
    number: LogSeq,
    /// The horizon: the last entry.
    pub(super) entry: LogSeq,
}

/// Reads the end of the log; `None` if a transaction does not end in time. `known` is an earlier one, read from the same server.
///
/// In a transaction it is only to be called before anything is locked or written, and only once.
pub(super) async fn end(
    connection: &mut PgConnection,
    known: End,
    patience: Duration,
) -> Result<Option<End>, StoreError> {
    let rows = statement!(LOOK, WRITER).fetch_all(&mut *connection).await.map_err(store_error)?;
    let number: LogSeq = rows.first().map_or(Ok(0), |row| row.value("number"))?;
    if number == known.number {
        return Ok(Some(known));
    }
    let (mut writing, until, mut pause) = (transactions(&rows)?, Instant::now() + patience, PAUSES.0);
    while !writing.is_empty() {
        if Instant::now() >= until {
            return Ok(None);
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
        let rows = statement!(LOOK_AGAIN, WRITER).fetch_all(&mut *connection).await.map_err(store_error)?;
        let now = transactions(&rows)?;
        writing.retain(|transaction| now.contains(transaction));
    }
    let entry = statement!(LAST_ENTRY, number).fetch_one(connection).await.map_err(store_error)?.value("seq")?;
    Ok(Some(End { number, entry }))
}

/// The ids of the transactions that write.
fn transactions(rows: &[PgRow]) -> Result<BTreeSet<i64>, StoreError> {
    rows.iter().filter_map(|row| row.value::<Option<i64>>("xid").transpose()).collect()
}

/// A standby does not know the transactions of its primary.
const IS_STANDBY: &str = "select pg_is_in_recovery()";

/// The transactions of writers. Every role sees these columns of all connections: no rights are needed. `$process` is an expression that
/// is null (all connections), and is evaluated before the transactions are read.
macro_rules! writing {
    ($process:literal) => {
        concat!(
            "select a.backend_xid::text::bigint as xid from pg_stat_get_activity(",
            $process,
            "::int) as a
            where a.backend_xid is not null and a.pid <> pg_backend_pid() and starts_with(a.application_name, $1)
                and a.datid = (select oid from pg_database where datname = current_database())"
        )
    };
}

const LOOK: &str = concat!(
    "with last as materialized (select case when is_called then last_value else 0 end as number from log_seq)
    select l.number, w.xid from last as l left join lateral (",
    writing!("nullif(l.number, l.number)"),
    ") as w on true"
);

/// In a transaction, a look sees what the first one saw, unless that is cleared.
const LOOK_AGAIN: &str = writing!("nullif(pg_stat_clear_snapshot()::text, '')");

const LAST_ENTRY: &str = "select coalesce(max(seq), 0) as seq from log where seq <= $1";
