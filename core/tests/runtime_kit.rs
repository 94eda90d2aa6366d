//! Runs the runtime suite on the scripted agent, on a runtime that keeps every rule, and on one that breaks a rule for each
//! check, which the check must find.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::FutureExt;
use rejoinder_core::{
    AgentError, AgentRuntime, AgentTurn, Outcome, Reply, RunEvents, SendResult, SystemClock, TurnId,
    conformance::{
        runtime::{self, AgentDouble, Conduct},
        scripted::{Script, ScriptedAgent},
    },
};
use tokio_util::sync::CancellationToken;

/// Counts a run for as long as it lives.
struct Work(Arc<AtomicUsize>);

impl Work {
    fn begin(at_work: &Arc<AtomicUsize>) -> Self {
        at_work.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(at_work))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Conducts = Arc<Mutex<HashMap<u32, Conduct>>>;

/// The scripted agent, of which runs are counted.
#[derive(Clone)]
struct Scripted {
    agent: Arc<ScriptedAgent>,
    conducts: Conducts,
    at_work: Arc<AtomicUsize>,
}

#[expect(clippy::unused_async, reason = "the suite awaits the double")]
async fn scripted() -> Scripted {
    let conducts = Conducts::default();
    let agent = ScriptedAgent::new(Arc::new(SystemClock), {
        let conducts = Arc::clone(&conducts);
        move |turn| match locked(&conducts)[&turn.attempt].clone() {
            Conduct::Says(pieces) => {
                pieces.iter().fold(Script::replies(&pieces.concat()), |script, piece| script.streaming(piece))
            }
            Conduct::Sends(text) => Script::is_silent("sent").sending(&text),
            Conduct::Hangs(text) => Script::hangs().streaming(&text),
            Conduct::Breaks(text) => Script::fails("it broke").streaming(&text),
            Conduct::Panics => Script::panics(),
            Conduct::Listens(..) => unreachable!("a script has no branches"),
        }
    });
    Scripted { agent: Arc::new(agent), conducts, at_work: Arc::default() }
}

#[async_trait]
impl AgentRuntime for Scripted {
    fn describe(&self) -> String {
        self.agent.describe()
    }
    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        let _work = Work::begin(&self.at_work);
        self.agent.run(turn, events, cancel).await
    }
}

impl AgentDouble for Scripted {
    fn runtime(&self) -> Arc<dyn AgentRuntime> {
        Arc::new(self.clone())
    }
    fn conduct(&self, attempt: u32, conduct: Conduct) -> bool {
        if matches!(conduct, Conduct::Listens(..)) {
            return false;
        }
        locked(&self.conducts).insert(attempt, conduct);
        true
    }
    fn at_work(&self) -> usize {
        self.at_work.load(Ordering::SeqCst)
    }
    fn given(&self) -> Vec<String> {
        self.agent.turns().into_iter().map(|(_, text)| text).collect()
    }
}

/// The rule that a runtime breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Its outcome is the last piece of the answer.
    ReturnsTheLastPiece,
    /// It reports half of the answer.
    ReportsHalf,
    /// A task reports something after the end.
    ReportsLate,
    /// A task holds the events after the end.
    HoldsEvents,
    /// It gives each run of a turn the answer of the first one.
    RemembersAnswers,
    /// The agent works on after a run is dropped.
    WorksOn,
    /// It refuses a turn of which a run was dropped.
    StaysBusy,
    IgnoresCancel,
    /// It sends until the message is claimed.
    SendsAgain,
    /// It listens until it hears something.
    ListensAgain,
    /// It uses a mutex that a panic has poisoned.
    StaysPoisoned,
    /// It loses what the channel has no room for.
    LosesText,
    /// It returns what came before the agent broke.
    ReturnsHalf,
    /// It does not give the agent what it hears.
    ForgetsWhatItHears,
}

#[derive(Default)]
struct State {
    conducts: HashMap<u32, Conduct>,
    given: Vec<String>,
    answers: HashMap<TurnId, String>,
    busy: HashSet<TurnId>,
}

/// A runtime that is its own agent.
#[derive(Clone)]
struct Subject {
    fault: Fault,
    state: Arc<Mutex<State>>,
    poisoned: Arc<Mutex<()>>,
    at_work: Arc<AtomicUsize>,
}

fn with(fault: Fault) -> Subject {
    Subject { fault, state: Arc::default(), poisoned: Arc::default(), at_work: Arc::default() }
}

#[expect(clippy::unused_async, reason = "the suite awaits the double")]
async fn reference() -> Subject {
    with(Fault::None)
}

impl AgentDouble for Subject {
    fn runtime(&self) -> Arc<dyn AgentRuntime> {
        Arc::new(self.clone())
    }
    fn conduct(&self, attempt: u32, conduct: Conduct) -> bool {
        locked(&self.state).conducts.insert(attempt, conduct);
        true
    }
    fn at_work(&self) -> usize {
        self.at_work.load(Ordering::SeqCst)
    }
    fn given(&self) -> Vec<String> {
        locked(&self.state).given.clone()
    }
}

