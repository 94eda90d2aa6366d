//! A Discord application: whose token it is, and what it may read.

use reqwest::Client;

use super::Finding;
use crate::{
    cli::bots,
    wiring::{BotCheckError, DiscordBot, DiscordContact},
};

pub(super) async fn look(bot: DiscordContact<'_>, http: &Client) -> Vec<Finding> {
    let about = bot.channel.to_string();
    match bot.ask(http).await {
        Ok(known) => {
            let mut findings = vec![Finding::ok(about, bots::discord(&known))];
            findings.extend(what_it_reads(&bot, &known));
            findings
        }
        Err(BotCheckError::Wrong(why)) => {
            let advice = "Get a new token in the developer portal (\"Bot\", \"Reset Token\"), set it, and restart.";
            vec![Finding::wrong(about, why).so(advice)]
        }
        Err(BotCheckError::Unreachable(why)) => {
            let advice = format!("Is this machine online, and channels.{about}.api_url right?");
            vec![Finding::wrong(about, why).so(advice)]
        }
    }
}

fn what_it_reads(bot: &DiscordContact<'_>, known: &DiscordBot) -> Option<Finding> {
    let about = bot.channel.to_string();
    let advice = format!(
        "Switch it on in the developer portal (\"Bot\", \"Message Content Intent\") and restart, or set \
         channels.{about}.message_content = false: it then reads direct chats, mentions and commands alone."
    );
    match known.reads_message_content {
        _ if !bot.wants_content => None,
        Some(true) => Some(Finding::ok(about, "the MESSAGE CONTENT INTENT is switched on")),
        Some(false) => Some(Finding::wrong(about, "the MESSAGE CONTENT INTENT is not switched on").so(advice)),
        None => {
            let what = "Discord did not say whether the MESSAGE CONTENT INTENT is switched on";
            Some(Finding::warning(about, what).so("Look in the developer portal under \"Bot\"."))
        }
    }
}
