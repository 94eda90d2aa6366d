//! The queue of the lanes: who waits for what, and which requests are taken together.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use rejoinder_core::StoreError;
use tokio::{
    sync::{Mutex, mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};

use super::shared::{DEADLINE, LANES};
use crate::{
    postgres::write::batch::Kind,
    shared::request::{WriteRequest, WriteResult},
};

/// How many requests are written together, at most.
const BATCH: usize = 64;

/// Among how many of the requests that wait a batch is looked for.
const LOOKED_AT: usize = 256;

/// How many requests a batch should have while another lane writes: with fewer, it waits for the end of that.
const FEW: usize = 16;

/// How long it waits, at most.
const GATHERING: Duration = Duration::from_millis(5);

/// Where the results of requests go.
pub(super) type Answer = oneshot::Sender<Result<Vec<WriteResult>, StoreError>>;

#[derive(Debug)]
pub(super) enum Command {
    /// Requests of which all are written, or none, and since when they wait.
    Write(Vec<WriteRequest>, Instant, Answer),
    /// Requests that nobody waits for.
    Background(Vec<WriteRequest>),
    /// Ends a lane.
    Close,
}

/// A caller that waits for the results of requests, and since when.
pub(super) struct Caller {
    pub(super) since: Instant,
    pub(super) answer: Answer,
}

impl Caller {
    pub(super) fn is_late(&self) -> bool {
        self.since.elapsed() >= DEADLINE
    }

    pub(super) fn answer(self, result: Result<Vec<WriteResult>, StoreError>) {
        // It may be gone.
        let _ = self.answer.send(result);
    }
}

/// The queue that the lanes share.
pub(super) type Queue = Mutex<Commands>;

pub(super) struct Commands {
    receiver: mpsc::Receiver<Command>,
    /// Those that a lane has looked at, in order.
    waiting: VecDeque<Waiting>,
    /// Whether requests are written together.
    has_batches: bool,
    /// How many lanes write batches.
    writing: watch::Sender<usize>,
}

/// What a lane writes together.
pub(super) struct Together {
    pub(super) kind: Kind,
    pub(super) commands: Vec<Command>,
    /// While the lane has this, it counts as one that writes; `None` if it has no batch: that may take long, and one caller waits for it at
    /// most.
    pub(super) writing: Option<Writing>,
}

/// Counts a lane as one that writes a batch.
pub(super) struct Writing(watch::Sender<usize>);

impl Writing {
    fn begin(lanes: &watch::Sender<usize>) -> Self {
        lanes.send_modify(|lanes| *lanes += 1);
        Self(lanes.clone())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.send_modify(|lanes| *lanes -= 1);
    }
}

/// A command that a lane has looked at.
struct Waiting {
    command: Command,
    kind: Kind,
    /// What it writes: see [`Kind::of`].
    keys: Vec<u64>,
}

impl Commands {
    pub(super) fn new(receiver: mpsc::Receiver<Command>, has_batches: bool) -> Self {
        Self { receiver, waiting: VecDeque::new(), has_batches, writing: watch::Sender::new(0) }
    }

    /// Adds a command to those that wait.
    fn add(&mut self, command: Command) {
        let (kind, keys) = if let Command::Write(requests, ..) = &command
            && let [request] = &requests[..]
            && self.has_batches
        {
            Kind::of(request)
        } else {
            (Kind::Rows, Vec::new())
        };
        self.waiting.push_back(Waiting { command, kind, keys });
    }

    /// The next command.
    async fn next(&mut self) -> Option<Command> {
        match self.waiting.pop_front() {
            Some(waiting) => Some(waiting.command),
            None => self.receiver.recv().await,
        }
    }

    /// The next command, and those behind it that can be written with it. No request passes an earlier one that writes the same.
    async fn next_together(&mut self) -> Option<Together> {
        if self.waiting.is_empty() {
            let first = self.receiver.recv().await?;
            self.add(first);
        }
        while self.waiting.len() < LOOKED_AT
            && let Ok(command) = self.receiver.try_recv()
        {
            self.add(command);
        }
        self.gather().await;
        let Waiting { command, kind, keys } = self.waiting.pop_front()?;
        let mut together = vec![command];
        if kind == Kind::Rows {
            return Some(Together { kind, commands: together, writing: None });
        }
        let writing = Some(Writing::begin(&self.writing));
        let (mut taken, mut at): (HashSet<u64>, usize) = (keys.into_iter().collect(), 0);
        while together.len() < BATCH
            && let Some(other) = self.waiting.get(at)
        {
            let is_taken = other.kind == kind && other.keys.iter().all(|key| !taken.contains(key));
            taken.extend(&other.keys);
            if is_taken {
                together.extend(self.waiting.remove(at).map(|waiting| waiting.command));
            } else {
                at += 1;
            }
        }
        Some(Together { kind, commands: together, writing })
    }

    /// While another lane writes a batch, waits until there is enough for one: one of eight costs the database hardly more than one of four.
    async fn gather(&mut self) {
        let (mut writing, until) = (self.writing.subscribe(), Instant::now() + GATHERING);
        while self.waiting.len() < FEW && self.waiting.iter().all(|waiting| waiting.kind != Kind::Rows) {
            let command = tokio::select! {
                biased;
                // The sender is here.
                _ = writing.wait_for(|lanes| *lanes == 0) => return,
                command = self.receiver.recv() => command,
                () = sleep_until(until) => return,
            };
            let Some(command) = command else { return };
            self.add(command);
        }
    }
}

/// Takes the next command.
pub(super) async fn next(queue: &Queue) -> Option<Command> {
    queue.lock().await.next().await
}

/// Takes the next command, and those that can be written with it.
pub(super) async fn next_together(queue: &Queue) -> Option<Together> {
    queue.lock().await.next_together().await
}

/// Refuses what is queued while no lane takes it, until one is to end.
pub(super) async fn refuse(queue: &Queue, mut asking: watch::Receiver<i64>, error: &StoreError) {
    while asking.wait_for(|lanes| *lanes == LANES).await.is_ok() {
        let command = tokio::select! {
            command = next(queue) => command,
            _ = asking.changed() => continue,
        };
        match command {
            Some(Command::Write(_, _, answer)) => {
                // The caller may be gone.
                let _ = answer.send(Err(error.clone()));
            }
            Some(Command::Background(requests)) => {
                tracing::debug!(%error, requests = requests.len(), "background writes are dropped");
            }
            Some(Command::Close) | None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{
        Clock, Expectation, Obligation, Policy, SystemClock, TurnId,
        store::{Transition, TurnChange},
    };
    use tokio::time::sleep;

    use super::*;

    fn change(turn: TurnId) -> WriteRequest {
        let at = SystemClock.now();
        let obligation = Obligation::open(Expectation::Answer, &Policy::default(), None, at);
        let turns = vec![TurnChange { turn, expected: 1, obligation, at }];
        WriteRequest::Commit(Box::new(Transition { turns, ..Transition::default() }))
    }

    /// What lanes take of these requests, one after the other.
    async fn taken(has_batches: bool, requests: Vec<WriteRequest>) -> Vec<(Kind, usize)> {
        let (sender, receiver) = mpsc::channel(requests.len().max(1));
        for request in requests {
            let (answer, _) = oneshot::channel();
            sender.send(Command::Write(vec![request], Instant::now(), answer)).await.expect("it is queued");
        }
        drop(sender);
        let (mut commands, mut taken) = (Commands::new(receiver, has_batches), Vec::new());
        while let Some(Together { kind, commands: together, .. }) = commands.next_together().await {
            taken.push((kind, together.len()));
        }
        taken
    }

    #[tokio::test]
    async fn requests_that_write_the_same_are_not_taken_together() {
        let [one, other] = [(); 2].map(|()| TurnId::new(SystemClock.now()));
        let requests = || vec![change(one), WriteRequest::Probe { room: 0 }, change(one), change(other), change(one)];

        let expected = [(Kind::Settling, 2), (Kind::Rows, 1), (Kind::Settling, 1), (Kind::Settling, 1)];
        assert_eq!(taken(true, requests()).await, expected);
        assert_eq!(taken(false, requests()).await, [(Kind::Rows, 1); 5]);
    }

    #[tokio::test]
    async fn a_batch_is_not_too_large() {
        let requests = (0..=BATCH).map(|_| change(TurnId::new(SystemClock.now()))).collect();

        assert_eq!(taken(true, requests).await, [(Kind::Settling, BATCH), (Kind::Settling, 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn few_requests_wait_while_another_lane_writes() {
        let (sender, receiver) = mpsc::channel(FEW);
        let send = async || {
            let (answer, _) = oneshot::channel();
            let requests = vec![change(TurnId::new(SystemClock.now()))];
            sender.send(Command::Write(requests, Instant::now(), answer)).await.expect("it is queued");
        };
        let mut commands = Commands::new(receiver, true);
        let mut next = async || {
            let started = Instant::now();
            let together = commands.next_together().await.expect("something waits");
            (together.commands.len(), started.elapsed(), together.writing)
        };
        send().await;
        let (alone, waited, first) = next().await;
        assert_eq!((alone, waited), (1, Duration::ZERO), "nobody writes");

        send().await;
        let more = async {
            sleep(GATHERING / 5).await;
            send().await;
            sleep(GATHERING / 5).await;
            drop(first);
        };
        let ((few, waited, second), ()) = tokio::join!(next(), more);
        assert_eq!((few, waited), (2, GATHERING / 5 * 2), "they wait for the other lane");

        send().await;
        let (late, waited, third) = next().await;
        assert_eq!((late, waited), (1, GATHERING), "a slow lane is not waited for");

        for _ in 0..FEW {
            send().await;
        }
        let (enough, waited, _) = next().await;
        assert_eq!((enough, waited), (FEW, Duration::ZERO), "there is enough for a batch");
        drop((second, third));
    }

    /// It removes old rows, perhaps.
    #[tokio::test(start_paused = true)]
    async fn nothing_waits_for_a_request_that_is_not_for_a_batch() {
        let (sender, receiver) = mpsc::channel(FEW);
        let send = async |request: WriteRequest| {
            let (answer, _) = oneshot::channel();
            sender.send(Command::Write(vec![request], Instant::now(), answer)).await.expect("it is queued");
        };
        let mut commands = Commands::new(receiver, true);
        send(WriteRequest::Probe { room: 0 }).await;
        let alone = commands.next_together().await.expect("something waits");
        send(change(TurnId::new(SystemClock.now()))).await;
        let started = Instant::now();

        let next = commands.next_together().await.expect("something waits");

        assert_eq!((alone.kind, next.kind, started.elapsed()), (Kind::Rows, Kind::Settling, Duration::ZERO));
    }
}
