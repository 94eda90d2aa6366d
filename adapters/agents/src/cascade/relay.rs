//! Passes on what a member reports. Until the member has had an effect, what it reports is held back, so that nothing of it
//! is left if another member answers, except the tokens that it has consumed and what they cost. At the end they are counted for it.

use std::time::Duration;

use rejoinder_core::{
    Activity, AgentMessage, Cost, MemberReport, ModelInput, RunEvent, RunEvents, ScheduleCall, Usage,
};
use tokio::sync::mpsc;

use super::{member::Member, waits::Waits};

pub(super) struct Relay<'a> {
    events: &'a RunEvents,
    member: &'a Member,
    held: Held,
    /// What the members before it consumed, which is part of what the run did.
    before: Usage,
    /// What the member has consumed.
    usage: Usage,
    /// What it has cost, if it says so, and the tokens whose cost is not in it.
    cost: Option<(Cost, Usage)>,
    /// What the run has consumed.
    pub(super) used: Option<Usage>,
    /// Whether somebody has seen something of the member, or it has done something.
    pub(super) has_effect: bool,
    /// The messages that it was given during the run.
    pub(super) heard: Vec<AgentMessage>,
    waits: Waits,
}

/// Of each report the latest, and text that shows nothing.
#[derive(Default)]
struct Held {
    text: String,
    shown: Option<ModelInput>,
    title: Option<String>,
}

impl<'a> Relay<'a> {
    /// `used` is what the run has consumed so far.
    pub(super) fn to(events: &'a RunEvents, used: Option<Usage>, member: &'a Member) -> Self {
        let before = used.unwrap_or_default();
        Self {
            events,
            member,
            held: Held::default(),
            before,
            usage: Usage::default(),
            cost: None,
            used,
            has_effect: false,
            heard: Vec::new(),
            waits: Waits::default(),
        }
    }

    /// The channel through which the member reports.
    pub(super) fn channel(&self) -> (RunEvents, mpsc::Receiver<RunEvent>) {
        self.events.of_member()
    }

    /// How long the member has waited for approvals, also for one that is not decided yet.
    pub(super) fn waited(&self) -> Duration {
        self.waits.total()
    }

    pub(super) async fn pass(&mut self, event: RunEvent) {
        // A result fails to be sent if the member no longer waits for it.
        match event {
            RunEvent::Text(delta) if !self.has_effect && is_blank(&delta) => self.held.text.push_str(&delta),
            RunEvent::Text(delta) => {
                self.release().await;
                self.events.text(delta).await;
            }
            RunEvent::Rewrite(text) if !self.has_effect && is_blank(&text) => self.held.text = text,
            RunEvent::Rewrite(text) => {
                self.held.text.clear();
                self.release().await;
                self.events.rewrite(text).await;
            }
            RunEvent::Shown(input) if self.has_effect => self.events.shown(input).await,
            RunEvent::Shown(input) => self.held.shown = Some(input),
            RunEvent::Title(title) if self.has_effect => self.events.title(title).await,
            RunEvent::Title(title) => self.held.title = Some(title),
            RunEvent::Usage(usage) => {
                self.usage = usage;
                let used = self.before.and(usage);
                self.used = Some(used);
                self.events.usage(used).await;
            }
            // It counts for the member alone.
            RunEvent::Cost(cost, unpriced) => {
                self.cost = Some((cost, unpriced));
                self.events.cost_beside(cost, unpriced).await;
            }
            RunEvent::Member(MemberReport::Asked(name)) => self.events.member(name).await,
            RunEvent::Member(MemberReport::Answered) => self.events.member_ended(Ok(())).await,
            RunEvent::Member(MemberReport::Failed(error)) => self.events.member_ended(Err(error)).await,
            RunEvent::Activity(Activity { title, state }) => {
                if self.member.of.shows_activity {
                    self.events.activity(title, state).await;
                }
            }
            RunEvent::Thought(more) => {
                if self.member.of.shows_activity {
                    self.events.thought(more).await;
                }
            }
            // A tool may have done anything.
            RunEvent::Tool(call) => {
                self.release().await;
                self.events.tool(call).await;
            }
            RunEvent::Send(reply, answer) => {
                self.release().await;
                let _ = answer.send(self.events.send(reply).await);
            }
            RunEvent::Schedule(call, answer) => {
                let is_look = matches!(call, ScheduleCall::List);
                let done = self.events.schedule(call).await;
                if done.is_ok() && !is_look {
                    self.release().await;
                }
                let _ = answer.send(done);
            }
            RunEvent::Search(query, answer) => {
                let _ = answer.send(self.events.search(query).await);
            }
            RunEvent::Ask(request, taken_back, mut answer) => {
                self.release().await;
                let (events, waiting) = (self.events.clone(), self.waits.begin());
                // The member's run goes on meanwhile, and may end.
                tokio::spawn(async move {
                    tokio::select! {
                        // First, so that no decision counts as heard that the member does not hear.
                        biased;
                        () = answer.closed() => {}
                        decided = events.ask_approval_for_member(request, taken_back) => {
                            drop(waiting);
                            let _ = answer.send(decided);
                        }
                    }
                });
            }
            RunEvent::Remember(own_session, answer) => {
                let _ = answer.send(self.events.remember(own_session).await);
            }
            RunEvent::HandOut(holder, answer) => {
                let _ = answer.send(self.events.hand_out(holder).await);
            }
            RunEvent::Ends(answer) => self.events.ends_for_member(answer).await,
            RunEvent::Listen(answer) => {
                let messages = self.events.listen().await;
                self.heard.extend(messages.iter().cloned());
                let _ = answer.send(messages);
            }
        }
    }

    /// Passes on what was held back: the run is the member's from now on.
    pub(super) async fn release(&mut self) {
        self.has_effect = true;
        let Held { text, shown, title } = std::mem::take(&mut self.held);
        if let Some(shown) = shown {
            self.events.shown(shown).await;
        }
        if let Some(title) = title {
            self.events.title(title).await;
        }
        if !text.is_empty() {
            self.events.text(text).await;
        }
    }
}

impl Drop for Relay<'_> {
    /// A run that is dropped has consumed what it reported, too.
    fn drop(&mut self) {
        self.member.count_usage(self.usage, self.cost);
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
