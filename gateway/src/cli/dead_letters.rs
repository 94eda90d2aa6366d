//! `rejoinder dead-letters`: lists the callbacks that were given up, and sends them again.
//!
//! The list is read from the database, whether the gateway is running or not. A retry is made by the running gateway.

use std::fmt::Write as _;

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use rejoinder_core::{ChannelId, DeliveryId, store::DeadLetterFilter};
use reqwest::StatusCode;
use secrecy::ExposeSecret;
use serde_json::Value;

use super::{Global, database::Database};
use crate::{
    client,
    console::{failure::Failure, output},
    gateway::url_of,
    http::dead_letters_page,
    view::{DeadLetterItem, DeadLetterList},
    wiring,
};

#[derive(Debug, Subcommand)]
pub(super) enum DeadLettersCommand {
    /// List the callbacks that were given up, newest first
    List(List),
    /// Have the running gateway send one again
    Retry(Retry),
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only callbacks of this channel, for example webhook.tickets
    #[arg(long)]
    channel: Option<String>,
    /// Only callbacks older than this one: the "next" of --json
    #[arg(long, value_name = "ID")]
    before: Option<DeliveryId>,
    /// Largest number of callbacks to list
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Args)]
pub(super) struct Retry {
    /// The id of the delivery, as the list shows it
    id: DeliveryId,
}

impl DeadLettersCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        match self {
            Self::List(list) => list.perform(global).await,
            Self::Retry(retry) => retry.perform(global).await,
        }
    }
}

impl List {
    async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let store = self.database.open(global).await?;
        let channel = self.channel.as_deref().map(ChannelId::from_stored);
        let filter = DeadLetterFilter { channel, before: self.before, limit: self.limit };
        let list = dead_letters_page(store.as_ref(), filter).await.context("cannot read the dead letters")?;
        if self.json { output::print_json(&list) } else { output::print(lines(&list)) }
    }
}

fn lines(list: &DeadLetterList) -> String {
    if list.items.is_empty() {
        return "No dead letters found.".to_owned();
    }
    let row = |letter: &DeadLetterItem| {
        let error = letter.error.clone().unwrap_or_default();
        [letter.delivery_id.clone(), letter.created_at.clone(), letter.channel.clone(), letter.turn_id.clone(), error]
    };
    let rows: Vec<_> = list.items.iter().map(row).collect();
    let mut text = output::table(["DELIVERY", "CREATED", "CHANNEL", "TURN", "ERROR"], &rows);
    if let Some(next) = &list.next {
        let _ = write!(text, "\n\nMore dead letters: --before {next}");
    }
    output::printable(&text)
}

impl Retry {
    async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let config = global.load()?.config;
        let address = wiring::listen_for_operator(&config);
        if !config.admin.enabled {
            return Err(anyhow!("admin.enabled is false, so the gateway cannot be told to").into());
        }
        if address.port() == 0 {
            return Err(anyhow!("the gateway listens on port 0, so its address is unknown").into());
        }
        let data_dir = global.data_dir()?;
        let token = wiring::admin_token(&config, &data_dir).context("cannot read the admin token")?;
        let missing = || anyhow!("there is no admin token in {}: pass the gateway's --data", data_dir.display());
        let token = token.ok_or_else(missing)?;
        let url = format!("{}/admin/api/dead-letters/{}/retry", url_of(address), self.id);
        // The gateway is on this machine: a configured proxy does not apply.
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build();
        let request = http.context("cannot create the HTTP client")?.post(&url).timeout(client::CHECK_TIMEOUT);
        let response = request.bearer_auth(token.expose_secret()).send().await;
        let response = response.with_context(|| format!("no gateway answers at {}", url_of(address)))?;
        match response.status() {
            StatusCode::ACCEPTED => output::print("It is sent again now."),
            status => {
                let problem: Value = response.json().await.unwrap_or_default();
                let why = problem["detail"].as_str().map_or_else(|| status.to_string(), output::printable);
                Err(anyhow!("{why}").into())
            }
        }
    }
}
