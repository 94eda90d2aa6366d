//! What a person sees when sending fails, as scenarios that every platform must pass.
//!
//! A platform's tests implement [`Platform`] for its test double and run these scenarios;
//! [`promise_tests!`](crate::promise_tests) and [`crash_tests!`](crate::crash_tests) contain those that all platforms
//! share. To add a scenario, write a function here that takes a `Platform`, and a test in one of these macros
//! (`promise/tests.rs`) or in the tests of the platforms that it applies to.

#![expect(clippy::missing_panics_doc, reason = "a scenario panics when it fails")]

mod commands;
mod crashes;
mod drafts;
mod files;
mod kills;
mod outages;
mod pairing;
mod parts;
mod questions;
mod queues;
mod tests;

use std::{fmt::Debug, time::Duration};

pub use commands::{TellsApart, each_is_answered, every_command_is_answered, is_shown, with_own_commands};
pub use crashes::{
    a_crash_at_any_step_leaves_no_draft_behind, a_crash_at_any_step_loses_nothing_and_answers_once,
    a_crash_at_any_step_with_an_agent_of, a_crash_between_two_parts_sends_no_part_twice,
    a_crash_while_the_answer_grows_leaves_one, a_poisonous_turn_is_quarantined_and_answered,
};
pub use drafts::{
    Pace, a_deferral_grows_into_the_answer, a_deferral_whose_response_is_lost_leaves_one,
    a_draft_whose_response_is_lost_leaves_one, a_process_killed_before_it_noted_its_deferral_leaves_one,
    a_process_killed_before_it_noted_its_draft_leaves_one,
};
pub use files::{
    FileMessage, FileSteps, SharesFiles, a_crash_at_any_step_loses_no_file, a_spoken_answer_is_shown_once_over_kills,
};
pub use kills::{killed_again_and_again_every_message_is_answered, killed_again_and_again_while_answers_grow};
pub use outages::{
    Meanwhile, Outage, a_waiting_answer_is_sent_when_the_token_is_restored, twenty_people_are_answered_after_an_outage,
    twenty_people_are_answered_without_a_label, twenty_people_see_few_copies,
    what_waits_goes_when_the_platform_is_back,
};
pub use pairing::a_stranger_is_let_in_with_their_code;
pub use parts::{End, every_part_of_a_long_answer_is_seen, what_stops_in_the_middle_says_so};
pub use questions::a_pick_answers_its_own_question_after_a_kill;
pub use queues::what_comes_at_once_is_answered_once_in_a_queue;

use crate::GatewayBuilder;

/// The labels of a copy, sent again because its arrival is unknown, and of an answer after a draft or deferral that may have
/// arrived.
const LABELS: [&str; 2] =
    ["(Sent again, because it may not have arrived.)", "(This replaces any unfinished message above.)"];
/// The text of a deferral.
const DEFERRAL: &str = "Still working on this.";

/// The agent's answer.
const WHOLE: &str = "one two three four five six";
/// The beginning of [`WHOLE`].
const BEGINNING: &str = "one two three";

/// How a call fails.
#[derive(Clone, Copy, Debug)]
pub enum Failure {
    /// Not executed; the response is a 502.
    BadGateway,
    /// Not executed; the response is a 502 with the page of a proxy, where the platform's own errors look different.
    Page,
    /// Executed; the response is a 502.
    DoneAndBadGateway,
    /// Not executed; the connection closes without a response.
    Reset,
    /// Executed; the connection closes without a response.
    Lost,
    /// Executed; no response.
    Silence,
    /// Rejected permanently.
    Refused,
    /// Executed at once; the response is delayed by a tenth of a second.
    Slow,
}

impl Failure {
    /// The delay of a [slow](Self::Slow) response.
    pub const SLOW_DELAY: Duration = Duration::from_millis(100);
}

/// Which calls fail.
#[derive(Clone, Copy, Debug)]
pub enum Calls {
    /// All calls of the gateway.
    All,
    /// Those that send a message which contains this text.
    Sending(&'static str),
}

/// A message from the gateway, as a person's chat shows it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// The platform's id of the message.
    pub id: String,
    pub text: String,
}

impl SentMessage {
    fn is_copy(&self) -> bool {
        LABELS.iter().any(|label| self.text.starts_with(label))
    }
}

