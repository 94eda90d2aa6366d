//! The shared promise scenarios on Telegram: a message that may have arrived is sent again with a label.

use std::{cell::RefCell, time::Duration};

use rejoinder_telegram_double::{ApiError, Fault, Outage as Whole, Person, TelegramDouble};
use rejoinder_tests::{
    Gateway, GatewayBuilder, free_port,
    promise::{self, Calls, Failure, FileMessage, Outage, Platform, SentMessage, SharesFiles},
};
use rstest::rstest;
use tempfile::NamedTempFile;

/// How updates are received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Mode {
    #[default]
    Polling,
    Webhook,
}

/// A Bot API double, and the file that the gateway reads its token from.
pub(crate) struct Telegram {
    double: TelegramDouble,
    token: NamedTempFile,
    next: RefCell<String>,
    /// The gateway's port in webhook mode.
    port: Option<u16>,
}

impl Telegram {
    fn sent_messages(messages: Vec<rejoinder_telegram_double::VisibleMessage>) -> Vec<SentMessage> {
        let ours = messages.into_iter().filter(|message| message.ours);
        ours.map(|message| SentMessage { id: message.id.to_string(), text: message.text }).collect()
    }
}

impl Platform for Telegram {
    type Person = Person;
    type Place = Mode;

    const PARAGRAPH: usize = 2500;
    const SHOWS_ONCE: bool = false;

    async fn at(mode: Mode) -> Self {
        let double = TelegramDouble::start().await;
        double.webhook_pauses(Duration::from_millis(50), Duration::from_millis(500));
        let token = NamedTempFile::new().expect("a file for the token");
        std::fs::write(token.path(), double.token()).expect("the token is written");
        let port = match mode {
            Mode::Polling => None,
            Mode::Webhook => Some(free_port()),
        };
        Self { double, token, next: RefCell::default(), port }
    }

    fn gateway(&self, keys: &str) -> GatewayBuilder {
        let mut section = crate::telegram(&self.double, keys);
        let mut builder = Gateway::builder();
        if let Some(port) = self.port {
            let url = format!("http://127.0.0.1:{port}/telegram/test");
            section = format!("{section}mode = \"webhook\"\n[channels.telegram.test.webhook]\nurl = \"{url}\"\n");
            builder = builder.port(port);
        }
        let (inline, file) = (format!("\"{}\"", self.double.token()), self.token.path().display());
        builder.config(&section.replace(&inline, &format!("{{ file = \"{file}\" }}")))
    }

    async fn person(&self) -> Person {
        self.double.person("Ada")
    }

    async fn says(&self, person: &Person, text: &str) {
        person.says(text);
    }

    async fn picks(&self, person: &Person, question: &SentMessage, choice: &str) {
        person.presses(question.id.parse().expect("the id of a message"), choice);
    }

    async fn messages_of(&self, person: &Person) -> Vec<SentMessage> {
        Self::sent_messages(person.sees())
    }

    async fn until<T>(&self, person: &Person, about: &str, mut find: impl FnMut(&[SentMessage]) -> Option<T>) -> T {
        self.double.until(about, |view| find(&Self::sent_messages(view.visible(person.chat())))).await
    }

    async fn fail_calls(&self, calls: Calls, failure: Failure, times: Option<u32>) {
        let mut fault = match failure {
            Failure::BadGateway => Fault::error_before(502),
            Failure::Page => Fault::page_before(502),
            Failure::DoneAndBadGateway => Fault::error_after(502),
            Failure::Reset => Fault::reset(),
            Failure::Lost => Fault::lost_answer(),
            Failure::Silence => Fault::slow_answer(Duration::from_hours(1)),
            Failure::Slow => Fault::slow_answer(Failure::SLOW_DELAY),
            Failure::Refused => Fault::refuse(ApiError::bad_request("MESSAGE_TOO_LONG")),
        };
        if let Calls::Sending(text) = calls {
            fault = fault.on("sendMessage").saying(text);
        }
        self.double.fault(match times {
            Some(times) => fault.times(times),
            None => fault.forever(),
        });
    }

