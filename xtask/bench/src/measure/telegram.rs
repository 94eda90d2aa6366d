//! Conversations on Telegram, end to end against our double of the Bot API.

use std::time::{Duration, Instant};

use anyhow::Result;
use rejoinder_telegram_double::{Person, TelegramDouble};
use tokio::task::JoinSet;

use super::{
    plan::WARM_UP,
    platform::{CrowdResults, GatewayResults, SIZES, Targets, length, samples},
};
use crate::{bench::Bench, figures::Sample, helper::Helper, serve::Server};

const TARGETS: Targets = Targets { share: 0.8, idle: None };

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let double = double().await;
    let bot = Helper::start(&Server::TelegramBot { api: double.url(), token: double.token().to_owned() }).await?;
    let bare = crowds(bench, &double).await?;
    drop((bot, double));

    let double = self::double().await;
    let section = format!(
        "[channels.telegram.bench]\ntoken = \"{}\"\napi_url = \"{}\"\npace = \"server\"\ndm_policy = \"open\"\nstreaming = \"off\"\n",
        double.token(),
        double.url()
    );
    let gateway_results = GatewayResults::measure(bench, &section, async || crowds(bench, &double).await).await?;
    Ok(samples("Telegram", &TARGETS, &bare, &gateway_results))
}

pub(super) async fn double() -> TelegramDouble {
    let double = TelegramDouble::start().await;
    double.keep_calls(false);
    double
}

async fn crowds(bench: &Bench, double: &TelegramDouble) -> Result<CrowdResults> {
    CrowdResults::measure(bench, SIZES, async |people| {
        let measured_from = Instant::now() + WARM_UP;
        let until = measured_from + length(bench);
        let mut crowd = JoinSet::new();
        for number in 0..people {
            crowd.spawn(talk(double.person(&format!("Person {number}")), measured_from, until));
        }
        Ok(crowd.join_all().await.into_iter().flatten().collect())
    })
    .await
}

/// Runs one conversation, and returns how long each measured answer took.
async fn talk(person: Person, measured_from: Instant, until: Instant) -> Vec<Duration> {
    let mut waits = Vec::new();
    loop {
        let asked = Instant::now();
        if asked >= until {
            return waits;
        }
        let answered = person.next_after(person.says("ping")).await;
        if asked >= measured_from && answered <= until {
            waits.push(answered.saturating_duration_since(asked));
        }
    }
}
