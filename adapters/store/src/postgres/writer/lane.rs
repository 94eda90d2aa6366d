//! A lane: a task that writes what it takes from the queue.
//!
//! If the answer to a commit is lost, the lane finds out whether it was committed: with each commit, the row of the lane in the table
//! `writers` gets its number. The lane connects anew, ends the server's process of the lost connection, reads the row, and writes it
//! once more: when that is committed, all before it is, also at a synchronous standby. If it cannot for [`UNSETTLED`], it says that it
//! does not know, and goes on: its next transaction begins when the process has ended.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    StoreError,
    store::{Commit, LogLine, LogSeq, STORED_LINES, Stored},
};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{
    queue::{Caller, Command, Queue, Together, next_together, refuse},
    shared::{DEADLINE, RECHECK, Shared},
};
use crate::{
    postgres::{
        error::{Fault, is_of_statement, late, standby, store_error},
        log_order::WRITER,
        values::statement,
        write::{
            self,
            batch::{self, Applied, Form, Kind, Outcome},
        },
    },
    shared::{
        known::KnownSettings,
        request::{WriteRequest, WriteResult},
    },
};

/// A connection that was not used for so long is tried before a batch is sent on it: its server may have frozen, which no error tells.
const TRIAL_AFTER: Duration = Duration::from_secs(1);

/// How much longer its commit may take.
const COMMIT: Duration = Duration::from_secs(1);

/// How long a lane tries to find out whether its last transaction was committed.
const UNSETTLED: Duration = Duration::from_secs(20);

/// How long a statement may take for which the server waits for nobody.
const CONNECT: Duration = Duration::from_secs(2);

/// How long the server waits for the end of one of its processes, in milliseconds.
const TERMINATION: i64 = 5000;

/// How often a request is tried while other transactions are in its way.
const TRIES: u32 = 5;

/// How long the second try waits. Each further one waits twice as long.
const PAUSE: Duration = Duration::from_millis(10);

/// A task that writes.
pub(super) struct Lane {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    /// Whether it is to end.
    is_closed: bool,
    number: i64,
    /// The connection, between two transactions.
    idle: Option<Open>,
    /// When and why it could not connect.
    unreachable: Option<(Instant, StoreError)>,
    /// The server's process of a lost connection. It may still hold locks, or commit.
    left: Option<Process>,
    /// How many transactions it has tried to commit.
    batch: i64,
    /// The numbers of the requests that were refused in the last transaction that was committed, once that was asked.
    refused: Vec<i64>,
    /// The settings of runs that are stored, as of the last commit.
    settings: KnownSettings,
}

/// A connection.
struct Open {
    connection: PgConnection,
    process: Process,
    /// When it was last known to work.
    used: Instant,
}

/// The server's process of a connection. The number of one that has ended can be given to another one.
#[derive(Clone)]
struct Process {
    pid: i32,
    since: String,
}

/// What a transaction writes.
#[derive(Clone, Copy)]
enum Work<'a> {
    /// All of these, or none.
    Rows(&'a [WriteRequest]),
    Batch(Kind, &'a [WriteRequest]),
}

impl<'a> Work<'a> {
    const fn requests(self) -> &'a [WriteRequest] {
        match self {
            Self::Rows(requests) | Self::Batch(_, requests) => requests,
        }
    }
}

/// What a transaction has written.
struct Written {
    outcomes: Vec<Outcome>,
    /// The place of the last entry that it added to the log of events.
    logged: Option<LogSeq>,
    /// Whether what agents are owed has changed.
    noticed: bool,
    /// Lines that it has stored, for standard error.
    told: Vec<LogLine>,
}

/// Why a transaction failed.
struct Failure {
    error: StoreError,
    /// Whether it has changed nothing, and another try may succeed at once.
    may_repeat: bool,
    /// Whether its requests took too long, which tells nothing of others.
    is_of_requests: bool,
}

impl Failure {
    const fn of(error: StoreError) -> Self {
        Self { error, may_repeat: false, is_of_requests: false }
    }
}

