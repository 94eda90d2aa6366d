//! What every platform keeps to, told once for all of them: what a person sees when sending goes wrong.
//!
//! A platform's tests implement [`Platform`] for its counterpart and run these scenarios, with
//! [`promise_tests!`](crate::promise_tests) and [`crash_tests!`](crate::crash_tests) those that all platforms share. To
//! add a scenario: a function here that takes a `Platform`, and a test in one of these macros (`promise/tests.rs`), or in
//! the tests of the platforms that it is for.

#![expect(clippy::missing_panics_doc, reason = "a scenario panics when what it tells is not so")]

mod crashes;
mod drafts;
mod kills;
mod outages;
mod parts;
mod tests;

use std::{fmt::Debug, time::Duration};

pub use crashes::{
    a_crash_at_any_step_leaves_no_draft_behind, a_crash_at_any_step_loses_nothing_and_answers_once,
    a_crash_between_two_parts_sends_no_part_twice, a_crash_while_the_answer_grows_leaves_one,
    a_poisonous_turn_is_quarantined_and_answered,
};
pub use drafts::{
    Pace, a_deferral_grows_into_the_answer, a_deferral_whose_response_is_lost_leaves_one,
    a_draft_whose_response_is_lost_leaves_one, a_process_killed_before_it_noted_its_deferral_leaves_one,
    a_process_killed_before_it_noted_its_draft_leaves_one,
};
pub use kills::{killed_again_and_again_every_message_is_answered, killed_again_and_again_while_answers_grow};
pub use outages::{
    Meanwhile, Outage, twenty_people_are_answered_after_an_outage, twenty_people_are_answered_without_a_label,
    what_waits_goes_when_the_platform_is_back, what_waits_goes_when_the_token_is_mended,
};
pub use parts::{End, every_part_of_a_long_answer_is_seen, what_stops_in_the_middle_says_so};

use crate::GatewayBuilder;

/// What stands before what is sent again, because nobody knows whether it arrived.
const LABEL: &str = "(Sent again, because it may not have arrived.)";
/// What is said where an answer takes longer.
const DEFERRAL: &str = "Still working on this.";

/// An answer of an agent's.
const WHOLE: &str = "one two three four five six";
/// What it begins with.
const BEGINNING: &str = "one two three";

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug)]
pub enum Trouble {
    /// It is not done; the answer is a 502.
    BadGateway,
    /// It is done; the answer is a 502.
    DoneAndBadGateway,
    /// It is not done; the connection ends without an answer.
    Reset,
    /// It is done; the connection ends without an answer.
    Lost,
    /// It is done; nobody answers.
    Silence,
    /// It is refused, and will always be.
    Refused,
    /// It is done at once, and answered a tenth of a second later.
    Slow,
}

impl Trouble {
    /// How much later an answer comes that is [slow](Self::Slow).
    pub const LATER: Duration = Duration::from_millis(100);
}

/// Which calls something goes wrong with.
#[derive(Clone, Copy, Debug)]
pub enum Calls {
    /// All calls of the gateway.
    All,
    /// Those that send a message with these words in it.
    Sending(&'static str),
}

/// A message of the gateway's, as it stands in a person's chat now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Which message it is.
    pub id: String,
    /// What it says.
    pub words: String,
}

impl Said {
    fn is_copy(&self) -> bool {
        self.words.starts_with(LABEL)
    }
}

/// A platform, with an account for the gateway and people who write to it in direct chats.
#[expect(async_fn_in_trait, reason = "a test awaits them where it calls them")]
pub trait Platform: Sized {
    /// Somebody with a chat.
    type Person;

    /// Where people write, and what else makes a difference to how the gateway hears of it.
    type Place: Copy + Debug + Default;

    /// How much text is surely a part of its own: two such paragraphs do not fit into one message, and one does.
    const PARAGRAPH: usize;

    /// Whether what is sent twice is seen once. Where it is not, the second one must say that it is sent again.
    const SHOWS_ONCE: bool;

    /// A platform where all is well, and people write in the usual place: a direct chat.
    #[must_use]
    async fn new() -> Self {
        Self::at(Self::Place::default()).await
    }

    /// As [`new`](Self::new), where people write in this place.
    async fn at(place: Self::Place) -> Self;

    /// A gateway with a channel that lets everybody in, with more keys, to be started.
    fn gateway(&self, keys: &str) -> GatewayBuilder;

    /// Somebody new, whose chat the running gateway knows, or will know by what is said there first.
    async fn person(&self) -> Self::Person;

    /// Says something that is meant for the gateway.
    async fn says(&self, person: &Self::Person, words: &str);

    /// What stands in a person's chat from the gateway, oldest first.
    async fn hears(&self, person: &Self::Person) -> Vec<Said>;

    /// Waits until `find` finds something in what a person hears.
    async fn until<T>(&self, person: &Self::Person, about: &str, find: impl FnMut(&[Said]) -> Option<T>) -> T;

    /// From now on the next `times` such calls (without a number, all until it heals) go wrong.
    async fn fails(&self, calls: Calls, trouble: Trouble, times: Option<u32>);

    /// The process of the gateway has ended, and will be started again.
    async fn has_crashed(&self) {}

    /// Waits until the platform knows that what was said has arrived.
    async fn is_acknowledged(&self) {}

    /// Nothing goes wrong any more.
    async fn heals(&self);

    /// Connections end, and new ones are refused.
    async fn goes_away(&self);

    /// Takes back [`goes_away`](Self::goes_away). Returns once the gateway has asked for what is new, and was answered.
    async fn comes_back(&self);

    /// What the gateway's account is known by is worth nothing any more.
    async fn revokes_the_token(&self);

    /// The operator has put in what the account is known by now; a gateway that is started takes it.
    async fn mends_the_token(&self);
}

/// Waits until somebody hears something with these words in it; gives it.
async fn finds<P: Platform>(platform: &P, person: &P::Person, words: &str) -> Said {
    let found = |said: &[Said]| said.iter().rev().find(|it| it.words.contains(words)).cloned();
    platform.until(person, &format!("`{words}`"), found).await
}

/// Checks that `said` is one answer, whole, and nothing beside it that does not say that it is sent again.
fn is_answered_once<P: Platform>(said: &[Said], whole: &str) -> Result<(), String> {
    let wholes = said.iter().filter(|it| it.words == whole || (it.is_copy() && it.words.ends_with(whole))).count();
    let plain = said.iter().filter(|it| !it.is_copy()).count();
    let holds = if P::SHOWS_ONCE { said.len() == 1 && wholes == 1 && plain == 1 } else { plain <= 1 && wholes >= 1 };
    if holds { Ok(()) } else { Err(format!("not `{whole}`, once: {:?}", words(said))) }
}

/// As [`is_answered_once`], where one thing went wrong: there is one copy at most.
fn assert_answered_once<P: Platform>(said: &[Said], whole: &str) {
    is_answered_once::<P>(said, whole).unwrap_or_else(|why| panic!("{why}"));
    assert!(said.len() <= 2, "more than one copy of `{whole}`: {:?}", words(said));
}

fn words(said: &[Said]) -> Vec<&str> {
    said.iter().map(|it| it.words.as_str()).collect()
}
