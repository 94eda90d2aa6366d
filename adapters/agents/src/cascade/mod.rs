//! Several agents of which one answers: if it fails before it has shown or done anything, the next one is asked.
//!
//! | File | Contains |
//! | --- | --- |
//! | `section` | the configuration |
//! | `member` | a member, and the order in which members are asked |
//! | `circuit` | leaves out a member that keeps failing |
//! | `relay` | passes on what a member reports, once it is certain that it answers |
//! | `given` | the turn as one member gets it |
//! | `waits` | how long it has waited for approvals |
//!
//! If the circuits of all members are open, the first in order is asked all the same: a circuit saves the wait for a member
//! that is down, for which there is no reason if nobody else can answer. A member that has used its budget of the day is not asked
//! in any case, nor is one that cannot seal an answer that is to be sealed. What members use that fail is part of what the run used.

mod circuit;
mod given;
mod member;
mod relay;
mod section;
mod waits;

use std::{
    any::Any,
    panic::{AssertUnwindSafe, resume_unwind},
    pin::pin,
    sync::{Arc, Weak},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{FutureExt, future::join_all};
use rejoinder_core::{
    AgentError, AgentName, AgentRuntime, AgentTurn, MemberHealth, Outcome, RunEvents, Runtimes, TurnId,
};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::{
    circuit::Permit,
    member::{Member, in_order},
    relay::Relay,
};
pub use self::{
    member::CascadeMember,
    section::{CascadeSection, Order},
};

/// How long a member may take for a probe.
const PROBE: Duration = Duration::from_secs(8);

/// An agent whose members answer in its place.
pub struct Cascade {
    name: AgentName,
    members: Vec<Member>,
    order: Order,
    runtimes: Weak<Runtimes>,
}

/// How a member's run ends; the outer error is its panic.
type End = Result<Result<Outcome, AgentError>, Box<dyn Any + Send>>;

impl Cascade {
    /// The members are looked up in `runtimes` when a run begins, because a reload of the configuration replaces them there.
    pub fn new(name: AgentName, members: Vec<CascadeMember>, order: Order, runtimes: Weak<Runtimes>) -> Self {
        let members = members.into_iter().map(|member| Member::new(Arc::clone(&name), member)).collect();
        Self { name, members, order, runtimes }
    }

    fn runtime(&self, member: &Member) -> Option<Arc<dyn AgentRuntime>> {
        self.runtimes.upgrade()?.get(&member.of.name)
    }

    fn runtimes(&self) -> impl Iterator<Item = Arc<dyn AgentRuntime>> {
        self.members.iter().filter_map(|member| self.runtime(member))
    }

    /// Runs one member. Of what it reports, nothing is passed on before it has an effect. `whole`, the turn for the next member, loses
    /// its files as soon as there is none: then, or at once if this is the last one.
    async fn run_member(
        &self,
        member: &Member,
        whole: &mut AgentTurn,
        is_last: bool,
        relay: &mut Relay<'_>,
        cancel: &CancellationToken,
    ) -> End {
        let Some(runtime) = self.runtime(member) else {
            return Ok(Err(AgentError::Unreachable(format!("agent `{}` is not configured any more", member.of.name))));
        };
        let turn = given::to(member, &*runtime, whole);
        if is_last {
            whole.drop_files();
        }
        let (events, mut reported) = relay.channel();
        let run = async { runtime.run(turn, events, cancel.clone()).await };
        let mut running = pin!(AssertUnwindSafe(run).catch_unwind());
        let end = loop {
            tokio::select! {
                biased;
                Some(event) = reported.recv() => {
                    relay.pass(event).await;
                    if relay.has_effect {
                        whole.drop_files();
                    }
                }
                end = &mut running => break end,
            }
        };
        while let Ok(event) = reported.try_recv() {
            relay.pass(event).await;
        }
        end
    }

    /// Counts the end of a member's run. Returns whether it failed, and what its end says about it.
    fn judge(
        &self,
        (of, permit): (&Member, Permit),
        end: &End,
        time: Duration,
        is_stopped: bool,
    ) -> (bool, Option<Result<(), AgentError>>) {
        match end {
            Ok(Ok(_)) if !is_stopped => {
                of.took(time);
                metrics::histogram!("rejoinder_member_seconds", &of.labels()).record(time.as_secs_f64());
                self.count(of, "answered");
                permit.answered();
                (false, Some(Ok(())))
            }
            // That it was stopped says nothing about it.
            _ if is_stopped => {
                self.count(of, "stopped");
                (false, None)
            }
            _ => {
                let error = match end {
                    Ok(Err(error)) => error.clone(),
                    _ => AgentError::Failed("its runtime panicked".to_owned()),
                };
                let says = (!is_of_the_turn(&error)).then(|| Err(error.clone()));
                if says.is_some() {
                    permit.failed();
                }
                let (agent, member, error) = (&*self.name, &*of.of.name, error.summary());
                tracing::warn!(agent, member, error, "a member failed");
                self.count(of, "failed");
                of.failed(error);
                (true, says)
            }
        }
    }

    fn count(&self, of: &Member, result: &'static str) {
        let (agent, member) = (self.name.to_string(), of.of.name.to_string());
        metrics::counter!("rejoinder_member_runs_total", "agent" => agent, "member" => member, "result" => result)
            .increment(1);
    }
}

/// Whether a member refused what it was asked: that is one person's doing, and says nothing about other turns.
fn is_of_the_turn(error: &AgentError) -> bool {
    let AgentError::Refused { status, .. } = error else { return false };
    ["400", "413", "422", "refusal"].iter().any(|refused| status.starts_with(refused))
}

#[async_trait]
impl AgentRuntime for Cascade {
    fn describe(&self) -> String {
        let names: Vec<_> = self.members.iter().map(|member| &*member.of.name).collect();
        format!("cascade of {}", names.join(", "))
    }

    fn history(&self) -> usize {
        self.runtimes().map(|runtime| runtime.history()).max().unwrap_or_default()
    }

    fn reads(&self, media_type: &str) -> Option<usize> {
        self.runtimes().filter_map(|runtime| runtime.reads(media_type)).max()
    }

    fn hears(&self, media_type: &str) -> bool {
        self.runtimes().all(|runtime| runtime.hears(media_type))
    }

    fn hands_out(&self) -> bool {
        self.runtimes().any(|runtime| runtime.hands_out())
    }

    fn has_worker(&self) -> bool {
        self.runtimes().all(|runtime| runtime.has_worker())
    }

    fn withdraw(&self, turn: TurnId, attempt: u32) -> bool {
        self.runtimes().any(|runtime| runtime.withdraw(turn, attempt))
    }

    fn seals(&self) -> bool {
        self.runtimes().any(|runtime| runtime.seals())
    }

    fn members(&self) -> Vec<MemberHealth> {
        self.members.iter().map(Member::health).collect()
    }

    fn member_names(&self) -> Vec<AgentName> {
        self.members.iter().map(|member| Arc::clone(&member.of.name)).collect()
    }

    fn has_probe(&self) -> bool {
        self.members.iter().filter_map(|member| self.runtime(member)).any(|runtime| runtime.has_probe())
    }

    /// Tries the members that can be asked whether they are there. One that is not is left out before a person has to wait for it.
    async fn probe(&self) -> Option<Result<(), AgentError>> {
        let probe = async |member: &Member| {
            let runtime = self.runtime(member)?;
            // One that takes long may be at work for somebody else.
            let result = timeout(PROBE, runtime.probe()).await.ok().flatten()?;
            member.circuit.probed(result.is_ok());
            Some(result)
        };
        let probed = join_all(self.members.iter().map(probe)).await;
        // It is down only if no member may be there.
        probed.into_iter().reduce(|one, other| match (one, other) {
            (Some(Err(_)), Some(Err(error))) => Some(Err(error)),
            (Some(Ok(())), _) | (_, Some(Ok(()))) => Some(Ok(())),
            _ => None,
        })?
    }

    async fn run(
        &self,
        mut turn: AgentTurn,
        events: RunEvents,
        cancel: CancellationToken,
    ) -> Result<Outcome, AgentError> {
        let (began, start) = (Instant::now(), turn.now);
        let longest = turn.deadline.since(start);
        let mut order = in_order(&self.members, self.order, turn.place.model.as_deref());
        order.retain(|member| !turn.rights.spent.contains(&member.of.name));
        if turn.person.seal_to.is_some() {
            order.retain(|member| self.runtime(member).is_some_and(|runtime| runtime.seals()));
        }
        let mut used = None;
        let mut admitted = order.iter().filter_map(|member| Some((*member, member.circuit.admit()?)));
        let mut next = admitted.next().or_else(|| order.first().map(|first| (*first, first.circuit.force())));
        while let Some((member, permit)) = next {
            events.member(Arc::clone(&member.of.name)).await;
            let mut relay = Relay::to(&events, used, member);
            let is_last = admitted.size_hint().1 == Some(0);
            let asked = Instant::now();
            let end = self.run_member(member, &mut turn, is_last, &mut relay, &cancel).await;
            // A member that has used up the time of the run has failed, although it was stopped.
            let is_stopped = cancel.is_cancelled() && began.elapsed().saturating_sub(relay.waited()) < longest;
            let took = asked.elapsed().saturating_sub(relay.waited());
            let (has_failed, says) = self.judge((member, permit), &end, took, is_stopped);
            used = relay.used;
            if let Some(result) = says {
                events.member_ended(result).await;
            }
            next = if has_failed && !relay.has_effect && !cancel.is_cancelled() { admitted.next() } else { None };
            if next.is_none() {
                relay.release().await;
                return end.unwrap_or_else(|panic| resume_unwind(panic));
            }
            if !matches!(end, Ok(Err(AgentError::Unreachable(_)))) {
                // The member may have acted on them.
                turn.use_up_approvals();
            }
            turn.more.append(&mut relay.heard);
            turn.now = start + began.elapsed();
        }
        Err(AgentError::Unreachable("it has no members that may answer".to_owned()))
    }
}

#[cfg(test)]
mod refusals {
    use super::*;

    #[test]
    fn only_a_refusal_of_the_turn_itself_is_of_the_turn() {
        let refused = |status: &str| AgentError::Refused { status: status.to_owned(), message: String::new() };
        let is_of_it = |status| is_of_the_turn(&refused(status));

        assert!(["400 Bad Request", "413 Payload Too Large", "refusal after 3 characters"].into_iter().all(is_of_it));
        assert!(!["401 Unauthorized", "429 Too Many Requests", "503 Service Unavailable"].into_iter().any(is_of_it));
        assert!(!is_of_the_turn(&AgentError::Broken("400".to_owned())));
    }
}

#[cfg(test)]
mod files {
    use std::collections::HashMap;

    use rejoinder_core::{AgentFile, ApprovalRequest, ApprovalState, Attachment, conformance::runtime::decision};

    use super::*;
    use crate::tests::turn;

    struct Fails(&'static str);

    #[async_trait]
    impl AgentRuntime for Fails {
        fn describe(&self) -> String {
            "it fails after a text".to_owned()
        }

        async fn run(&self, _: AgentTurn, events: RunEvents, _: CancellationToken) -> Result<Outcome, AgentError> {
            events.text(self.0).await;
            tokio::task::yield_now().await;
            Err(AgentError::Failed("it fails".to_owned()))
        }
    }

    /// Notes whether its approval is used.
    struct Notes(Arc<std::sync::Mutex<Vec<bool>>>, AgentError);

    #[async_trait]
    impl AgentRuntime for Notes {
        fn describe(&self) -> String {
            "it notes what it may do".to_owned()
        }

        async fn run(&self, turn: AgentTurn, _: RunEvents, _: CancellationToken) -> Result<Outcome, AgentError> {
            self.0.lock().expect("no test panics").extend(turn.past.approvals.iter().map(|approval| approval.is_used));
            Err(self.1.clone())
        }
    }

    /// The first member may have acted, unless it was not reached.
    #[tokio::test]
    async fn what_was_approved_is_used_for_the_next_member() {
        for (error, expected) in [
            (AgentError::Broken("500".to_owned()), [false, true]),
            (AgentError::Unreachable("no route".to_owned()), [false, false]),
        ] {
            let noted: Arc<std::sync::Mutex<Vec<bool>>> = Arc::default();
            let names: [AgentName; 2] = ["one".into(), "two".into()];
            let runtime = || Arc::new(Notes(Arc::clone(&noted), error.clone())) as Arc<dyn AgentRuntime>;
            let runtimes = Arc::new(Runtimes::from(
                names.clone().map(|name| (name, runtime())).into_iter().collect::<HashMap<_, _>>(),
            ));
            let members =
                names.map(|name| CascadeMember { name, models: Vec::new(), price: None, shows_activity: true });
            let cascade = Cascade::new("both".into(), members.into(), Order::Listed, Arc::downgrade(&runtimes));
            let approvals = vec![decision(&ApprovalRequest::action("pay"), ApprovalState::Approved)];
            let (events, _reported) = RunEvents::channel();

            let ended = cascade
                .run(turn("Pay").with(|turn| turn.past.approvals = approvals), events, CancellationToken::new())
                .await;

            assert!(ended.is_err());
            assert_eq!(*noted.lock().expect("no test panics"), expected);
        }
    }

    /// Whether the turn has its files after a member has said this.
    async fn are_kept_after(said: &'static str, is_last: bool) -> bool {
        let (name, runtime): (AgentName, Arc<dyn AgentRuntime>) = ("one".into(), Arc::new(Fails(said)));
        let runtimes = Arc::new(Runtimes::from(HashMap::from([(Arc::clone(&name), runtime)])));
        let members = vec![CascadeMember { name, models: Vec::new(), price: None, shows_activity: true }];
        let cascade = Cascade::new("both".into(), members, Order::Listed, Arc::downgrade(&runtimes));
        let attachment = Attachment { name: "a".into(), media_type: "text/plain".into(), url: "telegram:a".into() };
        let file = AgentFile { attachment, bytes: Some(b"abc".to_vec().into()), text: None };
        let mut whole = turn("Hi").with(|turn| turn.message.attachments = vec![file]);
        let (events, _reported) = RunEvents::channel();
        let member = &cascade.members[0];
        let mut relay = Relay::to(&events, None, member);

        let end = cascade.run_member(member, &mut whole, is_last, &mut relay, &CancellationToken::new()).await;

        assert!(matches!(end, Ok(Err(AgentError::Failed(_)))));
        whole.message.attachments[0].bytes.is_some()
    }

    #[tokio::test]
    async fn a_turn_has_its_files_until_no_other_member_can_be_asked() {
        assert!(are_kept_after(" ", false).await);
        assert!(!are_kept_after(" ", true).await);
        assert!(!are_kept_after("I look.", false).await);
    }
}

#[cfg(test)]
mod probes {
    use std::{
        collections::HashMap,
        sync::atomic::{AtomicBool, Ordering},
    };

    use super::*;

    /// Whether it can be reached; `None`: it cannot be asked.
    struct Server(Option<AtomicBool>);

    #[async_trait]
    impl AgentRuntime for Server {
        fn describe(&self) -> String {
            "a server".to_owned()
        }

        fn has_probe(&self) -> bool {
            self.0.is_some()
        }

        async fn probe(&self) -> Option<Result<(), AgentError>> {
            let is_up = self.0.as_ref()?.load(Ordering::Relaxed);
            Some(if is_up { Ok(()) } else { Err(AgentError::Unreachable("no route".to_owned())) })
        }

        async fn run(&self, _: AgentTurn, _: RunEvents, _: CancellationToken) -> Result<Outcome, AgentError> {
            unreachable!("it is only probed")
        }
    }

    fn cascade(servers: [Arc<Server>; 2]) -> (Cascade, Arc<Runtimes>) {
        let names: [AgentName; 2] = ["one".into(), "two".into()];
        let known = names.clone().into_iter().zip(servers.map(|server| server as Arc<dyn AgentRuntime>));
        let runtimes = Arc::new(Runtimes::from(known.collect::<HashMap<_, _>>()));
        let members = names.map(|name| CascadeMember { name, models: Vec::new(), price: None, shows_activity: true });
        (Cascade::new("both".into(), members.into(), Order::Listed, Arc::downgrade(&runtimes)), runtimes)
    }

    #[tokio::test]
    async fn a_member_that_is_down_is_left_out_before_anybody_waits_for_it() {
        let [one, two] = [false, true].map(|is_up| Arc::new(Server(Some(is_up.into()))));
        let (cascade, _runtimes) = cascade([Arc::clone(&one), two]);
        let left_out = || cascade.members().iter().map(|member| member.is_left_out).collect::<Vec<_>>();

        for _ in 0..2 {
            assert_eq!(cascade.probe().await, Some(Ok(())), "the other one is there");
        }
        assert_eq!(left_out(), [true, false]);

        one.0.as_ref().expect("it can be asked").store(true, Ordering::Relaxed);
        cascade.probe().await;
        assert_eq!(left_out(), [false, false]);
    }

    #[tokio::test]
    async fn a_cascade_is_down_if_no_member_may_be_there() {
        let down = || Arc::new(Server(Some(false.into())));
        let (both, _runtimes) = cascade([down(), down()]);
        assert_eq!(both.probe().await, Some(Err(AgentError::Unreachable("no route".to_owned()))));
        let (one, _runtimes) = cascade([down(), Arc::new(Server(None))]);
        assert_eq!(one.probe().await, None);
    }
}