impl Lane {
    pub(super) fn new(shared: Arc<Shared>, queue: Arc<Queue>, number: i64) -> Self {
        Self {
            shared,
            queue,
            is_closed: false,
            number,
            idle: None,
            unreachable: None,
            left: None,
            batch: 0,
            refused: Vec::new(),
            settings: KnownSettings::default(),
        }
    }

    pub(super) async fn run(mut self) {
        let (panicked, queue) = (self.shared.panicked.clone(), Arc::clone(&self.queue));
        while !self.is_closed
            && let Some(Some(Together { kind, commands, writing })) =
                panicked.run_until_cancelled(next_together(&queue)).await
        {
            let mut batch = Vec::new();
            for command in commands {
                match command {
                    Command::Write(mut requests, since, answer) if kind != Kind::Rows => {
                        batch.extend(requests.pop().map(|request| (request, Caller { since, answer })));
                    }
                    Command::Write(requests, since, answer) => {
                        self.write_for(&requests, Caller { since, answer }).await;
                    }
                    Command::Background(requests) => self.write_background(&requests).await,
                    Command::Close => self.is_closed = true,
                }
            }
            self.write_batch(kind, batch).await;
            drop(writing);
        }
        self.close().await;
    }

    /// Writes requests together, and those that are not for a batch alone.
    async fn write_batch(&mut self, kind: Kind, batch: Vec<(WriteRequest, Caller)>) {
        let (mut alone, mut batch): (Vec<_>, Vec<_>) = batch.into_iter().partition(|(_, caller)| caller.is_late());
        // Requests that leave a batch may hinder the others of it once.
        for _ in 0..2 {
            if batch.is_empty() {
                break;
            }
            let (requests, callers): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            let outcomes = match self.perform(Work::Batch(kind, &requests)).await {
                Ok(outcomes) => outcomes,
                // If the connection is still there, what fails may be one of them: others are in its way.
                Err(error) if error.is_outage() && self.idle.is_none() => {
                    for caller in callers {
                        caller.answer(Err(error.clone()));
                    }
                    batch = Vec::new();
                    break;
                }
                Err(error) => {
                    tracing::debug!(%error, requests = requests.len(), "a batch failed");
                    requests.iter().map(|_| Outcome::Alone).collect()
                }
            };
            batch = Vec::new();
            for ((request, caller), outcome) in requests.into_iter().zip(callers).zip(outcomes) {
                match outcome {
                    Outcome::Done(result) => caller.answer(Ok(vec![result])),
                    Outcome::Alone => alone.push((request, caller)),
                    Outcome::Again => batch.push((request, caller)),
                }
            }
        }
        for (request, caller) in alone.into_iter().chain(batch) {
            self.write_for(&[request], caller).await;
        }
    }

    /// Writes all of `requests` in one transaction, and tells the caller.
    async fn write_for(&mut self, requests: &[WriteRequest], caller: Caller) {
        // After an outage many wait, and most of their callers will try again.
        let result = if caller.is_late() { Err(late()) } else { self.write(requests).await };
        caller.answer(result);
    }

    /// Writes all of `requests` in one transaction. The results are in the order of the requests.
    async fn write(&mut self, requests: &[WriteRequest]) -> Result<Vec<WriteResult>, StoreError> {
        let outcomes = self.perform(Work::Rows(requests)).await?;
        let result = |outcome| match outcome {
            Outcome::Done(result) => Ok(result),
            Outcome::Alone | Outcome::Again => Err(StoreError::Failed("a request was not written".to_owned())),
        };
        outcomes.into_iter().map(result).collect()
    }

