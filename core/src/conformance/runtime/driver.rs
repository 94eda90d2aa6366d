//! Drives a run as the core does, step by step.

use std::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use rejoinder_guard::{Outcome, Reply};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

use super::double::{AgentDouble, says};
use crate::{
    model::agent::{AgentMessage, AgentTurn},
    ports::agent::{AgentError, RunEvent, RunEvents, SendResult},
};

/// How long a run that is not stopped may take to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long after its end a run may hold its channel.
const PROMPTLY: Duration = Duration::from_secs(2);

/// How a run ends.
pub(super) type End = Result<Outcome, AgentError>;

/// A run, and what the core has of it. Its channel holds one event, so that the run waits for the core at each of them.
pub(super) struct Run<'a> {
    double: &'a dyn AgentDouble,
    future: BoxFuture<'static, End>,
    reported: mpsc::Receiver<RunEvent>,
    pub(super) cancel: CancellationToken,
    /// The text that the person sees of it.
    pub(super) text: String,
    /// What the run hears when it listens.
    pub(super) came: Vec<AgentMessage>,
    pub(super) has_listened: bool,
}

impl<'a> Run<'a> {
    pub(super) fn begin(double: &'a dyn AgentDouble, turn: AgentTurn) -> Self {
        let (events, reported) = RunEvents::with_room(1);
        let (runtime, cancel) = (double.runtime(), CancellationToken::new());
        let token = cancel.clone();
        let future = async move { runtime.run(turn, events, token).await }.boxed();
        Self { double, future, reported, cancel, text: String::new(), came: Vec::new(), has_listened: false }
    }

    /// Polls the run and handles its events. `None`: it waited `steps` times without an end.
    pub(super) async fn steps(&mut self, steps: usize) -> Option<End> {
        let mut waited = 0;
        let driven = poll_fn(|context| self.poll(context, &mut waited, steps));
        timeout(PATIENCE, driven).await.expect("the run does not go on")
    }

    /// Polls the run and handles its events until it ends.
    pub(super) async fn end(&mut self) -> End {
        self.steps(usize::MAX).await.expect("the run does not end")
    }

    /// The same within a time.
    pub(super) async fn end_within(&mut self, time: Duration) -> Option<End> {
        timeout(time, self.end()).await.ok()
    }

    /// The same of a run that may panic: `None` then.
    pub(super) async fn end_or_panic(&mut self) -> Option<End> {
        AssertUnwindSafe(self.end()).catch_unwind().await.ok()
    }

    /// Polls the run for a while, and reads no event.
    pub(super) async fn starve(&mut self, time: Duration) -> Option<End> {
        timeout(time, &mut self.future).await.ok()
    }

    /// Handles its events until the agent works on it.
    pub(super) async fn reach_the_agent(&mut self) {
        let double = self.double;
        tokio::select! {
            end = self.end() => panic!("the run ended before it was stopped: {end:?}"),
            () = until("a run reaches the agent", || double.at_work() > 0) => {}
        }
    }

    /// The core reads no more events.
    pub(super) fn close(&mut self) {
        self.reported.close();
    }

    /// Handles the events that the run reported before its end, drops it, and checks that nothing of it is left.
    pub(super) async fn leaves_nothing(mut self) -> String {
        while let Ok(event) = self.reported.try_recv() {
            self.handle(event);
        }
        let Self { double, future, mut reported, text, .. } = self;
        drop(future);
        // What it reported while it was dropped.
        while reported.try_recv().is_ok() {}
        match timeout(PROMPTLY, reported.recv()).await {
            Ok(None) => {}
            Ok(Some(event)) => panic!("an event came after the end of the run: {event:?}"),
            Err(elapsed) => panic!("something holds the run's events after its end: {elapsed}"),
        }
        until("the agent stops to work on a run that is over", || double.at_work() == 0).await;
        text
    }

    fn poll(&mut self, context: &mut Context<'_>, waited: &mut usize, steps: usize) -> Poll<Option<End>> {
        loop {
            if let Poll::Ready(end) = self.future.poll_unpin(context) {
                return Poll::Ready(Some(end));
            }
            *waited += 1;
            if *waited >= steps {
                return Poll::Ready(None);
            }
            match self.reported.poll_recv(context) {
                Poll::Ready(Some(event)) => self.handle(event),
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn handle(&mut self, event: RunEvent) {
        // An answer fails if the runtime no longer waits for it.
        match event {
            RunEvent::Text(text) => self.text.push_str(&text),
            RunEvent::Rewrite(text) => self.text = text,
            RunEvent::Member(_)
            | RunEvent::Tool(_)
            | RunEvent::Activity(_)
            | RunEvent::Thought(_)
            | RunEvent::Shown(_)
            | RunEvent::Usage(_)
            | RunEvent::Cost(..)
            | RunEvent::Title(_) => {}
            RunEvent::Send(_, answer) => drop(answer.send(SendResult::Claimed)),
            RunEvent::Schedule(_, answer) => drop(answer.send(Err("nothing can be scheduled here".to_owned()))),
            RunEvent::Search(_, answer) => drop(answer.send(Ok(Vec::new()))),
            RunEvent::Ask(_, _, answer) => drop(answer.send(Err("nobody can be asked here".to_owned()))),
            RunEvent::Remember(_, answer) | RunEvent::HandOut(_, answer) => drop(answer.send(Ok(()))),
            RunEvent::Ends(answer) => drop(answer.send(true)),
            RunEvent::Listen(answer) => {
                self.has_listened = true;
                drop(answer.send(std::mem::take(&mut self.came)));
            }
        }
    }
}

/// Waits until `holds` returns true.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(PATIENCE, waiting).await.is_ok(), "waited in vain: {what}");
}

/// The text of a reply.
#[track_caller]
pub(super) fn reply(end: End) -> String {
    match end {
        Ok(Outcome::Reply(Reply { text, .. })) => text,
        other => panic!("the run did not end with a reply: {other:?}"),
    }
}

/// The runtime works on this run of the turn as if there had been none before.
pub(super) async fn works(double: &dyn AgentDouble, turn: AgentTurn) {
    assert!(double.conduct(turn.attempt, says(&["It ", "works."])), "every agent can say something");
    let mut run = Run::begin(double, turn);
    assert_eq!(reply(run.end().await), "It works.", "the next run works");
}
