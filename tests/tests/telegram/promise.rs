//! What every platform keeps to when sending goes wrong, on Telegram: what may have arrived is sent again, and says
//! so.

use std::{cell::RefCell, time::Duration};

use rejoinder_telegram_double::{ApiError, Fault, Outage as Whole, Person, TelegramDouble};
use rejoinder_tests::promise::{self, Calls, End, Meanwhile, Outage, Pace, Platform, Said, Trouble};
use rstest::rstest;
use tempfile::NamedTempFile;

const QUIET: &str = "streaming = \"off\"";

/// A Bot API server, and the file with the token that the gateway takes.
struct Telegram {
    double: TelegramDouble,
    token: NamedTempFile,
    next: RefCell<String>,
}

impl Telegram {
    fn said(messages: Vec<rejoinder_telegram_double::VisibleMessage>) -> Vec<Said> {
        let ours = messages.into_iter().filter(|message| message.ours);
        ours.map(|message| Said { id: message.id.to_string(), words: message.text }).collect()
    }
}

impl Platform for Telegram {
    type Person = Person;

    const PARAGRAPH: usize = 2500;
    const SHOWS_ONCE: bool = false;

    async fn new() -> Self {
        let double = TelegramDouble::start().await;
        let token = NamedTempFile::new().expect("a file for the token");
        std::fs::write(token.path(), double.token()).expect("the token is written");
        Self { double, token, next: RefCell::default() }
    }

    fn channel(&self, keys: &str) -> String {
        let section = crate::telegram(&self.double, keys);
        let (inline, file) = (format!("\"{}\"", self.double.token()), self.token.path().display());
        section.replace(&inline, &format!("{{ file = \"{file}\" }}"))
    }

    async fn person(&self) -> Person {
        self.double.person("Ada")
    }

    async fn says(&self, person: &Person, words: &str) {
        person.says(words);
    }

    async fn hears(&self, person: &Person) -> Vec<Said> {
        Self::said(person.sees())
    }

    async fn until<T>(&self, person: &Person, about: &str, mut find: impl FnMut(&[Said]) -> Option<T>) -> T {
        self.double.until(about, |view| find(&Self::said(view.visible(person.chat())))).await
    }

    async fn fails(&self, calls: Calls, trouble: Trouble, times: Option<u32>) {
        let mut fault = match trouble {
            Trouble::BadGateway => Fault::error_before(502),
            Trouble::DoneAndBadGateway => Fault::error_after(502),
            Trouble::Reset => Fault::reset(),
            Trouble::Lost => Fault::lost_answer(),
            Trouble::Silence => Fault::slow_answer(Duration::from_hours(1)),
            Trouble::Slow => Fault::slow_answer(Trouble::LATER),
            Trouble::Refused => Fault::refuse(ApiError::bad_request("MESSAGE_TOO_LONG")),
        };
        if let Calls::Sending(words) = calls {
            fault = fault.on("sendMessage").saying(words);
        }
        self.double.fault(match times {
            Some(times) => fault.times(times),
            None => fault.forever(),
        });
    }

    async fn heals(&self) {
        self.double.heal();
    }

    async fn goes_away(&self) {
        self.double.outage(Whole::Refuse);
    }

    async fn comes_back(&self) {
        let polls = |view: rejoinder_telegram_double::View<'_>| {
            view.calls("getUpdates").iter().filter(|call| call.succeeded()).count()
        };
        let before = self.double.look(polls);
        self.double.lift();
        self.double.until("it polls again", |view| (polls(view) > before).then_some(())).await;
    }

    async fn revokes_the_token(&self) {
        self.next.replace(self.double.reset_token());
    }

    async fn mends_the_token(&self) {
        std::fs::write(self.token.path(), &*self.next.borrow()).expect("the token is written");
    }
}

/// D8, D10, H2: three seconds in which messages get no good answer.
#[rstest]
#[case::bad_gateway(Outage::default())]
#[case::reset(Outage { trouble: Trouble::Reset, ..Outage::default() })]
#[case::some_arrive(Outage { arrive: 5, ..Outage::default() })]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn three_seconds_without_sending_cost_nobody_an_answer(
    #[case] outage: Outage,
    #[values(QUIET, "streaming = \"edit\"")] keys: &str,
) {
    promise::twenty_people_are_answered_after_an_outage::<Telegram>(outage, keys).await;
}

