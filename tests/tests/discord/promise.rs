//! What every platform keeps to when sending goes wrong, on Discord: what may have arrived is sent again as the same
//! message, which is shown once.

use std::{cell::RefCell, time::Duration};

use rejoinder_discord_server::{Channel, DiscordServer, Fault, Gateway as Event, Person};
use rejoinder_tests::promise::{self, Calls, End, Meanwhile, Outage, Pace, Platform, Said, Trouble};
use rstest::rstest;
use tempfile::NamedTempFile;

const QUIET: &str = "streaming = \"off\"";

/// A Discord, and the file with the token that the gateway takes.
struct Discord {
    server: DiscordServer,
    token: NamedTempFile,
    next: RefCell<String>,
}

impl Platform for Discord {
    type Person = (Person, Channel);

    const PARAGRAPH: usize = 1200;
    const SHOWS_ONCE: bool = true;

    async fn new() -> Self {
        let server = DiscordServer::start().await;
        let token = NamedTempFile::new().expect("a file for the token");
        std::fs::write(token.path(), server.token()).expect("the token is written");
        Self { server, token, next: RefCell::default() }
    }

    fn channel(&self, keys: &str) -> String {
        let section = crate::discord(&self.server, keys);
        let (inline, file) = (format!("\"{}\"", self.server.token()), self.token.path().display());
        section.replace(&inline, &format!("{{ file = \"{file}\" }}"))
    }

    async fn person(&self) -> Self::Person {
        let person = self.server.person("Ada").await;
        let chat = person.direct().await;
        (person, chat)
    }

    async fn says(&self, (person, chat): &Self::Person, words: &str) {
        person.says(chat, words).await;
    }

    async fn hears(&self, (_, chat): &Self::Person) -> Vec<Said> {
        let ours = self.server.visible(chat).await.into_iter().filter(|message| message.ours && !message.loading);
        ours.map(|message| Said { id: message.id, words: message.content }).collect()
    }

    async fn until<T>(&self, person: &Self::Person, about: &str, mut find: impl FnMut(&[Said]) -> Option<T>) -> T {
        self.server.until(about, async || find(&self.hears(person).await)).await
    }

    async fn fails(&self, calls: Calls, trouble: Trouble, times: Option<u32>) {
        let (calls, words) = match calls {
            Calls::All => (Fault::on_everything(), ""),
            Calls::Sending(words) => (Fault::on("POST", "/channels/*/messages"), words),
        };
        let fault = match trouble {
            Trouble::BadGateway => calls.failed(502),
            Trouble::DoneAndBadGateway => calls.failed_after_executing(502),
            Trouble::Reset => calls.reset(),
            Trouble::Lost => calls.executed_then_dropped(),
            Trouble::Silence => calls.executed_then_silent(),
            Trouble::Refused => calls.refused(400, 200_000, "Message was blocked by automatic moderation"),
            Trouble::Slow => calls.answered_late(Trouble::LATER),
        };
        let fault = fault.saying(words);
        self.server
            .fault(match times {
                Some(times) => fault.times(times),
                None => fault.always(),
            })
            .await;
    }

    async fn heals(&self) {
        self.server.lift_all().await;
    }

    async fn goes_away(&self) {
        self.server.fault(Fault::on_everything().reset().always()).await;
        self.server.gateway(Event::Refuses(true)).await;
        self.server.gateway(Event::Abort).await;
    }

    async fn comes_back(&self) {
        self.server.lift_all().await;
        self.server.gateway(Event::Refuses(false)).await;
        self.server.until_connected().await;
    }

    async fn revokes_the_token(&self) {
        self.next.replace(self.server.reset_token().await);
    }

    async fn mends_the_token(&self) {
        std::fs::write(self.token.path(), &*self.next.borrow()).expect("the token is written");
    }
}

/// D10, E8, H2: three seconds in which messages get no good answer.
#[rstest]
#[case::bad_gateway(Outage::default())]
#[case::reset(Outage { trouble: Trouble::Reset, ..Outage::default() })]
#[case::some_arrive(Outage { arrive: 5, ..Outage::default() })]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn three_seconds_without_sending_cost_nobody_an_answer(
    #[case] outage: Outage,
    #[values(QUIET, "streaming = \"edit\"")] keys: &str,
) {
    promise::twenty_people_are_answered_after_an_outage::<Discord>(outage, keys).await;
}

/// D10, E8, H2: twenty seconds in which nothing gets a good answer.
#[rstest]
#[case::bad_gateway(Trouble::BadGateway)]
#[case::reset(Trouble::Reset)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn twenty_seconds_without_discord_cost_nobody_an_answer(#[case] trouble: Trouble) {
    let lasts = Duration::from_secs(20);
    let outage = Outage { calls: Calls::All, trouble, lasts, faster: 10, ..Outage::default() };
    promise::twenty_people_are_answered_after_an_outage::<Discord>(outage, QUIET).await;
}

/// H3.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_waits_goes_when_discord_is_back(#[values(Meanwhile::Silence, Meanwhile::Question)] meanwhile: Meanwhile) {
    promise::what_waits_goes_when_the_platform_is_back::<Discord>(meanwhile, QUIET).await;
}

/// D10, H3.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_waits_goes_when_the_token_is_mended() {
    promise::what_waits_goes_when_the_token_is_mended::<Discord>(QUIET).await;
}

/// B10, E8.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_part_of_a_long_answer_is_seen(#[values(QUIET, "streaming = \"edit\"")] keys: &str) {
    promise::every_part_of_a_long_answer_is_seen::<Discord>(keys).await;
}

/// A18, B10.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_stops_in_the_middle_says_so(#[values(End::Refused, End::GivenUp)] end: End) {
    promise::what_stops_in_the_middle_says_so::<Discord>(end, QUIET).await;
}

/// B13, E8.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_draft_whose_response_is_lost_leaves_one(#[values(Pace::AtOnce, Pace::Quick, Pace::Slow)] pace: Pace) {
    promise::a_draft_whose_response_is_lost_leaves_one::<Discord>(pace).await;
}

/// B13, D1.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_process_killed_before_it_noted_its_draft_leaves_one(
    #[values(Pace::AtOnce, Pace::Quick, Pace::Slow)] pace: Pace,
) {
    promise::a_process_killed_before_it_noted_its_draft_leaves_one::<Discord>(pace).await;
}

/// B13, D1: design §9 for what is shown of an answer.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_while_the_answer_grows_leaves_one(
    #[values("draft_claimed:1", "draft_attempt_started:1", "draft_attempt_ended:1", "draft_noted:1")] point: &str,
    #[values(Pace::Quick, Pace::Slow)] pace: Pace,
) {
    promise::a_crash_while_the_answer_grows_leaves_one::<Discord>(point, pace).await;
}

/// A10, B13.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deferral_grows_into_the_answer() {
    promise::a_deferral_grows_into_the_answer::<Discord>().await;
}

/// A10, E8.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deferral_whose_response_is_lost_leaves_one() {
    promise::a_deferral_whose_response_is_lost_leaves_one::<Discord>().await;
}

/// A10, D1.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_process_killed_before_it_noted_its_deferral_leaves_one() {
    promise::a_process_killed_before_it_noted_its_deferral_leaves_one::<Discord>().await;
}

/// B13, D1, E1, E3.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn killed_again_and_again_while_answers_grow(#[values(QUIET, "streaming = \"edit\"")] keys: &str) {
    promise::killed_again_and_again_while_answers_grow::<Discord>(keys).await;
}
