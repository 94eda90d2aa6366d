//! A bot as its platform knows it, in words and in characters that can be printed.

use super::output::printable;
use crate::wiring::{DiscordBot, MatrixAccount, TelegramBot};

/// Who it is.
pub(super) fn telegram(bot: &TelegramBot) -> String {
    let (name, username) = (printable(&bot.name), printable(&bot.username));
    format!("{name} (@{username}), at https://t.me/{username}")
}

/// What it sees in groups.
pub(super) const fn telegram_in_groups(bot: &TelegramBot) -> &'static str {
    if !bot.can_join_groups {
        "It cannot be added to groups; /setjoingroups at BotFather changes that."
    } else if bot.reads_groups {
        "In groups it sees every message, since its privacy mode is off. It answers mentions, replies and commands; \
         group_policy changes that."
    } else {
        "In groups it sees commands, replies to it and mentions, and nothing else: that is privacy mode. To have it see \
         everything, say /setprivacy to BotFather and add it to the group again, or make it an administrator."
    }
}

/// Who it is.
pub(super) fn discord(bot: &DiscordBot) -> String {
    let (name, username) = (printable(&bot.name), printable(&bot.username));
    if name == username { name } else { format!("{name} ({username})") }
}

/// Who it is.
pub(super) fn matrix(account: &MatrixAccount) -> String {
    let user = printable(&account.user);
    match &account.display_name {
        Some(name) => format!("{} ({user})", printable(name)),
        None => user,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_sees_in_groups_is_said() {
        let bot = |can_join_groups, reads_groups| {
            telegram_in_groups(&TelegramBot {
                name: String::new(),
                username: String::new(),
                can_join_groups,
                reads_groups,
            })
        };

        assert!(bot(true, false).contains("privacy mode") && bot(true, false).contains("/setprivacy"));
        assert!(bot(true, true).contains("every message"));
        assert!(bot(false, false).contains("/setjoingroups"));
    }
}