    /// The outcomes are in the order of the requests.
    async fn perform(&mut self, work: Work<'_>) -> Result<Vec<Outcome>, StoreError> {
        let requests = work.requests();
        #[cfg(feature = "crash-points")]
        if requests.iter().any(|request| matches!(request, WriteRequest::Accept { events, .. } if !events.is_empty())) {
            assert!(!rejoinder_core::crash_point_is_reached("writing_events"), "a crash point of a test");
        }
        let started = Instant::now();
        let result = self.tried(work, started + DEADLINE).await;
        #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
        metrics::histogram!("rejoinder_store_batch_requests").record(requests.len() as f64);
        metrics::histogram!("rejoinder_store_batch_seconds").record(started.elapsed());
        let Written { outcomes, logged, noticed, told } =
            result.map_err(|Failure { error, is_of_requests, .. }| {
                if !is_of_requests {
                    self.shared.failed(&error);
                }
                error
            })?;
        if let Some(last) = logged {
            self.shared.log_order.committed(last);
        }
        if noticed {
            self.shared.noticed.send_replace(());
        }
        for LogLine { message, fields, .. } in &told {
            tracing::error!(target: STORED_LINES, fields = %serde_json::Value::from(fields.clone()), "{message}");
        }
        Ok(outcomes)
    }

    /// Writes requests that nobody waits for. If they cannot be written in one transaction although the database is available, each
    /// is written in its own.
    async fn write_background(&mut self, requests: &[WriteRequest]) {
        if requests.is_empty() {
            return;
        }
        let Err(error) = self.write(requests).await else { return };
        tracing::debug!(%error, requests = requests.len(), "background writes failed");
        // What may be written is not written again.
        if requests.len() > 1 && !error.is_outage() {
            for request in requests {
                if let Err(error) = self.write(std::slice::from_ref(request)).await {
                    tracing::debug!(%error, "a background write failed");
                }
            }
        }
    }

