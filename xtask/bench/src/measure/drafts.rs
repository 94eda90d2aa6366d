//! How soon people see what an agent writes: its first word as a draft, its last one in the answer. Streaming and pace are
//! the default.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rejoinder_discord_server::{Channel, DiscordServer};
use tokio::time::timeout;

use super::{discord, telegram};
use crate::{
    bench::Bench,
    figures::{Sample, Target, Unit},
    gateway::Home,
    serve::writer::{ANSWER, Writer},
};

/// How many answers are measured on a platform, one after the other; odd.
const ANSWERS: usize = 5;

/// The pause between two words of the agent.
const PAUSE: Duration = Duration::from_millis(100);

/// How long an answer may take, which is written in three seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// When the first draft of an answer was seen, and when all of the answer.
struct Seen {
    draft: Instant,
    answer: Instant,
}

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let mut samples = on_telegram(bench).await.context("on Telegram")?;
    samples.extend(on_discord(bench).await.context("on Discord")?);
    Ok(samples)
}

async fn on_telegram(bench: &Bench) -> Result<Vec<Sample>> {
    let double = telegram::double().await;
    let section = format!(
        "[channels.telegram.bench]\ntoken = \"{}\"\napi_url = \"{}\"\ndm_policy = \"open\"\n",
        double.token(),
        double.url()
    );
    let ask = async |number: usize| {
        let person = double.person(&format!("Person {number}"));
        person.says("ping");
        let draft = person.finds("a draft", |message| message.ours).await.at;
        person.hears(ANSWER).await;
        Seen { draft, answer: Instant::now() }
    };
    samples(bench, "Telegram", &section, ask).await
}

async fn on_discord(bench: &Bench) -> Result<Vec<Sample>> {
    let server = discord::server().await;
    let section = format!(
        "[channels.discord.bench]\ntoken = \"{}\"\napi_url = \"{}\"\ndm_policy = \"open\"\n",
        server.token(),
        server.api_url()
    );
    let ask = async |number: usize| {
        server.until_connected().await;
        let person = server.person(&format!("Person {number}")).await;
        let channel = person.direct().await;
        person.says(&channel, "ping").await;
        let draft = sees(&server, &channel, "a draft", |_| true).await;
        let answer = sees(&server, &channel, "the answer", |text| text == ANSWER).await;
        Seen { draft, answer }
    };
    samples(bench, "Discord", &section, ask).await
}

/// Waits until the bot has written such a text to a channel.
async fn sees(server: &DiscordServer, channel: &Channel, about: &str, is_it: impl Fn(&str) -> bool) -> Instant {
    let look = async || server.bot_texts(channel).await.iter().any(|text| is_it(text)).then(Instant::now);
    server.until(about, look).await
}

/// The figures of a gateway with this section. `ask` asks a question in a conversation of its own.
async fn samples(
    bench: &Bench,
    platform: &str,
    section: &str,
    ask: impl AsyncFn(usize) -> Seen,
) -> Result<Vec<Sample>> {
    let mut writer = Writer::start(PAUSE).await?;
    let home = Home::new(bench)?;
    let mut gateway = home.start(bench, &writer.url, section)?;
    gateway.ready().await?;
    let (mut drafts, mut answers) = (Vec::new(), Vec::new());
    for number in 0..ANSWERS {
        let seen = timeout(PATIENCE, ask(number)).await;
        let seen = seen.with_context(|| format!("the answer was not seen within {} s", PATIENCE.as_secs()))?;
        let written = writer.written();
        let [first, last] = written[..] else { bail!("the agent was not asked exactly once") };
        ensure!(first <= seen.draft && seen.draft < last, "no draft was seen while the agent wrote");
        drafts.push(seen.draft - first);
        answers.push(seen.answer - last);
    }
    let sample = |what: &str, times, most| {
        Sample::with_target(format!("{platform}, {what}"), median_ms(times), Unit::Milliseconds, Target::AtMost(most))
    };
    Ok(vec![
        sample("from the agent's first word to the first draft seen", drafts, 700.0),
        sample("from the agent's last word to the answer seen", answers, 50.0),
    ])
}

/// The median of the times of all answers.
fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1000.0
}
