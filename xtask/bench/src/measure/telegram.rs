//! Conversations on Telegram, end to end against a Bot API server of ours, beside a bare bot.

use std::time::{Duration, Instant};

use anyhow::Result;
use rejoinder_telegram_double::{Person, TelegramDouble};
use tokio::task::JoinSet;

use super::{Bench, hooks};
use crate::{
    figures::{Sample, Target, Unit},
    gateway::Home,
    helper::{Helper, load},
    load::{Report, histogram, report},
    serve::Server,
};

/// Long enough for pools to fill and connections to open.
const WARM_UP: Duration = Duration::from_secs(1);

/// One bot in front of both crowds.
struct Crowds {
    few: Report,
    many: Report,
}

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let agent = Helper::start(&Server::Agent { stall: false }).await?;

    let double = double().await;
    let bot = Helper::start(&Server::Bot { api: double.url(), token: double.token().to_owned() }).await?;
    let ceiling = both(bench, &double).await?;
    drop((bot, double));

    let double = self::double().await;
    let home = Home::new(bench)?;
    let channel = format!(
        "[channels.telegram.bench]\ntoken = \"{}\"\napi_url = \"{}\"\npace = \"server\"\ndm_policy = \"open\"\nstreaming = \"off\"\n",
        double.token(),
        double.url()
    );
    let mut gateway = home.start(bench, &agent.agent_url(), &channel)?;
    gateway.ready().await?;
    let idle = gateway.memory_at_rest().await?;
    let of_gateway = both(bench, &double).await?;
    let loaded = gateway.memory()?;
    let of_hooks = load(&hooks::plan(bench, gateway.address, 64)).await?;

    let bar = |ceiling: &Report| ceiling.throughput.min(of_hooks.throughput);
    let share = |of: &Report, ceiling: &Report| of.throughput / bar(ceiling);
    Ok(vec![
        Sample::aimed(
            "Telegram beside a bare bot or the hooks, 64 conversations",
            share(&of_gateway.few, &ceiling.few),
            Unit::Ratio,
            Target::AtLeast(0.4),
        ),
        Sample::aimed(
            "Telegram beside a bare bot or the hooks, 1000 conversations",
            share(&of_gateway.many, &ceiling.many),
            Unit::Ratio,
            Target::AtLeast(0.4),
        ),
        Sample::told("bare bot, 64 conversations", ceiling.few.throughput, Unit::PerSecond),
        Sample::told("bare bot, 1000 conversations", ceiling.many.throughput, Unit::PerSecond),
        Sample::told("hooks, 64 callers", of_hooks.throughput, Unit::PerSecond),
        Sample::told("gateway, 64 conversations", of_gateway.few.throughput, Unit::PerSecond),
        Sample::told("gateway, 64 conversations, median", of_gateway.few.median_ms, Unit::Milliseconds),
        Sample::told("gateway, 64 conversations, 99 of 100", of_gateway.few.p99_ms, Unit::Milliseconds),
        Sample::told("gateway, 1000 conversations", of_gateway.many.throughput, Unit::PerSecond),
        Sample::told("gateway, 1000 conversations, median", of_gateway.many.median_ms, Unit::Milliseconds),
        Sample::told("gateway, 1000 conversations, 99 of 100", of_gateway.many.p99_ms, Unit::Milliseconds),
        Sample::told("bare bot, 1000 conversations, median", ceiling.many.median_ms, Unit::Milliseconds),
        Sample::told("resident memory with Telegram, idle", idle.now, Unit::Mebibytes),
        Sample::told("resident memory with Telegram, highest under load", loaded.peak, Unit::Mebibytes),
    ])
}

async fn double() -> TelegramDouble {
    let double = TelegramDouble::start().await;
    double.keep_calls(false);
    double
}

async fn both(bench: &Bench, double: &TelegramDouble) -> Result<Crowds> {
    Ok(Crowds { few: crowd(bench, double, 64).await?, many: crowd(bench, double, 1000).await? })
}

/// So many people, each in a chat of their own, who ask again as soon as they are answered.
async fn crowd(bench: &Bench, double: &TelegramDouble, people: usize) -> Result<Report> {
    let measured_from = Instant::now() + WARM_UP;
    let until = measured_from + bench.length;
    let mut crowd = JoinSet::new();
    for number in 0..people {
        let person = double.person(&format!("Person {number}"));
        crowd.spawn(talk(person, measured_from, until));
    }
    let mut waits = histogram()?;
    while let Some(own) = crowd.join_next().await {
        for wait in own? {
            waits.saturating_record(u64::try_from(wait.as_micros())?);
        }
    }
    report(&waits, bench.length.as_secs_f64(), b"")
}

/// One conversation; gives how long each measured answer took.
async fn talk(person: Person, measured_from: Instant, until: Instant) -> Vec<Duration> {
    let mut waits = Vec::new();
    loop {
        let asked = Instant::now();
        if asked >= until {
            return waits;
        }
        let answered = person.gets_next(person.says("ping")).await;
        if asked >= measured_from && answered <= until {
            waits.push(answered.saturating_duration_since(asked));
        }
    }
}
