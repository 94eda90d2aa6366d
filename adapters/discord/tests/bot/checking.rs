//! Checks which bot a token belongs to.

use rejoinder_discord::{CheckError, check};
use rejoinder_discord_server::DiscordServer;
use url::Url;

use crate::support::http;

#[tokio::test]
async fn a_token_is_somebodys() {
    let server = DiscordServer::start().await;
    let url = Url::parse(server.api_url()).expect("an address");

    let profile = check(&http(), &url, &server.token().into()).await.expect("an application");

    assert_eq!((profile.id.as_str(), profile.application_id.as_str()), (server.bot_id(), server.application_id()));
    assert!(profile.invite_url.contains(server.application_id()), "{}", profile.invite_url);
}

#[tokio::test]
async fn a_token_is_nobodys() {
    let server = DiscordServer::start().await;
    let url = Url::parse(server.api_url()).expect("an address");

    assert_eq!(check(&http(), &url, &"no.such.token".into()).await, Err(CheckError::Unknown));
}
