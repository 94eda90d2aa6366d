//! Strangers who write to a bot that lets in only people who are known: what they cost.

use anyhow::Result;
use rejoinder_telegram_double::{Person, TelegramDouble};

use crate::{
    bench::Bench,
    figures::{Sample, Target, Unit},
    gateway::Home,
    helper::Helper,
    serve::Server,
};

/// How many write before the first reading of memory, so that later growth is due to strangers and not to buffers that the
/// first of them filled.
const FIRST: usize = 1000;

const STRANGERS: usize = 10_000;

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let agent = Helper::start(&Server::Agent { stall: false }).await?;
    let double = TelegramDouble::start().await;
    double.keep_calls(false);
    let friend = double.person("Friend");
    let section = format!(
        "[channels.telegram.bench]\ntoken = \"{}\"\napi_url = \"{}\"\npace = \"server\"\nallow_from = [{}]\nstreaming = \"off\"\n",
        double.token(),
        double.url(),
        friend.id()
    );
    let home = Home::new(bench)?;
    let mut gateway = home.start(bench, &agent.agent_url(), &section)?;
    gateway.ready().await?;
    write(&double, &friend, FIRST).await;
    let few = gateway.memory_at_rest().await?;
    write(&double, &friend, STRANGERS).await;
    let many = gateway.memory_at_rest().await?;
    gateway.kill().await?;
    let name = "resident memory for 10,000 strangers who wrote";
    Ok(vec![Sample::with_target(name, many.now - few.now, Unit::Mebibytes, Target::AtMost(10.0))])
}

/// So many strangers write, and then a friend, who is answered: events come in order.
async fn write(double: &TelegramDouble, friend: &Person, strangers: usize) {
    for number in 0..strangers {
        double.person(&format!("Stranger {number}")).says("hello");
    }
    friend.next_after(friend.says("ping")).await;
}