/// D8, D10, H2: the same where the operator wants what may have arrived to be sent again without a word.
#[rstest]
#[case::bad_gateway(Outage::default())]
#[case::reset(Outage { trouble: Trouble::Reset, ..Outage::default() })]
#[case::some_arrive(Outage { arrive: 5, ..Outage::default() })]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn three_seconds_without_sending_double_only_what_arrived(#[case] outage: Outage) {
    let keys = format!("{QUIET}\non_unknown = \"resend\"");
    promise::twenty_people_are_answered_without_a_label::<Telegram>(outage, &keys).await;
}

/// D8, D10, H2: twenty seconds in which messages, or all calls, get no good answer.
#[rstest]
#[case::bad_gateway(Trouble::BadGateway)]
#[case::reset(Trouble::Reset)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn twenty_seconds_without_telegram_cost_nobody_an_answer(
    #[case] trouble: Trouble,
    #[values(Calls::All, Calls::Sending(""))] calls: Calls,
    #[values("label", "resend")] on_unknown: &str,
) {
    let keys = format!("{QUIET}\non_unknown = \"{on_unknown}\"");
    let outage = Outage { calls, trouble, lasts: Duration::from_secs(20), faster: 10, ..Outage::default() };
    if on_unknown == "label" {
        promise::twenty_people_are_answered_after_an_outage::<Telegram>(outage, &keys).await;
    } else {
        promise::twenty_people_are_answered_without_a_label::<Telegram>(outage, &keys).await;
    }
}

/// H3.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_waits_goes_when_telegram_is_back(
    #[values(Meanwhile::Silence, Meanwhile::Question)] meanwhile: Meanwhile,
) {
    promise::what_waits_goes_when_the_platform_is_back::<Telegram>(meanwhile, QUIET).await;
}

/// D10, H3.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_waits_goes_when_the_token_is_mended() {
    promise::what_waits_goes_when_the_token_is_mended::<Telegram>(QUIET).await;
}

/// B10, D7.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_part_of_a_long_answer_is_seen(#[values(QUIET, "streaming = \"edit\"")] keys: &str) {
    promise::every_part_of_a_long_answer_is_seen::<Telegram>(keys).await;
}

/// A18, B10.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_stops_in_the_middle_says_so(#[values(End::Refused, End::GivenUp)] end: End) {
    promise::what_stops_in_the_middle_says_so::<Telegram>(end, QUIET).await;
}

/// B13, D7.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_draft_whose_response_is_lost_leaves_one(#[values(Pace::AtOnce, Pace::Quick, Pace::Slow)] pace: Pace) {
    promise::a_draft_whose_response_is_lost_leaves_one::<Telegram>(pace).await;
}

/// B13, D1.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_process_killed_before_it_noted_its_draft_leaves_one(
    #[values(Pace::AtOnce, Pace::Quick, Pace::Slow)] pace: Pace,
) {
    promise::a_process_killed_before_it_noted_its_draft_leaves_one::<Telegram>(pace).await;
}

/// B13, D1: design §9 for what is shown of an answer.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_while_the_answer_grows_leaves_one(
    #[values("draft_claimed:1", "draft_attempt_started:1", "draft_attempt_ended:1", "draft_noted:1")] point: &str,
    #[values(Pace::Quick, Pace::Slow)] pace: Pace,
) {
    promise::a_crash_while_the_answer_grows_leaves_one::<Telegram>(point, pace).await;
}

/// A10, B13.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deferral_grows_into_the_answer() {
    promise::a_deferral_grows_into_the_answer::<Telegram>().await;
}

/// A10, D7.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deferral_whose_response_is_lost_leaves_one() {
    promise::a_deferral_whose_response_is_lost_leaves_one::<Telegram>().await;
}

/// A10, D1.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_process_killed_before_it_noted_its_deferral_leaves_one() {
    promise::a_process_killed_before_it_noted_its_deferral_leaves_one::<Telegram>().await;
}

/// B13, D1, E1, E3.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn killed_again_and_again_while_answers_grow(#[values(QUIET, "streaming = \"edit\"")] keys: &str) {
    promise::killed_again_and_again_while_answers_grow::<Telegram>(keys).await;
}