#[async_trait]
impl AgentRuntime for Subject {
    fn describe(&self) -> String {
        "of a test".to_owned()
    }

    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        let is_first = locked(&self.state).busy.insert(turn.turn);
        if self.fault == Fault::StaysBusy && !is_first {
            return Err(AgentError::Failed("a run of the turn is there already".to_owned()));
        }
        let work = Work::begin(&self.at_work);
        let (ended, end) = tokio::sync::oneshot::channel::<()>();
        let own_work = if self.fault == Fault::WorksOn {
            tokio::spawn(async move {
                let _work = work;
                if end.await.is_err() {
                    std::future::pending::<()>().await;
                }
            });
            None
        } else {
            Some(work)
        };
        let outcome = tokio::select! {
            outcome = self.act(&turn, &events) => outcome,
            () = cancel.cancelled(), if self.fault != Fault::IgnoresCancel => {
                Err(AgentError::Failed("the run was cancelled".to_owned()))
            }
        };
        // Nobody waits for it but the task above.
        let _ = ended.send(());
        locked(&self.state).busy.remove(&turn.turn);
        drop(own_work);
        match self.fault {
            Fault::ReportsLate => drop(tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                events.text("by the way").await;
            })),
            Fault::HoldsEvents => drop(tokio::spawn(async move {
                let _events = events;
                std::future::pending::<()>().await;
            })),
            _ => {}
        }
        outcome
    }
}

impl Subject {
    async fn act(&self, turn: &AgentTurn, events: &RunEvents) -> Result<Outcome, AgentError> {
        let conduct = {
            let mut state = locked(&self.state);
            state.given.push(turn.message.text.clone());
            state.conducts[&turn.attempt].clone()
        };
        if self.fault == Fault::StaysPoisoned {
            let _guard = self.poisoned.lock().expect("no panic before");
            assert!(conduct != Conduct::Panics, "the agent makes the runtime panic");
        }
        match conduct {
            Conduct::Panics => panic!("the agent makes the runtime panic"),
            Conduct::Says(pieces) => self.say(turn, &pieces, events).await,
            Conduct::Sends(text) => {
                let reply = Reply::text(text);
                while events.send(reply.clone()).await == SendResult::Suppressed && self.fault == Fault::SendsAgain {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Ok(Outcome::Silent("sent".to_owned()))
            }
            Conduct::Hangs(text) => {
                events.text(text).await;
                std::future::pending().await
            }
            Conduct::Breaks(text) => {
                events.text(text.clone()).await;
                match self.fault {
                    Fault::ReturnsHalf => Ok(Outcome::Reply(Reply::text(text))),
                    _ => Err(AgentError::Broken("it broke off".to_owned())),
                }
            }
            Conduct::Listens(first, second) => {
                let mut heard = events.listen().await;
                while heard.is_empty() && self.fault == Fault::ListensAgain {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    heard = events.listen().await;
                }
                if self.fault != Fault::ForgetsWhatItHears {
                    locked(&self.state).given.extend(heard.iter().map(|message| message.text.clone()));
                }
                Ok(Outcome::Reply(Reply::text(if heard.is_empty() { first } else { second })))
            }
        }
    }

    async fn say(&self, turn: &AgentTurn, pieces: &[String], events: &RunEvents) -> Result<Outcome, AgentError> {
        let reported = if self.fault == Fault::ReportsHalf { &pieces[..pieces.len() / 2] } else { pieces };
        for piece in reported {
            if self.fault == Fault::LosesText {
                let _ = events.text(piece).now_or_never();
            } else {
                events.text(piece).await;
            }
            tokio::task::yield_now().await;
        }
        let text = match self.fault {
            Fault::ReturnsTheLastPiece => pieces[pieces.len() - 1].clone(),
            Fault::RemembersAnswers => {
                locked(&self.state).answers.entry(turn.turn).or_insert_with(|| pieces.concat()).clone()
            }
            _ => pieces.concat(),
        };
        Ok(Outcome::Reply(Reply::text(text)))
    }
}

mod the_scripted_agent {
    rejoinder_core::runtime_conformance!(super::scripted());
}

mod a_runtime_that_keeps_every_rule {
    rejoinder_core::runtime_conformance!(super::reference());
}

/// Makes a test of each check and fault: the check panics with these words.
macro_rules! found {
    ($($name:ident: $check:ident finds $fault:ident in $words:literal;)*) => {
        $(
            #[tokio::test(start_paused = true)]
            #[should_panic(expected = $words)]
            async fn $name() {
                runtime::$check(&with(Fault::$fault)).await;
            }
        )*
    };
}

found! {
    an_answer_that_is_not_whole: an_answer_is_whole finds ReturnsTheLastPiece in "holds the whole answer";
    a_draft_of_half_an_answer: an_answer_is_whole finds ReportsHalf in "the drafts are not the answer";
    an_event_after_the_end: nothing_is_reported_after_the_end finds ReportsLate in "came after the end";
    a_task_that_holds_the_events: nothing_is_reported_after_the_end finds HoldsEvents in "holds the run's events";
    an_answer_of_another_run: two_runs_of_one_turn_do_not_mix finds RemembersAnswers in "of another run";
    an_agent_that_works_on: a_dropped_run_leaves_nothing finds WorksOn in "to work on a run that is over";
    a_turn_that_stays_busy: a_dropped_run_leaves_nothing finds StaysBusy in "did not end with a reply";
    a_run_that_ignores_its_cancellation: a_cancelled_run_ends_in_time finds IgnoresCancel in "though it is cancelled";
    a_run_that_sends_without_end: a_run_ends_when_nobody_reads_its_events finds SendsAgain in "nobody reads its events";
    a_run_that_listens_without_end: a_run_ends_when_nobody_reads_its_events finds ListensAgain in "nobody reads its events";
    a_runtime_that_stays_poisoned: a_panic_ends_one_run finds StaysPoisoned in "no panic before";
    text_that_is_lost: a_flood_waits_and_loses_nothing finds LosesText in "text was lost";
    half_an_answer: half_an_answer_is_an_error finds ReturnsHalf in "half an answer was returned";
    a_message_that_is_forgotten: what_a_run_hears_reaches_the_agent finds ForgetsWhatItHears in "what the run heard";
}
