//! A gateway with one bot.

use std::{ops::Deref, sync::Arc, time::Duration};

use rejoinder_core::{ChannelId, SystemClock, conformance::rejecting::Rejection};
use rejoinder_telegram::{Pace, Telegram, TelegramSection};
use rejoinder_telegram_double::TelegramDouble;
pub(crate) use rejoinder_testkit::{LABEL, REPLACES, SILENT};
use rejoinder_testkit::{Setup, obedient};
use url::Url;

pub(crate) struct Gateway(rejoinder_testkit::Gateway<Telegram>);

impl Deref for Gateway {
    type Target = rejoinder_testkit::Gateway<Telegram>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// The bot's options: no limits, and short polls.
pub(crate) fn options(telegram: &TelegramDouble) -> TelegramSection {
    TelegramSection {
        token: telegram.token().into(),
        api_url: Url::parse(&telegram.url()).expect("an address"),
        poll_timeout: Duration::from_secs(1),
        pace: Pace::Server,
        ..TelegramSection::default()
    }
}

pub(crate) fn http() -> reqwest::Client {
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    http.connect_timeout(Duration::from_secs(5)).build().expect("a client")
}

pub(crate) fn bot(options: TelegramSection) -> Arc<Telegram> {
    let channel = ChannelId::new("telegram", "main");
    Arc::new(Telegram::new(channel, options, Arc::new(SystemClock), http()))
}

fn setup() -> Setup {
    Setup::new().agent(|clock, gate| obedient(clock, gate).reading(&["image/"]))
}

impl Gateway {
    pub(crate) async fn start(telegram: &TelegramDouble) -> Self {
        Self::with(bot(options(telegram))).await
    }

    pub(crate) async fn with(bot: Arc<Telegram>) -> Self {
        Self(rejoinder_testkit::Gateway::start(setup(), bot).await)
    }

    /// A gateway whose store refuses the first message.
    pub(crate) async fn rejecting(bot: Arc<Telegram>) -> Self {
        Self(rejoinder_testkit::Gateway::start(setup().rejecting(Rejection::Text), bot).await)
    }

    /// Stops it and starts another one on the same database.
    pub(crate) async fn restart(self, telegram: &TelegramDouble) -> Self {
        let setup = self.0.shut_down().await;
        Self(rejoinder_testkit::Gateway::start(setup, bot(options(telegram))).await)
    }

    /// Stops it, once nothing is owed and nothing waits to be sent.
    pub(crate) async fn stop(self) {
        self.0.stop().await;
    }
}
