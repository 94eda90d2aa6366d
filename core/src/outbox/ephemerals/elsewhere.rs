//! Drafts and typing notices of runs of other nodes.
//!
//! A node shows nothing on a channel whose lease another one holds. It keeps what its run says so far in the store, from where the
//! holder of the lease shows it. What clients of several nodes see, such as pages, each node shows to its own.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{drafts::DraftTask, show::Ephemerals, typing::Typing};
use crate::{
    handles::{drafts::DraftText, slots::Slots},
    model::{ConversationRef, Support, TurnId, TurnRecord, Version},
    ports::{Hint, RunText, StoreError},
};

impl Ephemerals {
    /// Whether another node shows what the run of a turn says, and this one does not.
    pub(super) fn is_shown_elsewhere(&self, turn: &TurnRecord) -> bool {
        self.hints.is_shown_elsewhere(&turn.event.conversation.channel)
    }

    /// Whether other nodes may show it.
    pub(super) fn may_be_shown_elsewhere(&self, turn: &TurnRecord) -> bool {
        self.hints.may_be_shown_elsewhere(&turn.event.conversation.channel)
    }

    /// Keeps what the run of a turn says so far for the nodes that show it; `None`: it works.
    pub(super) async fn tell(&self, turn: &TurnRecord, text: Option<&str>) {
        match self.texts.put_draft(turn.id, turn.runs, text).await {
            Ok(()) => self.hints.tell(|| Hint::Draft(turn.id)),
            Err(error) => debug!(turn = %turn.id, %error, "cannot keep what a run says for other nodes"),
        }
    }

    /// Removes what was kept. Nobody waits for that.
    pub(super) fn remove_told(&self, turn: TurnId, run: u32) {
        let texts = Arc::clone(&self.texts);
        self.lifecycle.work.spawn(async move {
            if let Err(error) = texts.remove_draft(turn, run).await {
                debug!(%turn, %error, "cannot remove what a run said");
            }
        });
    }
}

/// Shows what runs of other nodes say.
pub(crate) struct RunsElsewhere {
    ephemerals: Arc<Ephemerals>,
    slots: Arc<Slots>,
    shown: Mutex<HashMap<TurnId, ShownRun>>,
}

/// A run that is shown here, until it is stopped.
struct ShownRun {
    number: u32,
    conversation: ConversationRef,
    /// The version of the turn that was read last.
    version: Version,
    text: Arc<DraftText>,
    stop: CancellationToken,
}

impl ShownRun {
    fn say(&self, text: &str) {
        if !text.is_empty() {
            self.text.add(text, true);
            self.text.notify();
        }
    }
}

impl RunsElsewhere {
    pub(crate) fn new(ephemerals: Arc<Ephemerals>, slots: Arc<Slots>) -> Self {
        Self { ephemerals, slots, shown: Mutex::default() }
    }

    /// Shows what the runs of these turns say now, as far as this node shows it.
    pub(crate) async fn show(&self, turns: &[TurnId]) -> Result<(), StoreError> {
        for said in self.ephemerals.texts.drafts(turns).await? {
            if self.goes_on(&said) || !self.is_seen_here(&said.conversation, said.turn) {
                continue;
            }
            if let Some(turn) = self.ephemerals.store.readable_turn(said.turn).await? {
                self.begin(&turn, &said);
            }
        }
        Ok(())
    }

    /// Shows what runs of other nodes say, whether this one was told of it or not.
    pub(crate) async fn catch_up(&self) -> Result<(), StoreError> {
        let Ephemerals { channels, hints, texts, .. } = &*self.ephemerals;
        let shown: Vec<_> = channels.ids().filter(|channel| hints.is_shown_here(channel)).cloned().collect();
        let own: HashSet<_> = self.slots.runs().iter().map(|run| run.turn).collect();
        let mut turns = texts.drafts_on(&shown).await?;
        turns.retain(|turn| !own.contains(turn));
        if turns.is_empty() { Ok(()) } else { self.show(&turns).await }
    }