    async fn until_acknowledged(&self) {
        self.double.all_confirmed().await;
    }

    async fn clear_faults(&self) {
        self.double.clear_faults();
    }

    async fn disconnect(&self) {
        self.double.start_outage(Whole::Refuse);
    }

    async fn reconnect(&self) {
        let polls = |view: rejoinder_telegram_double::View<'_>| {
            view.calls("getUpdates").iter().filter(|call| call.succeeded()).count()
        };
        let before = self.double.inspect(polls);
        self.double.end_outage();
        self.double.until("a successful poll", |view| (polls(view) > before).then_some(())).await;
    }

    async fn revoke_token(&self) {
        self.next.replace(self.double.reset_token());
    }

    async fn restore_token(&self) {
        std::fs::write(self.token.path(), &*self.next.borrow()).expect("the token is written");
    }
}

impl SharesFiles for Telegram {
    const DELIVERIES: usize = 2;

    async fn shows(&self, person: &Person, picture: &[u8], caption: &str) {
        person.sends_photo(picture, caption);
    }

    async fn file_messages_of(&self, person: &Person) -> Vec<FileMessage> {
        let ours = person.sees().into_iter().filter(|message| message.ours);
        ours.map(|message| {
            let file = message.media.and_then(|_| self.double.inspect(|view| view.file(person.chat(), message.id)));
            FileMessage { text: message.text, sizes: file.iter().map(|bytes| bytes.len() as u64).collect() }
        })
        .collect()
    }
}

rejoinder_tests::promise_tests!(Telegram, places: [Mode::Polling]);

/// D8, D10, H2: three seconds of failing messages, where the operator wants what may have arrived to be sent again without
/// a label.
#[rstest]
#[case::bad_gateway(Outage::default())]
#[case::reset(Outage { failure: Failure::Reset, ..Outage::default() })]
#[case::some_arrive(Outage { arrive: 5, ..Outage::default() })]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn three_seconds_without_sending_double_only_what_arrived(#[case] outage: Outage) {
    let keys = format!("{QUIET}\non_unknown = \"resend\"");
    promise::twenty_people_are_answered_without_a_label::<Telegram>(outage, &keys).await;
}

/// D7, D8: messages arrive for three seconds, and nothing says so: nobody sees more than one copy.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn three_seconds_of_lost_responses_cost_nobody_more_than_one_copy() {
    let outage = Outage { failure: Failure::Lost, ..Outage::default() };
    promise::twenty_people_see_few_copies::<Telegram>(outage, 1, QUIET).await;
}

/// D7, D8: a proxy's page says that nothing was sent, so there is no label.
#[rstest]
#[case::for_three_seconds(Outage { failure: Failure::Page, ..Outage::default() })]
#[case::for_twenty_seconds(Outage { failure: Failure::Page, ..Outage::long() })]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_proxy_turned_away_has_no_label(#[case] outage: Outage) {
    promise::twenty_people_see_few_copies::<Telegram>(outage, 0, QUIET).await;
}

/// D8, D10, H2: the same for twenty seconds, in which messages, or all calls, fail.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn twenty_seconds_without_telegram_double_nothing(
    #[values(Failure::BadGateway, Failure::Reset)] failure: Failure,
    #[values(Calls::All, Calls::Sending(""))] calls: Calls,
) {
    let keys = format!("{QUIET}\non_unknown = \"resend\"");
    promise::twenty_people_are_answered_without_a_label::<Telegram>(Outage { calls, failure, ..Outage::long() }, &keys)
        .await;
}

/// D8, D10, H2: twenty seconds in which only messages fail.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn twenty_seconds_without_sending_cost_nobody_an_answer(
    #[values(Failure::BadGateway, Failure::Reset)] failure: Failure,
) {
    promise::twenty_people_are_answered_after_an_outage::<Telegram>(Outage { failure, ..Outage::long() }, QUIET).await;
}
