//! The rate gate: decides what may be sent to a platform now.
//!
//! There is one budget for an account and one for each of its chats, shared by everything
//! that is sent there. Everything but a final signal leaves a part of the burst, so that a final signal goes at once. Updates of
//! drafts may use all that refills beyond that part. Scopes that a platform has blocked are
//! checked before any budget, and are stored, so that a restart does not forget them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use dashmap::DashMap;
use rejoinder_guard::Timestamp;

use crate::{
    model::{Capabilities, ChannelId, Class, ConversationRef, Rate},
    outbox::account_line::AccountLine,
    ports::{BlockedScope, Pause, SharedClock},
};

/// The number of sends after which the budgets of idle chats are removed.
const FORGET_EVERY: u32 = 4096;

/// How long what waits for a paused channel waits before it looks again. When the channel is resumed, it is told.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// What must refill before the next send, and how long that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refill {
    Chat(Duration),
    Account(Duration),
}

/// A budget: when it is full again, as a time since the epoch.
#[derive(Clone, Copy, Default)]
struct Budget {
    full_at: Duration,
}

impl Budget {
    /// The time until a send of `class` fits in.
    fn refill(self, rate: Rate, class: Class, now: Duration) -> Duration {
        self.full_at.saturating_sub(now).saturating_sub(rate.per * (share(rate, class) - 1))
    }

    fn spend(&mut self, rate: Rate, now: Duration) {
        self.full_at = self.full_at.max(now) + rate.per;
    }

    fn give_back(&mut self, rate: Rate) {
        self.full_at = self.full_at.saturating_sub(rate.per);
    }
}

/// How many sends of a burst may be used up when one of `class` is made, itself included.
fn share(rate: Rate, class: Class) -> u32 {
    let share = match class {
        Class::Final => rate.burst,
        // The message of a first draft or of a deferral is edited into the answer: one send is left for that.
        Class::Interim => rate.burst - 1,
        Class::Typing | Class::Draft => rate.burst / 2,
    };
    share.max(1)
}

/// A chat. The empty one stands for its account.
type BudgetKey = (ChannelId, Arc<str>);

/// The budgets of all accounts and chats.
#[derive(Default)]
struct Budgets {
    by_chat: HashMap<BudgetKey, Budget>,
    sends: u32,
}

impl Budgets {
    /// What must refill before a send of `class` fits in. Of chat and account, the chat: what waits for its chat need not stand in line.
    fn refill(&self, [chat, account]: &Scopes, class: Class, now: Duration) -> Option<Refill> {
        let refill = |scope: &Option<(Rate, BudgetKey)>| {
            let (rate, key) = scope.as_ref()?;
            let refill = self.by_chat.get(key).copied().unwrap_or_default().refill(*rate, class, now);
            (!refill.is_zero()).then_some(refill)
        };
        refill(chat).map(Refill::Chat).or_else(|| refill(account).map(Refill::Account))
    }
}

/// The budgets that a send in a conversation is taken from: that of its chat, and that of the account.
type Scopes = [Option<(Rate, BudgetKey)>; 2];

fn scopes(conversation: &ConversationRef, capabilities: &Capabilities, class: Class) -> Scopes {
    let usable = |rate: Option<Rate>| rate.filter(|rate| !rate.per.is_zero() && rate.burst > 0);
    let key = |chat: &Arc<str>| (conversation.channel.clone(), Arc::clone(chat));
    // Platforms limit the messages of a chat. A typing notice and a mark are none.
    let chat = usable(capabilities.conversation_rate).filter(|_| class != Class::Typing);
    let chat = chat.map(|rate| (rate, key(&conversation.chat)));
    let account = usable(capabilities.account_rate).map(|rate| (rate, key(&Arc::from(""))));
    [chat, account]
}

/// Every channel's budgets and blocks.
pub(crate) struct RateGate {
    clock: SharedClock,
    budgets: Mutex<Budgets>,
    lines: DashMap<ChannelId, Arc<AccountLine>>,
    blocked: DashMap<(ChannelId, Option<String>), Timestamp>,
    paused: DashMap<ChannelId, Pause>,
    /// Held while a channel is paused or resumed: memory changes in the order of the rows.
    pub(crate) pausing: tokio::sync::Mutex<()>,
}

impl RateGate {
    pub(crate) fn new(clock: SharedClock, scopes: Vec<BlockedScope>, paused: Vec<(ChannelId, Pause)>) -> Self {
        let paused = paused.into_iter().collect();
        let (lines, blocked, pausing) = (DashMap::new(), DashMap::new(), tokio::sync::Mutex::default());
        let gate = Self { clock, budgets: Mutex::default(), lines, blocked, paused, pausing };
        for scope in scopes {
            gate.block(&scope);
        }
        gate
    }