    /// Shows what a run says that is shown already; `false` if it is not.
    fn goes_on(&self, said: &RunText) -> bool {
        let shown = self.shown();
        let run = shown.get(&said.turn).filter(|run| run.number == said.run && !run.stop.is_cancelled());
        if let Some(run) = run {
            run.say(&said.text);
        }
        run.is_some()
    }

    /// Whether this node shows what runs say in a conversation, and somebody may see it.
    fn is_seen_here(&self, conversation: &ConversationRef, turn: TurnId) -> bool {
        let Ephemerals { channels, hints, .. } = &*self.ephemerals;
        hints.is_shown_here(&conversation.channel)
            && channels
                .get(&conversation.channel)
                .is_some_and(|channel| !channel.runs_at_each_node() || channel.is_watched(conversation, turn))
    }

    fn begin(&self, turn: &TurnRecord, said: &RunText) {
        let (ephemerals, address) = (&self.ephemerals, &turn.event.conversation);
        let Some(channel) = ephemerals.channels.get(&address.channel) else { return };
        let capabilities = channel.capabilities(address);
        let shows_nothing = capabilities.drafts == Support::No && capabilities.typing == Support::No;
        let is_here = self.slots.ran(turn.conversation, turn.id).is_some();
        if shows_nothing || is_here || !is_shown(turn, said.run) {
            return;
        }
        let (text, stop) = (Arc::<DraftText>::default(), ephemerals.lifecycle.ended.child_token());
        let run = ShownRun {
            number: said.run,
            conversation: address.clone(),
            version: turn.version,
            text: Arc::clone(&text),
            stop: stop.clone(),
        };
        run.say(&said.text);
        ephemerals.drafts.begin(turn.id, Arc::clone(&text), Some(stop.clone()));
        if let Some(before) = self.shown().insert(turn.id, run) {
            before.stop.cancel();
        }
        if capabilities.drafts != Support::No {
            let drafts = DraftTask {
                ephemerals: Arc::clone(ephemerals),
                turn: turn.clone(),
                text,
                interval: capabilities.draft_interval,
                are_messages: capabilities.drafts_are_messages,
                // Only the text is kept for other nodes.
                has_steps: false,
                stop: stop.clone(),
                told: None,
            };
            tokio::spawn(drafts.run());
        }
        if capabilities.typing != Support::No {
            // It ends with the others.
            drop(Typing::start(ephemerals, turn, &capabilities, &stop, false));
        }
    }

    /// Stops what is not to be shown any more: the run has ended or may say nothing now, another node has the channel, or nobody sees it.
    pub(crate) async fn look(&self) -> Result<(), StoreError> {
        let seen: Vec<_> = self.shown().iter().map(|(turn, run)| (*turn, run.version)).collect();
        if seen.is_empty() {
            return Ok(());
        }
        for id in self.ephemerals.texts.changed_turns(&seen).await? {
            let turn = self.ephemerals.store.readable_turn(id).await?;
            if let Some(run) = self.shown().get_mut(&id) {
                match turn.filter(|turn| is_shown(turn, run.number)) {
                    Some(turn) => run.version = turn.version,
                    None => run.stop.cancel(),
                }
            }
        }
        self.shown().retain(|turn, run| {
            let goes_on = !run.stop.is_cancelled() && self.is_seen_here(&run.conversation, *turn);
            if !goes_on {
                run.stop.cancel();
                self.ephemerals.drafts.end(*turn, &run.text);
            }
            goes_on
        });
        Ok(())
    }

    fn shown(&self) -> MutexGuard<'_, HashMap<TurnId, ShownRun>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a run of a turn is in flight, and may still say something before the answer.
fn is_shown(turn: &TurnRecord, run: u32) -> bool {
    turn.runs == run && turn.obligation.may_draft()
}
