//! A gateway with one application.

use std::{ops::Deref, sync::Arc, time::Duration};

use rejoinder_core::{
    Access, ChannelId,
    conformance::rejecting::Rejection,
    store::{TurnFilter, TurnListState},
};
use rejoinder_discord::{Discord, DiscordSection, Pace};
use rejoinder_discord_server::DiscordServer;
pub(crate) use rejoinder_testkit::SILENT;
use rejoinder_testkit::{LeadingClock, Setup, obedient};
use url::Url;

pub(crate) struct Gateway {
    kit: rejoinder_testkit::Gateway<Discord>,
    pub(crate) clock: Arc<LeadingClock>,
}

impl Deref for Gateway {
    type Target = rejoinder_testkit::Gateway<Discord>;

    fn deref(&self) -> &Self::Target {
        &self.kit
    }
}

/// The channel's options: no rate limits of our own.
pub(crate) fn options(server: &DiscordServer) -> DiscordSection {
    DiscordSection {
        token: server.token().into(),
        api_url: Url::parse(server.api_url()).expect("an address"),
        pace: Pace::Server,
        ..DiscordSection::default()
    }
}

pub(crate) fn http() -> reqwest::Client {
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    http.connect_timeout(Duration::from_secs(5)).build().expect("a client")
}

fn setup(clock: &Arc<LeadingClock>) -> Setup {
    let setup = Setup::new().agent(|clock, gate| obedient(clock, gate).reading(&["text/"]));
    setup.clock(Arc::clone(clock) as _)
}

impl Gateway {
    /// The texts of the turns that have not ended, newest first.
    pub(crate) async fn open_texts(&self) -> Vec<String> {
        let open = TurnFilter { state: Some(TurnListState::Open), limit: 10, ..TurnFilter::default() };
        let turns = self.store.list_turns(&open).await.expect("turns are listed");
        let mut texts = Vec::new();
        for turn in turns {
            let dossier = self.store.dossier(turn.turn_id).await.expect("a turn is read").expect("it is there");
            texts.push(dossier.turn.event.text.clone());
        }
        texts
    }

    pub(crate) async fn start(server: &DiscordServer) -> Self {
        Self::with(options(server)).await
    }

    /// Starts a gateway and returns once it is connected.
    pub(crate) async fn connected(server: &DiscordServer) -> Self {
        let gateway = Self::start(server).await;
        gateway.until_live().await;
        gateway
    }

    pub(crate) async fn with(options: DiscordSection) -> Self {
        let clock = Arc::default();
        let access = Access { agents: options.people.allow_bots.iter().collect(), ..Access::open() };
        let setup = setup(&clock).settings(move |settings| {
            settings.access.insert(ChannelId::new("discord", "main"), access.clone());
        });
        Self::on(options, setup, clock).await
    }

    /// A connected gateway whose store refuses the first message.
    pub(crate) async fn rejecting(server: &DiscordServer) -> Self {
        let clock = Arc::default();
        let gateway = Self::on(options(server), setup(&clock).rejecting(Rejection::Text), clock).await;
        gateway.until_live().await;
        gateway
    }

    async fn on(options: DiscordSection, setup: Setup, clock: Arc<LeadingClock>) -> Self {
        let channel = ChannelId::new("discord", "main");
        let discord = Discord::new(channel, options, Arc::clone(&clock) as _, http());
        Self { kit: rejoinder_testkit::Gateway::start(setup, Arc::new(discord)).await, clock }
    }

    /// Stops it, keeping its database for [`StoppedGateway::restart`].
    pub(crate) async fn shut_down(self) -> StoppedGateway {
        StoppedGateway { setup: self.kit.shut_down().await, clock: self.clock }
    }

    /// Stops it, once nothing is owed and nothing waits to be sent.
    pub(crate) async fn stop(self) {
        self.kit.stop().await;
    }
}

/// A gateway that is not running.
pub(crate) struct StoppedGateway {
    setup: Setup,
    pub(crate) clock: Arc<LeadingClock>,
}

impl StoppedGateway {
    /// Starts a gateway on the same database.
    pub(crate) async fn restart(self, server: &DiscordServer) -> Gateway {
        Gateway::on(options(server), self.setup, self.clock).await
    }
}
