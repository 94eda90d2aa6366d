//! Conversations on Matrix, end to end against a Synapse without rate limits.

use anyhow::Result;
use rejoinder_matrix_server::{Homeserver, Settings};

use super::{
    plan::WARM_UP,
    platform::{CrowdResults, GatewayResults, Targets, length, samples},
};
use crate::{bench::Bench, figures::Sample, helper::Helper, serve::Server};

/// Synapse handles only some tens of rooms and messages per second: more people would wait longer than a round lasts.
const SIZES: [usize; 2] = [8, 32];

const TARGETS: Targets = Targets { share: 0.4, idle: Some(50.0) };

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let homeserver = Homeserver::start(Settings::default()).await;
    let (account, token) = homeserver.account_with_token("agent").await;
    let bot = Server::MatrixBot { homeserver: homeserver.url().to_owned(), user: account.user.clone(), token };
    let bot = Helper::start(&bot).await?;
    let bare = crowds(bench, &homeserver, &account.user).await?;
    drop((bot, homeserver));

    let homeserver = Homeserver::start(Settings::default()).await;
    let account = homeserver.account("agent").await;
    let section = format!(
        "[channels.matrix.bench]\nhomeserver = \"{}\"\nuser = \"{}\"\npassword = \"{}\"\npace = \"server\"\ndm_policy = \"open\"\nstreaming = \"off\"\n",
        homeserver.url(),
        account.user,
        account.password
    );
    let gateway_results =
        GatewayResults::measure(bench, &section, async || crowds(bench, &homeserver, &account.user).await).await?;
    Ok(samples("Matrix", &TARGETS, &bare, &gateway_results))
}

async fn crowds(bench: &Bench, homeserver: &Homeserver, agent: &str) -> Result<CrowdResults> {
    CrowdResults::measure(bench, SIZES, async |people| {
        let ada = homeserver.person("ada").await;
        let mut rooms = Vec::with_capacity(people);
        for _ in 0..people {
            rooms.push(ada.direct(agent).await);
        }
        for room in &rooms {
            ada.until_joined(room, agent).await;
        }
        Ok(ada.converse(&rooms, agent, "ping", WARM_UP, length(bench)).await)
    })
    .await
}