    /// Repeats a transaction while others are in its way. Not while writes fail: then many wait, and each is tried once.
    async fn tried(&mut self, work: Work<'_>, until: Instant) -> Result<Written, Failure> {
        let (mut tries, mut pause) = (1, PAUSE);
        loop {
            let result = match work {
                Work::Batch(Kind::Commit, requests) => self.execute(requests, until).await,
                _ => self.transact(work, until).await,
            };
            match result {
                Ok(written) => return Ok(written),
                Err(Failure { may_repeat: true, error, .. })
                    if tries < TRIES && Instant::now() + pause < until && self.shared.trouble.error().is_none() =>
                {
                    tracing::debug!(%error, tries, "a transaction is repeated");
                    sleep(pause).await;
                    (tries, pause) = (tries + 1, pause * 2);
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn transact(&mut self, work: Work<'_>, until: Instant) -> Result<Written, Failure> {
        let begun = timeout_at(until, self.begin()).await.unwrap_or_else(|_| Err(late()));
        let mut open = begun.map_err(Failure::of)?;
        let mut transaction = write::Transaction::new(&mut open.connection, &mut self.settings);
        let working = async {
            match work {
                Work::Rows(requests) => {
                    let results = write::requests(&mut transaction, requests).await?;
                    Ok::<_, StoreError>(results.into_iter().map(Outcome::Done).collect())
                }
                Work::Batch(kind, requests) => batch::write(&mut transaction, kind, requests).await,
            }
        };
        let outcomes = timeout_at(until, working).await;
        let write::Transaction { logged, noticed, told, fault, .. } = transaction;
        match outcomes {
            Ok(Ok(outcomes)) if is_conflict(&outcomes) => {
                // No settings were inserted: they are still known. If the rollback fails, the connection is closed, and nothing is written
                // either.
                self.roll_back(open).await;
                Ok(Written { outcomes, logged: None, noticed: false, told: Vec::new() })
            }
            Ok(Ok(outcomes)) => self.commit(open, until, Written { outcomes, logged, noticed, told }).await,
            Ok(Err(error)) => Err(self.fail(open, fault, error).await),
            Err(_) => {
                // If the database is gone, the next transaction finds out.
                self.leave(open);
                Err(Failure { is_of_requests: true, ..Failure::of(late()) })
            }
        }
    }

    /// Writes a batch of transitions by one statement, which is a transaction.
    async fn execute(&mut self, requests: &[WriteRequest], until: Instant) -> Result<Written, Failure> {
        let written = |outcomes, logged| Written { outcomes, logged, noticed: false, told: Vec::new() };
        let form = Form::of(requests, &mut self.settings);
        if form.is_empty() {
            return Ok(written(Applied::outcomes(&[], requests.len()), None));
        }
        let opened = timeout_at(until, self.ready()).await.unwrap_or_else(|_| Err(late()));
        let mut open = opened.map_err(Failure::of)?;
        self.batch += 1;
        let (included, batch) = (form.included.clone(), self.batch);
        let statement = form.alone(self.shared.node, self.number, batch);
        let (error, is_late) = match timeout_at(until, statement.fetch_all(&mut open.connection)).await {
            Ok(Ok(rows)) => {
                self.keep(open);
                let applied: Result<Vec<Applied>, StoreError> = rows.iter().map(Applied::read).collect();
                let applied = applied.map_err(Failure::of)?;
                let logged = applied.first().and_then(|applied| applied.logged);
                return Ok(written(Applied::outcomes(&applied, requests.len()), logged));
            }
            Ok(Err(error)) if is_of_statement(&error) => {
                return Err(self.fail(open, Fault::of(&error), store_error(error)).await);
            }
            Ok(Err(error)) => (store_error(error), false),
            Err(_) => (late(), true),
        };
        tracing::debug!(%error, lane = self.number, batch, "the answer to a batch was lost");
        self.leave(open);
        match self.was_committed().await {
            // The log is read up to its entries a little later.
            Some(true) => Ok(written(Outcome::committed(&included, &self.refused), None)),
            Some(false) => Err(Failure { may_repeat: true, is_of_requests: is_late, ..Failure::of(error) }),
            None => Err(Failure::of(StoreError::Unknown(error.to_string()))),
        }
    }

    /// Begins a transaction, on a new connection if there is none, or the last one was lost while nothing was written.
    async fn begin(&mut self) -> Result<Open, StoreError> {
        if let Some(mut open) = self.idle.take() {
            if let Ok(Ok(_)) = timeout(CONNECT, open.connection.execute(BEGIN)).await {
                return Ok(open);
            }
            tracing::debug!(lane = self.number, "the connection was lost");
            self.leave(open);
        }
        let mut open = self.reconnect().await?;
        open.connection.execute(BEGIN).await.map_err(store_error)?;
        Ok(open)
    }

    /// A connection on which no transaction has begun. As [`begin`](Self::begin).
    async fn ready(&mut self) -> Result<Open, StoreError> {
        if let Some(mut open) = self.idle.take() {
            if open.used.elapsed() < TRIAL_AFTER || matches!(timeout(CONNECT, open.connection.ping()).await, Ok(Ok(())))
            {
                return Ok(open);
            }
            tracing::debug!(lane = self.number, "the connection was lost");
            self.leave(open);
        }
        self.reconnect().await
    }

    /// Keeps a connection for the next transaction.
    fn keep(&mut self, open: Open) {
        self.idle = Some(Open { used: Instant::now(), ..open });
    }

    async fn reconnect(&mut self) -> Result<Open, StoreError> {
        // While the other lane does not reach the database either, each request that tries delays the next ones.
        if let Some((at, error)) = &self.unreachable
            && at.elapsed() < RECHECK
            && *self.shared.asking.borrow() > 0
        {
            return Err(error.clone());
        }
        self.connect().await.inspect_err(|error| {
            self.unreachable = Some((Instant::now(), error.clone()));
        })
    }

    /// Connects. After that, nothing of a lost connection is left. A server in recovery is refused: what it does not show may be
    /// committed all the same.
    async fn connect(&mut self) -> Result<Open, StoreError> {
        let name = format!("{WRITER}/{}/{}", self.shared.node, self.number);
        let connector = self.shared.connector.clone().named(name);
        let connecting = async {
            let mut connection = connector.connect().await?;
            let (pid, since, is_standby): (i32, String, bool) =
                sqlx::query_as(SELECT_PROCESS).fetch_one(&mut connection).await?;
            let open = Open { connection, process: Process { pid, since }, used: Instant::now() };
            Ok::<_, sqlx::Error>((open, is_standby))
        };
        let connected = timeout(connector.patience(), connecting).await.map_err(|_| late())?;
        // Whatever the reason is, without a connection nothing can be written.
        let (mut open, is_standby) = connected.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        if is_standby {
            return Err(standby());
        }
        if let Some(Process { pid, since }) = &self.left {
            let terminate = sqlx::query_scalar(TERMINATE).bind(pid).bind(since).bind(TERMINATION);
            let is_gone: Option<bool> = terminate.fetch_optional(&mut open.connection).await.map_err(store_error)?;
            if is_gone == Some(false) {
                let what = "the database still works for a connection that was lost";
                return Err(StoreError::Unavailable(what.to_owned()));
            }
            self.left = None;
        }
        Ok(open)
    }

    /// Commits. If the answer is lost, the result is known all the same.
    async fn commit(&mut self, mut open: Open, until: Instant, written: Written) -> Result<Written, Failure> {
        self.batch += 1;
        let (node, lane, batch) = (self.shared.node, self.number, self.batch);
        // After an error that nobody reported this fails, too. `commit` alone would roll back, and return no error.
        let commit = AssertSqlSafe(format!(
            "insert into writers (node, lane, batch, refused, at) values ('{node}', {lane}, {batch}, '{{}}', now())
            on conflict (node, lane) do update set batch = excluded.batch, refused = excluded.refused, at = excluded.at;
            commit"
        ));
        let error = match timeout_at(until + COMMIT, open.connection.execute(commit)).await {
            Ok(Ok(_)) => {
                self.keep(open);
                return Ok(written);
            }
            Ok(Err(error)) if is_of_statement(&error) => {
                return Err(self.fail(open, Fault::of(&error), store_error(error)).await);
            }
            Ok(Err(error)) => store_error(error),
            Err(_) => late(),
        };
        tracing::debug!(%error, lane, batch, "the answer to a commit was lost");
        self.leave(open);
        match self.was_committed().await {
            Some(true) => Ok(written),
            Some(false) => Err(Failure { may_repeat: true, ..Failure::of(error) }),
            None => Err(Failure::of(StoreError::Unknown(error.to_string()))),
        }
    }

    /// Whether the last transaction was committed, whose answer was lost. Waits until the database tells. While all lanes do, what is
    /// queued is refused. `None` if the database does not tell for too long, or the store is closed before.
    async fn was_committed(&mut self) -> Option<bool> {
        let error = match self.is_committed().await {
            Ok(is_committed) => return Some(is_committed),
            Err(error) => error,
        };
        let (shared, queue) = (Arc::clone(&self.shared), Arc::clone(&self.queue));
        shared.asking.send_modify(|lanes| *lanes += 1);
        let is_committed = tokio::select! {
            is_committed = timeout(UNSETTLED, self.is_committed_at_last()) => is_committed.ok().flatten(),
            () = refuse(&queue, shared.asking.subscribe(), &error) => {
                self.is_closed = true;
                None
            }
        };
        shared.asking.send_modify(|lanes| *lanes -= 1);
        is_committed
    }

    /// Asks until the database tells.
    async fn is_committed_at_last(&mut self) -> Option<bool> {
        let ended = self.shared.ended.clone();
        loop {
            ended.run_until_cancelled(sleep(RECHECK)).await?;
            if let Ok(is_committed) = self.is_committed().await {
                return Some(is_committed);
            }
        }
    }

    async fn is_committed(&mut self) -> Result<bool, StoreError> {
        let last = timeout(DEADLINE, self.last_batch()).await.unwrap_or_else(|_| Err(late()));
        last.map(|last| last == Some(self.batch)).inspect_err(|error| self.shared.failed(error))
    }

    /// The number of the last transaction of this lane that was committed.
    async fn last_batch(&mut self) -> Result<Option<i64>, StoreError> {
        let mut open = self.connect().await?;
        let (node, lane) = (self.shared.node.as_uuid(), self.number);
        let select = sqlx::query_as(SELECT_BATCH).bind(node).bind(lane);
        let last: Option<(i64, Vec<i64>)> = select.fetch_optional(&mut open.connection).await.map_err(store_error)?;
        let (batch, refused) = last.unzip();
        if batch == Some(self.batch) {
            // The end of its process has also ended its wait for a standby that confirms each commit. One that confirms a later commit
            // has this one, too. While nothing does, the next connection ends this one.
            self.left = Some(open.process.clone());
            let later = sqlx::query(TOUCH).bind(node).bind(lane).execute(&mut open.connection).await;
            later.map_err(store_error)?;
            self.left = None;
        }
        self.keep(open);
        self.refused = refused.unwrap_or_default();
        Ok(batch)
    }

    /// Ends a transaction after an error in it.
    async fn fail(&mut self, open: Open, fault: Option<Fault>, error: StoreError) -> Failure {
        let is_open = if fault.is_some() {
            // Another server may be found on which can be written.
            self.leave(open);
            false
        } else {
            // Some may have been inserted.
            self.settings = KnownSettings::default();
            self.roll_back(open).await
        };
        // On a connection that is still open, other transactions were most likely in the way. If it is something else, a few tries do
        // no harm.
        let may_repeat = fault == Some(Fault::Stale) || (is_open && matches!(error, StoreError::Unavailable(_)));
        Failure { may_repeat, ..Failure::of(error) }
    }

    /// Rolls a transaction back. `false` if the connection is closed in place of that.
    async fn roll_back(&mut self, mut open: Open) -> bool {
        let is_open = matches!(timeout(CONNECT, open.connection.execute("rollback")).await, Ok(Ok(_)));
        if is_open {
            self.keep(open);
        } else {
            self.leave(open);
        }
        is_open
    }

    /// Closes a connection that was lost, or on which a statement did not end.
    fn leave(&mut self, open: Open) {
        self.settings = KnownSettings::default();
        self.left = Some(open.process);
    }

    /// Removes the lane's row, and closes its connection.
    async fn close(&mut self) {
        let Some(Open { mut connection, .. }) = self.idle.take() else { return };
        let (node, lane) = (self.shared.node.as_uuid(), self.number);
        let closing = async {
            statement!(DELETE, node, lane).execute(&mut connection).await?;
            connection.close().await
        };
        if let Ok(Err(error)) = timeout(CONNECT, closing).await {
            tracing::debug!(%error, lane, "closing a connection failed");
        }
    }
}

/// Whether nothing may be written, because other transitions came first, another node has the lease, another turn has a slot, or the
/// requests are not for a batch.
fn is_conflict(outcomes: &[Outcome]) -> bool {
    outcomes.iter().all(|outcome| match outcome {
        Outcome::Done(WriteResult::Committed(commit)) => *commit != Commit::Done,
        Outcome::Done(WriteResult::Accepted(stored)) => stored.contains(&Stored::Busy),
        Outcome::Done(_) => false,
        Outcome::Alone | Outcome::Again => true,
    })
}

const BEGIN: &str = "begin";

const SELECT_PROCESS: &str = "
    select pid, backend_start::text, pg_is_in_recovery() from pg_stat_activity where pid = pg_backend_pid()";

/// Whether a process ended in time; no row if it had ended before.
const TERMINATE: &str = "
    select pg_terminate_backend(pid, $3) from pg_stat_activity where pid = $1 and backend_start::text = $2";

const SELECT_BATCH: &str = "select batch, refused from writers where node = $1 and lane = $2";

const TOUCH: &str = "update writers set at = now() where node = $1 and lane = $2";

const DELETE: &str = "delete from writers where node = $1 and lane = $2";
