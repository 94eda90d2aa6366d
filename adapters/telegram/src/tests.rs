//! Tests of the whole adapter.

use std::{sync::Arc, time::Duration};

use rejoinder_core::SystemClock;
use url::Url;

use super::*;

/// A bot on the server at `api_url`.
pub(crate) fn bot(api_url: &str) -> Telegram {
    bot_with(api_url, TelegramSection::default())
}

/// As [`bot`], with other options.
pub(crate) fn bot_with(api_url: &str, options: TelegramSection) -> Telegram {
    bot_of(api_url, TelegramSection { token: "7:test".into(), ..options })
}

/// As [`bot_with`], with the token in `options`.
pub(crate) fn bot_of(api_url: &str, options: TelegramSection) -> Telegram {
    let options = TelegramSection { api_url: Url::parse(api_url).expect("an address"), ..options };
    let http = Client::builder().connect_timeout(Duration::from_secs(5)).build().expect("a client");
    Telegram::new(ChannelId::new("telegram", "main"), options, Arc::new(SystemClock), http)
}

#[test]
fn what_can_be_done_depends_on_the_place() {
    let bot = bot("http://127.0.0.1:1");
    let at = |chat: &str| bot.capabilities(&ConversationRef::new(bot.channel.clone(), chat));

    assert!(at("42").conversation_rate.expect("a rate").per < at("-42").conversation_rate.expect("a rate").per);
}

#[test]
fn drafts_are_shown_as_the_operator_chose() {
    let drafts = |streaming, chat: &str| {
        let bot = bot_with("http://127.0.0.1:1", TelegramSection { streaming, ..TelegramSection::default() });
        let capabilities = bot.capabilities(&ConversationRef::new(bot.channel.clone(), chat));
        (capabilities.drafts != rejoinder_core::Support::No, capabilities.drafts_are_messages)
    };

    assert_eq!(drafts(Streaming::Edit, "-42"), (true, true));
    assert_eq!(drafts(Streaming::Draft, "42"), (true, false));
    assert_eq!(drafts(Streaming::Draft, "-42"), (false, false));
    assert_eq!(drafts(Streaming::Off, "42"), (false, false));
}

#[test]
fn there_is_a_menu_for_everybody_and_one_for_each_language() {
    let german = Language::of("de").expect("it is a language");
    let swiss = Language::of("gsw").expect("it is a language");
    let command = |name: &'static str, descriptions: &[(Language, &str)]| CommandHelp {
        name: name.into(),
        description: "What it does".into(),
        descriptions: descriptions.iter().map(|(language, text)| (*language, (*text).to_owned())).collect(),
        argument: None,
    };

    let menus = menus(&[command("help", &[(german, "Was es tut"), (swiss, "Was es macht")]), command("weather", &[])]);

    let shown = |menu: &SetMyCommands| menu.commands.iter().map(|it| it.description.clone()).collect::<Vec<_>>();
    assert_eq!(menus.len(), 2, "Telegram knows no language by three letters");
    assert_eq!((menus[0].language_code.as_deref(), shown(&menus[0])), (None, vec!["What it does".to_owned(); 2]));
    let in_german = vec!["Was es tut".to_owned(), "What it does".to_owned()];
    assert_eq!((menus[1].language_code.as_deref(), shown(&menus[1])), (Some("de"), in_german));
}
