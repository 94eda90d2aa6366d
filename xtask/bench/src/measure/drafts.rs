//! How soon people see what an agent writes: its first word as a draft, more of them while it writes, its last one in the answer.
//! Streaming is the default, and so is the pace where the servers keep the platform's limits. No call may be refused for being too
//! fast.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rejoinder_discord_server::DiscordServer;
use rejoinder_matrix_server::{Homeserver, Settings};
use rejoinder_telegram_double::{Limits, Rate, TelegramDouble};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::{
    bench::Bench,
    figures::{Sample, Target, Unit},
    gateway::Home,
    serve::writer::{ANSWER, Writer},
};

/// How many answers are measured on a platform, one right after the other in one conversation; odd.
const ANSWERS: usize = 5;

/// The pause between two words of the agent.
const PAUSE: Duration = Duration::from_millis(100);

/// The pause between two looks at an answer.
const LOOK: Duration = Duration::from_millis(2);

/// How long an answer may take, which is written in three seconds.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let mut samples = on_telegram(bench).await.context("on Telegram")?;
    samples.extend(on_discord(bench).await.context("on Discord")?);
    samples.extend(on_matrix(bench).await.context("on Matrix")?);
    Ok(samples)
}

async fn on_telegram(bench: &Bench) -> Result<Vec<Sample>> {
    let double = TelegramDouble::start().await;
    let rate = |count, seconds| Some(Rate { count, seconds });
    // "Short bursts" are allowed in a chat.
    double.limits(Limits { chat: rate(3, 1.0), group: rate(20, 60.0), bot: rate(30, 1.0) });
    let section = format!(
        "[channels.telegram.bench]\ntoken = \"{}\"\napi_url = \"{}\"\ndm_policy = \"open\"\n",
        double.token(),
        double.url()
    );
    let person = double.person("Ada");
    let ask = async |number: usize| {
        person.says("ping");
        watch(async || person.sees().into_iter().filter(|message| message.ours).nth(number).map(|it| it.text)).await
    };
    let samples = samples(bench, "Telegram", &section, ask).await?;
    let calls = [double.calls("sendMessage"), double.calls("editMessageText")].concat();
    let refused = calls.iter().filter(|call| call.error().is_some_and(|error| error.code == 429)).count();
    ensure!(refused == 0, "{refused} calls came too fast");
    Ok(samples)
}

async fn on_discord(bench: &Bench) -> Result<Vec<Sample>> {
    let server = DiscordServer::start().await;
    server.set(json!({ "global_limit": 50 })).await;
    for (method, route) in [("POST", "/channels/*/messages"), ("PATCH", "/channels/*/messages/*")] {
        server.limits(method, route, 5, Duration::from_secs(5)).await;
    }
    let section = format!(
        "[channels.discord.bench]\ntoken = \"{}\"\napi_url = \"{}\"\ndm_policy = \"open\"\n",
        server.token(),
        server.api_url()
    );
    let person = server.person("Ada").await;
    let channel = person.direct().await;
    let ask = async |number: usize| {
        server.until_connected().await;
        person.says(&channel, "ping").await;
        watch(async || server.bot_texts(&channel).await.into_iter().nth(number)).await
    };
    let samples = samples(bench, "Discord", &section, ask).await?;
    let refused = server.invalid_requests().await;
    ensure!(refused == 0, "{refused} calls were refused");
    Ok(samples)
}

/// With `pace = "server"`: the limit of Synapse's default configuration is used up by the second answer.
async fn on_matrix(bench: &Bench) -> Result<Vec<Sample>> {
    let homeserver = Homeserver::start(Settings::default()).await;
    let account = homeserver.account("agent").await;
    let section = format!(
        "[channels.matrix.bench]\nhomeserver = \"{}\"\nuser = \"{}\"\npassword = \"{}\"\npace = \"server\"\ndm_policy = \"open\"\n",
        homeserver.url(),
        account.user,
        account.password
    );
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&account.user).await;
    let ask = async |number: usize| {
        ada.until_joined(&room, &account.user).await;
        ada.says(&room, "ping").await;
        watch(async || ada.texts_of(&room, &account.user).await.into_iter().nth(number)).await
    };
    samples(bench, "Matrix", &section, ask).await
}

/// When each text of an answer was seen: that of its drafts, and at last all of it. `look` gives the text that is seen now.
async fn watch(look: impl AsyncFn() -> Option<String>) -> Vec<Instant> {
    let (mut seen, mut last) = (Vec::new(), String::new());
    loop {
        if let Some(text) = look().await.filter(|text| *text != last) {
            seen.push(Instant::now());
            if text == ANSWER {
                return seen;
            }
            last = text;
        }
        sleep(LOOK).await;
    }
}

/// The figures of a gateway with this section. `ask` asks a question, and says when each text of the answer was seen.
async fn samples(
    bench: &Bench,
    platform: &str,
    section: &str,
    ask: impl AsyncFn(usize) -> Vec<Instant>,
) -> Result<Vec<Sample>> {
    let mut writer = Writer::start(PAUSE).await?;
    let home = Home::new(bench)?;
    let mut gateway = home.start(bench, &writer.url, section)?;
    gateway.ready().await?;
    let (mut firsts, mut pauses, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..ANSWERS {
        let seen = timeout(PATIENCE, ask(number)).await;
        let seen = seen.with_context(|| format!("the answer was not seen within {} s", PATIENCE.as_secs()))?;
        let written = writer.written();
        let [first, last] = written[..] else { bail!("the agent was not asked exactly once") };
        let [drafts @ .., answer] = &seen[..] else { bail!("nothing was seen") };
        ensure!(
            drafts.first().is_some_and(|draft| first <= *draft && *draft < last),
            "no draft was seen while the agent wrote"
        );
        firsts.push(drafts[0] - first);
        pauses.extend(drafts.windows(2).map(|two| two[1] - two[0]));
        answers.push(*answer - last);
    }
    ensure!(!pauses.is_empty(), "no answer had two drafts");
    let sample = |what: &str, times, most| {
        Sample::with_target(format!("{platform}, {what}"), median_ms(times), Unit::Milliseconds, Target::AtMost(most))
    };
    Ok(vec![
        sample("from the agent's first word to the first draft seen", firsts, 700.0),
        sample("between two drafts seen", pauses, 1200.0),
        sample("from the agent's last word to the answer seen", answers, 50.0),
    ])
}

/// The median of the times of all answers.
fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1000.0
}
