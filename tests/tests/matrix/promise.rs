//! What every platform keeps to when sending goes wrong, on Matrix: what may have arrived is sent again as the same
//! transaction, which is shown once.

use std::time::Duration;

use rejoinder_matrix_server::{Account, Fault, Homeserver, Message, Proxy};
use rejoinder_tests::{
    eventually,
    promise::{self, Calls, End, Meanwhile, Outage, Pace, Platform, Said, Trouble},
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{Chat, Place, QUIET};

/// A way to the homeserver, on which people talk with the account in the open or encrypted.
struct Matrix<const IS_ENCRYPTED: bool> {
    homeserver: &'static Homeserver,
    account: Account,
    way: Proxy,
}

type Open = Matrix<false>;
type Encrypted = Matrix<true>;

fn said(messages: &[Message]) -> Vec<Said> {
    messages.iter().map(|message| Said { id: message.id.clone(), words: message.text.clone() }).collect()
}

fn error(status: u16, code: &str) -> Fault {
    Fault::Answer { status, body: json!({ "errcode": code, "error": "no" }) }
}

impl<const IS_ENCRYPTED: bool> Matrix<IS_ENCRYPTED> {
    fn syncs(&self) -> usize {
        self.way.calls().iter().filter(|call| call.path.contains("/sync") && call.status == 200).count()
    }
}

impl<const IS_ENCRYPTED: bool> Platform for Matrix<IS_ENCRYPTED> {
    type Person = Chat;

    const PARAGRAPH: usize = 10_000;
    const SHOWS_ONCE: bool = true;

    async fn new() -> Self {
        let homeserver = Homeserver::shared().await;
        let (account, way) = (homeserver.account("agent").await, homeserver.proxy().await);
        Self { homeserver, account, way }
    }

    fn channel(&self, keys: &str) -> String {
        crate::matrix(self.way.url(), &self.account, &format!("{keys}\nsync_timeout = \"1s\""))
    }

    async fn person(&self) -> Chat {
        let place = if IS_ENCRYPTED { Place::Encrypted } else { Place::Direct };
        let chat = Chat::new(self.homeserver, place, &self.account.user).await;
        chat.is_joined(&self.account.user).await;
        chat
    }

    async fn says(&self, chat: &Chat, words: &str) {
        chat.says(words).await;
    }

    async fn hears(&self, chat: &Chat) -> Vec<Said> {
        let user = &self.account.user;
        // An encrypting client sees things some time after they were sent, and this waits for that.
        chat.hears(user).await;
        chat.until_finds(user, "anything", |messages| Some(said(messages))).await
    }

    async fn until<T>(&self, chat: &Chat, about: &str, mut find: impl FnMut(&[Said]) -> Option<T>) -> T {
        chat.until_finds(&self.account.user, about, |messages| find(&said(messages))).await
    }

    async fn fails(&self, calls: Calls, trouble: Trouble, times: Option<u32>) {
        let (method, path, words) = match calls {
            Calls::All => ("", "", ""),
            // Nobody on the way can read what is encrypted.
            Calls::Sending(_) if IS_ENCRYPTED => ("PUT", "/send/m.room.encrypted/", ""),
            Calls::Sending(words) => ("PUT", crate::SEND, words),
        };
        let fault = match trouble {
            Trouble::BadGateway => Fault::Answer { status: 502, body: Value::from("Bad Gateway") },
            Trouble::DoneAndBadGateway => Fault::AnswerAfter { status: 502, body: Value::from("Bad Gateway") },
            Trouble::Reset => Fault::Reset,
            Trouble::Lost => Fault::LoseAnswer,
            Trouble::Silence => Fault::KeepAnswer,
            Trouble::Refused => error(413, "M_TOO_LARGE"),
            Trouble::Slow => Fault::SlowAnswer(Trouble::LATER),
        };
        let times = times.map_or(usize::MAX, |times| usize::try_from(times).expect("a number of calls"));
        self.way.fails_on(words, method, path, times, fault);
    }

    async fn heals(&self) {
        self.way.heals();
    }

    async fn goes_away(&self) {
        self.way.closes();
    }

    async fn comes_back(&self) {
        let before = self.syncs();
        self.way.opens();
        eventually("it syncs again", async || (self.syncs() > before).then_some(())).await;
    }

    async fn revokes_the_token(&self) {
        self.way.fails("", "", usize::MAX, error(401, "M_UNKNOWN_TOKEN"));
    }

    async fn mends_the_token(&self) {
        self.way.heals();
    }
}

/// D10, E8, H2: three seconds in which messages get no good answer.
#[rstest]
#[case::bad_gateway(Outage::default())]
#[case::reset(Outage { trouble: Trouble::Reset, ..Outage::default() })]
#[case::some_arrive(Outage { arrive: 5, ..Outage::default() })]
#[tokio::test]
async fn three_seconds_without_sending_cost_nobody_an_answer(
    #[case] outage: Outage,
    #[values(QUIET, "streaming = \"edit\"")] keys: &str,
) {
    promise::twenty_people_are_answered_after_an_outage::<Open>(outage, keys).await;
}

/// D10, E8, H2: twenty seconds in which nothing gets a good answer.
#[rstest]
#[case::bad_gateway(Trouble::BadGateway)]
#[case::reset(Trouble::Reset)]
#[tokio::test]
async fn twenty_seconds_without_the_homeserver_cost_nobody_an_answer(#[case] trouble: Trouble) {
    let lasts = Duration::from_secs(20);
    let outage = Outage { calls: Calls::All, trouble, lasts, faster: 10, ..Outage::default() };
    promise::twenty_people_are_answered_after_an_outage::<Open>(outage, QUIET).await;
}

/// H3.
#[rstest]
#[tokio::test]
async fn what_waits_goes_when_the_homeserver_is_back(
    #[values(Meanwhile::Silence, Meanwhile::Question)] meanwhile: Meanwhile,
) {
    promise::what_waits_goes_when_the_platform_is_back::<Open>(meanwhile, QUIET).await;
}

/// D10, H3.
#[tokio::test]
async fn what_waits_goes_when_the_session_is_accepted_again() {
    promise::what_waits_goes_when_the_token_is_mended::<Open>(QUIET).await;
}

/// B10, E8.
#[rstest]
#[tokio::test]
async fn every_part_of_a_long_answer_is_seen(#[values(QUIET, "streaming = \"edit\"")] keys: &str) {
    promise::every_part_of_a_long_answer_is_seen::<Open>(keys).await;
}

/// A18, B10.
#[rstest]
#[tokio::test]
async fn what_stops_in_the_middle_says_so(#[values(End::Refused, End::GivenUp)] end: End) {
    promise::what_stops_in_the_middle_says_so::<Open>(end, QUIET).await;
}

/// B13, E8.
#[rstest]
#[tokio::test]
async fn a_draft_whose_response_is_lost_leaves_one(
    #[values(Pace::AtOnce, Pace::Quick, Pace::Slow)] pace: Pace,
    #[values(Place::Direct, Place::Encrypted)] place: Place,
) {
    match place {
        Place::Encrypted => promise::a_draft_whose_response_is_lost_leaves_one::<Encrypted>(pace).await,
        _ => promise::a_draft_whose_response_is_lost_leaves_one::<Open>(pace).await,
    }
}

/// B13, D1.
#[rstest]
#[tokio::test]
async fn a_process_killed_before_it_noted_its_draft_leaves_one(
    #[values(Pace::AtOnce, Pace::Quick, Pace::Slow)] pace: Pace,
    #[values(Place::Direct, Place::Encrypted)] place: Place,
) {
    match place {
        Place::Encrypted => promise::a_process_killed_before_it_noted_its_draft_leaves_one::<Encrypted>(pace).await,
        _ => promise::a_process_killed_before_it_noted_its_draft_leaves_one::<Open>(pace).await,
    }
}

/// B13, D1: design §9 for what is shown of an answer.
#[rstest]
#[tokio::test]
async fn a_crash_while_the_answer_grows_leaves_one(
    #[values("draft_claimed:1", "draft_attempt_started:1", "draft_attempt_ended:1", "draft_noted:1")] point: &str,
    #[values(Pace::Quick, Pace::Slow)] pace: Pace,
) {
    promise::a_crash_while_the_answer_grows_leaves_one::<Open>(point, pace).await;
}

/// A10, B13.
#[rstest]
#[tokio::test]
async fn a_deferral_grows_into_the_answer(#[values(Place::Direct, Place::Encrypted)] place: Place) {
    match place {
        Place::Encrypted => promise::a_deferral_grows_into_the_answer::<Encrypted>().await,
        _ => promise::a_deferral_grows_into_the_answer::<Open>().await,
    }
}

/// A10, E8.
#[tokio::test]
async fn a_deferral_whose_response_is_lost_leaves_one() {
    promise::a_deferral_whose_response_is_lost_leaves_one::<Open>().await;
}

/// A10, D1.
#[tokio::test]
async fn a_process_killed_before_it_noted_its_deferral_leaves_one() {
    promise::a_process_killed_before_it_noted_its_deferral_leaves_one::<Open>().await;
}

/// B13, D1, E1, E3.
#[rstest]
#[tokio::test]
async fn killed_again_and_again_while_answers_grow(#[values(QUIET, "streaming = \"edit\"")] keys: &str) {
    promise::killed_again_and_again_while_answers_grow::<Open>(keys).await;
}