/// A platform with an account for the gateway, and people who write to it in direct chats.
#[expect(async_fn_in_trait, reason = "a test awaits them where it calls them")]
pub trait Platform: Sized {
    /// A person with a chat.
    type Person;

    /// Where people write, and other conditions that affect how the gateway receives it.
    type Place: Copy + Debug + Default;

    /// The length of text that always fills a part of its own: one such paragraph fits into a message, two do not.
    const PARAGRAPH: usize;

    /// Whether the platform removes duplicates. Where it does not, a copy must carry the label.
    const SHOWS_ONCE: bool;

    /// A healthy platform where people write in the default place, a direct chat.
    #[must_use]
    async fn new() -> Self {
        Self::at(Self::Place::default()).await
    }

    /// As [`new`](Self::new), where people write in this place.
    async fn at(place: Self::Place) -> Self;

    /// A gateway to be started, with a channel that admits everybody and has additional `keys`.
    fn gateway(&self, keys: &str) -> GatewayBuilder;

    /// A new person, whose chat the running gateway knows, or will know once they write.
    async fn person(&self) -> Self::Person;

    /// Sends a message that is meant for the gateway.
    async fn says(&self, person: &Self::Person, text: &str);

    /// Picks a choice of a question, by a button or a reaction.
    async fn picks(&self, person: &Self::Person, question: &SentMessage, choice: &str);

    /// The gateway's messages in a person's chat, oldest first.
    async fn messages_of(&self, person: &Self::Person) -> Vec<SentMessage>;

    /// Waits until `find` returns `Some` for the messages that a person sees.
    async fn until<T>(&self, person: &Self::Person, about: &str, find: impl FnMut(&[SentMessage]) -> Option<T>) -> T;

    /// Makes the next `times` such calls fail; without a number, all until [`clear_faults`](Self::clear_faults).
    async fn fail_calls(&self, calls: Calls, failure: Failure, times: Option<u32>);

    /// Called after the gateway's process has ended and before it is started again.
    async fn after_crash(&self) {}

    /// Waits until the platform knows that the gateway has accepted what was sent.
    async fn until_acknowledged(&self) {}

    /// Ends all failures.
    async fn clear_faults(&self);

    /// Closes connections and refuses new ones.
    async fn disconnect(&self);

    /// Undoes [`disconnect`](Self::disconnect). Returns once a poll or sync of the gateway has succeeded.
    async fn reconnect(&self);

    /// Invalidates the credentials of the gateway's account.
    async fn revoke_token(&self);

    /// Gives the operator's configuration the valid credentials; a gateway that is started uses them.
    async fn restore_token(&self);
}

/// Waits for a message that contains `text`, and returns the newest such message.
async fn wait_for_text<P: Platform>(platform: &P, person: &P::Person, text: &str) -> SentMessage {
    let found = |messages: &[SentMessage]| messages.iter().rev().find(|it| it.text.contains(text)).cloned();
    platform.until(person, &format!("`{text}`"), found).await
}

/// Checks that `messages` contains the complete answer once, and beside it only labelled copies.
fn check_answered_once<P: Platform>(messages: &[SentMessage], whole: &str) -> Result<(), String> {
    let wholes = messages.iter().filter(|it| it.text == whole || (it.is_copy() && it.text.ends_with(whole))).count();
    let plain = messages.iter().filter(|it| !it.is_copy()).count();
    let holds =
        if P::SHOWS_ONCE { messages.len() == 1 && wholes == 1 && plain == 1 } else { plain <= 1 && wholes >= 1 };
    if holds { Ok(()) } else { Err(format!("not `{whole}`, once: {:?}", texts(messages))) }
}

/// As [`check_answered_once`] after a single failure: with one copy at most.
fn assert_answered_once<P: Platform>(messages: &[SentMessage], whole: &str) {
    check_answered_once::<P>(messages, whole).unwrap_or_else(|why| panic!("{why}"));
    assert!(messages.len() <= 2, "more than one copy of `{whole}`: {:?}", texts(messages));
}

fn texts(messages: &[SentMessage]) -> Vec<&str> {
    messages.iter().map(|it| it.text.as_str()).collect()
}