    /// Blocks a scope; of two blocks, the one that ends later counts.
    pub(crate) fn block(&self, scope: &BlockedScope) {
        self.blocked
            .entry((scope.channel.clone(), scope.chat.clone()))
            .and_modify(|until| *until = (*until).max(scope.until))
            .or_insert(scope.until);
    }

    pub(crate) fn pause(&self, channel: &ChannelId, pause: Option<Pause>) {
        match pause {
            Some(pause) => drop(self.paused.insert(channel.clone(), pause)),
            None => drop(self.paused.remove(channel)),
        }
    }

    /// Takes over which channels are paused. Returns those that are no more.
    pub(crate) fn replace_pauses(&self, paused: Vec<(ChannelId, Pause)>) -> Vec<ChannelId> {
        let is_paused = |channel: &ChannelId| paused.iter().any(|(one, _)| one == channel);
        let resumed = self.paused.iter().map(|entry| entry.key().clone()).filter(|channel| !is_paused(channel));
        let resumed: Vec<_> = resumed.collect();
        for channel in &resumed {
            self.pause(channel, None);
        }
        for (channel, pause) in paused {
            self.pause(&channel, Some(pause));
        }
        resumed
    }

    pub(crate) fn paused(&self, channel: &ChannelId) -> Option<Pause> {
        self.paused.get(channel).map(|pause| pause.clone())
    }

    /// When the platform's block of a conversation ends, if it is blocked. Of a paused channel, when to look again.
    pub(crate) fn blocked_until(&self, conversation: &ConversationRef) -> Option<Timestamp> {
        if self.paused.contains_key(&conversation.channel) {
            return Some(self.clock.now() + LOOK_AGAIN);
        }
        self.limited_until(conversation)
    }

    /// When the platform's block of a conversation ends, if it is blocked.
    pub(crate) fn limited_until(&self, conversation: &ConversationRef) -> Option<Timestamp> {
        [None, Some(conversation.chat.to_string())]
            .into_iter()
            .filter_map(|chat| self.block_of(&conversation.channel, chat))
            .max()
    }

    /// When the platform's block of a whole account ends, if it is blocked.
    pub(crate) fn account_blocked_until(&self, channel: &ChannelId) -> Option<Timestamp> {
        self.block_of(channel, None)
    }

    /// When the last of the platform's blocks on a channel ends, that of its account or of a chat.
    pub(crate) fn last_block(&self, channel: &ChannelId) -> Option<Timestamp> {
        let now = self.clock.now();
        let of_channel = self.blocked.iter().filter(|block| block.key().0 == *channel);
        of_channel.map(|block| *block.value()).filter(|until| *until > now).max()
    }

    fn block_of(&self, channel: &ChannelId, chat: Option<String>) -> Option<Timestamp> {
        let (key, now) = ((channel.clone(), chat), self.clock.now());
        self.blocked.remove_if(&key, |_, until| *until <= now);
        self.blocked.get(&key).map(|until| *until)
    }

    /// The line of the lanes that wait for the budget of an account.
    pub(crate) fn line(&self, channel: &ChannelId) -> Arc<AccountLine> {
        Arc::clone(&self.lines.entry(channel.clone()).or_default())
    }

    /// Takes one send of `class` from the budgets of `conversation`, or nothing from either.
    ///
    /// # Errors
    /// What must refill first.
    pub(crate) fn take(
        &self,
        conversation: &ConversationRef,
        capabilities: &Capabilities,
        class: Class,
    ) -> Result<(), Refill> {
        let (now, scopes) = (self.now(), scopes(conversation, capabilities, class));
        let mut budgets = self.budgets();
        if let Some(refill) = budgets.refill(&scopes, class, now) {
            return Err(refill);
        }
        for (rate, key) in scopes.into_iter().flatten() {
            budgets.by_chat.entry(key).or_default().spend(rate, now);
        }
        budgets.sends = budgets.sends.wrapping_add(1);
        if budgets.sends.is_multiple_of(FORGET_EVERY) {
            budgets.by_chat.retain(|_, budget| budget.full_at > now);
        }
        Ok(())
    }

    /// How long it takes until a send of `class` fits in; `None`: it does now.
    pub(crate) fn refill(
        &self,
        conversation: &ConversationRef,
        capabilities: &Capabilities,
        class: Class,
    ) -> Option<Duration> {
        let scopes = scopes(conversation, capabilities, class);
        let refill = self.budgets().refill(&scopes, class, self.now());
        refill.map(|(Refill::Chat(refill) | Refill::Account(refill))| refill)
    }

