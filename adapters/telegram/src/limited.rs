//! Decides what a 429 blocks. Telegram does not say whether it limits the chat or the whole bot.
//!
//! Answers to one person do not use up a private chat's budget. So when several private chats are limited at the same
//! time, the bot is. Groups have small budgets of their own, which say nothing about other chats.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use rejoinder_core::{Scope, Timestamp};

/// How many private chats must be limited at the same time to conclude that the bot is.
const CHATS: usize = 3;

/// The limited chats, with the end of each limit.
#[derive(Debug, Default)]
pub(crate) struct LimitedChats(Mutex<HashMap<i64, Timestamp>>);

impl LimitedChats {
    /// Notes that a 429 limits `chat` for `pause`, and returns what it blocks.
    pub(crate) fn scope(&self, chat: i64, pause: Duration, now: Timestamp) -> Scope {
        let mut limited = self.0.lock();
        limited.retain(|_, until| *until > now);
        limited.insert(chat, now + pause);
        let people = limited.keys().filter(|chat| **chat > 0).count();
        if chat > 0 && people >= CHATS { Scope::Account } else { Scope::Conversation }
    }

    /// How much longer a chat is limited, so that ephemerals can be skipped.
    pub(crate) fn remaining(&self, chat: i64, now: Timestamp) -> Option<Duration> {
        let limited = self.0.lock();
        limited.get(&chat).map(|until| until.since(now)).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(5);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    /// H4.
    #[test]
    fn one_chat_that_is_limited_blocks_itself() {
        let limited = LimitedChats::default();

        for second in 0..10 {
            assert_eq!(limited.scope(1, PAUSE, at(second)), Scope::Conversation);
            assert_eq!(limited.scope(-100 - second, PAUSE, at(second)), Scope::Conversation);
        }
    }

    #[test]
    fn a_chat_is_limited_until_its_time_has_come() {
        let limited = LimitedChats::default();
        limited.scope(-100, PAUSE, at(0));

        assert_eq!(limited.remaining(-100, at(2)), Some(Duration::from_secs(3)));
        assert_eq!(limited.remaining(-100, at(5)), None);
        assert_eq!(limited.remaining(1, at(2)), None);
    }

    #[test]
    fn several_people_at_one_time_mean_the_bot() {
        let limited = LimitedChats::default();

        assert_eq!(limited.scope(1, PAUSE, at(0)), Scope::Conversation);
        assert_eq!(limited.scope(2, PAUSE, at(1)), Scope::Conversation);
        assert_eq!(limited.scope(3, PAUSE, at(2)), Scope::Account);
        assert_eq!(limited.scope(4, PAUSE, at(20)), Scope::Conversation);
    }
}
