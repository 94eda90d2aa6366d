//! Conversations on Discord, end to end against a server built on SimCord.

use anyhow::Result;
use rejoinder_discord_server::DiscordServer;
use serde_json::json;

use super::{
    plan::WARM_UP,
    platform::{CrowdResults, GatewayResults, SIZES, Targets, length, samples},
};
use crate::{bench::Bench, figures::Sample, helper::Helper, serve::Server};

const TARGETS: Targets = Targets { share: 0.8, idle: None };

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let server = server().await;
    let bot = Server::DiscordBot {
        api: server.api_url().to_owned(),
        gateway: server.gateway_url().to_owned(),
        token: server.token().to_owned(),
    };
    let bot = Helper::start(&bot).await?;
    let bare = crowds(bench, &server).await?;
    drop((bot, server));

    let server = self::server().await;
    let section = format!(
        "[channels.discord.bench]\ntoken = \"{}\"\napi_url = \"{}\"\npace = \"server\"\ndm_policy = \"open\"\nstreaming = \"off\"\n",
        server.token(),
        server.api_url()
    );
    let gateway_results = GatewayResults::measure(bench, &section, async || crowds(bench, &server).await).await?;
    Ok(samples("Discord", &TARGETS, &bare, &gateway_results))
}

async fn server() -> DiscordServer {
    let server = DiscordServer::start().await;
    server.set(json!({ "keep_calls": false })).await;
    server
}

async fn crowds(bench: &Bench, server: &DiscordServer) -> Result<CrowdResults> {
    server.until_connected().await;
    CrowdResults::measure(bench, SIZES, async |people| {
        let crowd = server.crowd(people).await;
        Ok(server.converse(&crowd, "ping", WARM_UP, length(bench)).await)
    })
    .await
}