    fn now(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.clock.now().as_millis()).unwrap_or(0))
    }

    /// Gives back what was [taken](Self::take) for a send that was not made.
    pub(crate) fn give_back(&self, conversation: &ConversationRef, capabilities: &Capabilities, class: Class) {
        let mut budgets = self.budgets();
        for (rate, key) in scopes(conversation, capabilities, class).into_iter().flatten() {
            if let Some(budget) = budgets.by_chat.get_mut(&key) {
                budget.give_back(rate);
            }
        }
    }

    fn budgets(&self) -> MutexGuard<'_, Budgets> {
        self.budgets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{clock::TestClock, scripted};

    fn limited(chat: Option<Rate>, account: Option<Rate>) -> Capabilities {
        Capabilities { conversation_rate: chat, account_rate: account, ..scripted::capabilities() }
    }

    fn conversation(chat: &str) -> ConversationRef {
        ConversationRef::new(ChannelId::new("test", "main"), chat)
    }

    const fn per_second(burst: u32) -> Rate {
        Rate { per: Duration::from_secs(1), burst }
    }

    #[test]
    fn a_budget_allows_a_burst_and_then_its_rate() {
        let clock = TestClock::new();
        let gate = RateGate::new(Arc::<TestClock>::clone(&clock), Vec::new(), Vec::new());
        let (here, limits) = (conversation("a"), limited(Some(per_second(2)), None));
        let take = || gate.take(&here, &limits, Class::Final);

        assert_eq!([take(), take()], [Ok(()), Ok(())]);
        assert_eq!(take(), Err(Refill::Chat(Duration::from_secs(1))));
        clock.advance(Duration::from_millis(400));
        assert_eq!(take(), Err(Refill::Chat(Duration::from_millis(600))));
        clock.advance(Duration::from_millis(600));
        assert_eq!([take(), take()], [Ok(()), Err(Refill::Chat(Duration::from_secs(1)))]);
    }

    #[test]
    fn each_class_leaves_room_for_those_before_it() {
        let gate = RateGate::new(TestClock::new(), Vec::new(), Vec::new());
        let (here, limits) = (conversation("a"), limited(None, Some(per_second(4))));
        let take = |class| gate.take(&here, &limits, class).is_ok();

        assert_eq!([take(Class::Draft), take(Class::Typing)], [true, true]);
        assert_eq!([take(Class::Draft), take(Class::Typing)], [false, false]);
        assert_eq!([take(Class::Interim), take(Class::Interim)], [true, false]);
        assert_eq!([take(Class::Final), take(Class::Final)], [true, false]);
    }

    /// For as long as an answer grows, and the answer still goes at once.
    #[test]
    fn drafts_may_use_all_that_refills() {
        let clock = TestClock::new();
        let gate = RateGate::new(Arc::<TestClock>::clone(&clock), Vec::new(), Vec::new());
        let (here, limits) = (conversation("a"), limited(Some(per_second(5)), None));
        let take = |class| gate.take(&here, &limits, class);
        assert_eq!(take(Class::Interim), Ok(()));

        for _ in 0..60 {
            clock.advance(Duration::from_secs(1));
            assert_eq!(take(Class::Draft), Ok(()));
        }

        assert_eq!(gate.refill(&here, &limits, Class::Final), None);
        assert_eq!([take(Class::Final), take(Class::Final), take(Class::Final)], [Ok(()); 3]);
        // The next draft is the first of another answer.
        assert_eq!(take(Class::Interim), Err(Refill::Chat(Duration::from_secs(1))));
        assert_eq!(gate.refill(&here, &limits, Class::Draft), Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_typing_notice_is_no_message_of_its_chat() {
        let gate = RateGate::new(TestClock::new(), Vec::new(), Vec::new());
        let (here, limits) = (conversation("a"), limited(Some(per_second(1)), Some(per_second(9))));

        for _ in 0..3 {
            assert_eq!(gate.take(&here, &limits, Class::Typing), Ok(()));
        }

        assert_eq!(gate.take(&here, &limits, Class::Final), Ok(()));
    }

    /// What the account refuses costs the chat nothing.
    #[test]
    fn a_refused_send_takes_from_no_budget() {
        let clock = TestClock::new();
        let gate = RateGate::new(Arc::<TestClock>::clone(&clock), Vec::new(), Vec::new());
        let slow = Rate { per: Duration::from_mins(1), burst: 1 };
        let limits = limited(Some(slow), Some(per_second(1)));
        gate.take(&conversation("a"), &limits, Class::Final).expect("it fits");

        let refused = gate.take(&conversation("b"), &limits, Class::Final);
        assert_eq!(refused, Err(Refill::Account(Duration::from_secs(1))));
        clock.advance(Duration::from_secs(1));

        assert_eq!(gate.take(&conversation("b"), &limits, Class::Final), Ok(()));
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let gate = RateGate::new(TestClock::new(), Vec::new(), Vec::new());
        let (here, limits) = (conversation("a"), limited(Some(per_second(2)), Some(per_second(4))));
        for class in [Class::Final, Class::Interim] {
            for _ in 0..9 {
                assert_eq!(gate.take(&here, &limits, class), Ok(()));
                gate.give_back(&here, &limits, class);
            }
        }
        let take = || gate.take(&here, &limits, Class::Interim).is_ok();

        assert_eq!([take(), take()], [true, false]);
    }
}
