//! Tests of the Telegram section: valid keys, and the errors for invalid ones.

use rejoinder_config::testing::{Machine, check_channel_manual, known_in};
use rejoinder_core::{DirectPolicy, GroupPolicy};
use rstest::rstest;

use super::*;

/// A bot whose token is in line 2, followed by `keys`.
fn bot(keys: &str) -> Machine {
    Machine::with_channel::<TelegramSection>(&format!("[channels.telegram.main]\ntoken = \"123456:abc_DEF-1\"\n{keys}"))
}

fn read(keys: &str) -> TelegramSection {
    bot(keys).config().channels.of::<TelegramSection>().next().expect("one channel").1.clone()
}

#[test]
fn a_bot_needs_a_token_and_no_more() {
    let bot = read("");

    assert_eq!((bot.mode, bot.streaming, bot.pace), (UpdateMode::Polling, Streaming::Edit, Pace::Telegram));
    assert_eq!((bot.people.dm_policy, bot.people.group_policy), (DirectPolicy::Pairing, GroupPolicy::Mention));
    assert!(bot.people.allow_from.is_empty() && bot.people.group_allow_from.is_empty());
    assert!(!bot.link_previews && !bot.tell_reactions);
    assert_eq!(bot.api_url.as_str(), "https://api.telegram.org/");
    assert_eq!(bot.max_attachment.bytes(), 20 << 20);
    assert_eq!(bot.on_unknown, None);
}

#[test]
fn everything_about_a_bot_can_be_said() {
    let bot = read(
        r#"
        mode = "webhook"
        webhook = { url = "https://bot.example.org:8443/telegram/main", secret = "s_1-A", max_connections = 100 }
        dm_policy = "open"
        group_policy = "all"
        streaming = "draft"
        link_previews = true
        reactions = { "✅" = "👍", "❤️‍🩹" = "❤️" }
        tell_reactions = true
        max_attachment = "1 MiB"
        on_unknown = "hold"
        pace = "server"
        agent = "front-desk"
        "#,
    );

    assert_eq!((bot.mode, bot.streaming, bot.pace), (UpdateMode::Webhook, Streaming::Draft, Pace::Server));
    assert_eq!((bot.people.dm_policy, bot.people.group_policy), (DirectPolicy::Open, GroupPolicy::All));
    assert_eq!(bot.on_unknown, Some(OnUnknown::Hold));
    assert_eq!(bot.reactions.len(), 2);
    assert_eq!(bot.webhook.map(|webhook| webhook.max_connections), Some(100));
}

#[test]
fn the_pace_stays_within_what_telegram_says() {
    let limits = Pace::Telegram.limits();
    let most = |rate: Option<Rate>, window: Duration| {
        let rate = rate.expect("a limit");
        u128::from(rate.burst) + window.as_millis() / rate.per.as_millis()
    };

    assert!(most(limits.group, Duration::from_mins(1)) <= 20);
    assert!(most(limits.account, Duration::from_secs(1)) <= 30);
    assert_eq!(limits.chat.map(|rate| rate.per), Some(Duration::from_secs(1)));
}

#[test]
fn people_are_named_by_number_by_name_or_all_at_once() {
    let bot = read(r#"allow_from = [123456789, "987", " @Ada_L ", "@grace", "*"]"#);
    let groups = read(r#"group_allow_from = [-1001234567890, "-5", 42, "@ada_l"]"#);

    assert_eq!(bot.people.allow_from.iter().collect::<Vec<_>>(), ["123456789", "987", "@Ada_L", "@grace", "*"]);
    assert_eq!(groups.people.group_allow_from.iter().collect::<Vec<_>>(), ["-1001234567890", "-5", "42", "@ada_l"]);
}

#[test]
fn a_list_can_be_set_from_the_environment() {
    let machine = bot("").with_environment(&[("REJOINDER__CHANNELS__TELEGRAM__MAIN__ALLOW_FROM", "[42, \"@ada_l\"]")]);

    let config = machine.config();

    assert_eq!(
        config
            .channels
            .of::<TelegramSection>()
            .next()
            .expect("one channel")
            .1
            .people
            .allow_from
            .iter()
            .collect::<Vec<_>>(),
        ["42", "@ada_l"]
    );
}

#[test]
fn a_server_of_ones_own_may_be_anywhere_and_post_anywhere() {
    let bot = read(
        "api_url = \"http://127.0.0.1:8081/base\"\nmode = \"webhook\"\nwebhook = { url = \"http://127.0.0.1:7420/telegram/main\" }",
    );

    assert_eq!(bot.api_url.as_str(), "http://127.0.0.1:8081/base");
}

#[test]
fn what_is_shown_of_a_bot_can_be_loaded_but_for_its_token() {
    let machine = bot("allow_from = [42]\nreactions = { \"✅\" = \"👍\" }\npoll_timeout = \"5s\"");
    let shown = machine.config().to_toml_redacted();
    assert!(shown.contains("token = \"***\"") && !shown.contains("abc_DEF"), "{shown}");

    let again =
        Machine::with_channel::<TelegramSection>(&shown.replace("***", "123456:abc")).config().to_toml_redacted();

    assert_eq!(again, shown);
}

/// One mistake each: the keys below the token, and the error after "channels.telegram.main."
#[rstest]
#[case::an_address_that_is_none(
    "api_url = \"telegram\"",
    "api_url` must be a URL that begins with http:// or https://, not \"telegram\""
)]
#[case::an_address_with_a_query(
    "api_url = \"https://x/?a=1\"",
    "api_url` must end with the path: remove the part from the `?` or `#` on"
)]
#[case::a_mode_that_there_is_not("mode = \"pull\"", "mode` must be `polling` or `webhook`, not `pull`")]
#[case::a_poll_that_is_too_long("poll_timeout = \"51s\"", "poll_timeout` must be from 1s to 50s, not 51s")]
#[case::a_poll_that_does_not_wait("poll_timeout = \"0s\"", "poll_timeout` must be from 1s to 50s, not 0s")]
#[case::a_policy_for_direct_chats_that_there_is_not(
    "dm_policy = \"nobody\"",
    "dm_policy` must be one of `pairing`, `allowlist`, `open` or `disabled`, not `nobody`"
)]
#[case::a_slip_in_a_policy(
    "group_policy = \"mentions\"",
    "group_policy` must be one of `mention`, `all` or `disabled`, not `mentions` (did you mean `mention`?)"
)]
#[case::no_list("allow_from = 42", "allow_from` must be a list, not a number")]
#[case::a_list_of_other_things("allow_from = [true]", "allow_from[0]` must be an id or a name, not true")]
#[case::nobody("allow_from = [42, \" \"]", "allow_from[1]` is empty: it must be an id or a name")]
#[case::a_name_that_nobody_can_have(
    "allow_from = [\"Ada Lovelace\"]",
    "allow_from[0]` must be a person's id such as 123456789, a username such as \"@ada_l\", or \"*\", not \"Ada Lovelace\""
)]
#[case::a_group_among_people(
    "allow_from = [-1001234567890]",
    "allow_from[0]` is a group: groups belong in group_allow_from"
)]
#[case::a_group_that_is_none(
    "group_allow_from = [\"our group\"]",
    "group_allow_from[0]` must be a person's id such as 123456789, a username such as \"@ada_l\", or \"*\", or a group's id such as -1001234567890, not \"our group\""
)]
#[case::a_way_of_streaming_that_there_is_not(
    "streaming = \"on\"",
    "streaming` must be one of `edit`, `draft` or `off`, not `on`"
)]
#[case::a_switch_of_another_type("link_previews = \"yes\"", "link_previews` must be a boolean, not \"yes\"")]
#[case::a_file_that_is_too_large(
    "max_attachment = \"2 GiB\"",
    "max_attachment` must be a size from \"1 KiB\" to \"64 MiB\", not \"2 GiB\""
)]
#[case::a_policy_that_there_is_not(
    "on_unknown = \"never\"",
    "on_unknown` must be one of `resend`, `label` or `hold`, not `never`"
)]
#[case::an_agent_that_is_not_there(
    "agent = \"boss\"",
    "agent` names the agent `boss`, which does not exist: there is only `front-desk`"
)]
#[case::a_slip_in_a_key("link_preview = true", "link_preview` is unknown: did you mean `link_previews`?")]
#[case::a_webhook_that_is_not_used(
    "webhook = { url = \"https://x/\" }",
    "webhook` is not used while mode is \"polling\": set mode = \"webhook\", or remove this table"
)]
#[case::a_reaction_to_no_emoji(
    "reactions = { ok = \"👍\" }",
    "reactions.ok` is not an emoji: write it as \"✅\" = \"👍\""
)]
fn a_mistake_is_named_with_its_key_file_and_line(#[case] keys: &str, #[case] said: &str) {
    assert_eq!(bot(keys).errors(), format!("config key `channels.telegram.main.{said} (rejoinder.toml:3)"));
}

#[rstest]
#[case::no_address(
    "",
    1,
    "webhook.url` must be set: with mode \"webhook\" Telegram needs the public address that leads to this channel"
)]
#[case::an_address_in_the_clear(
    "webhook = { url = \"http://x/\" }",
    4,
    "webhook.url` must begin with https://: Telegram posts over https only"
)]
#[case::another_port(
    "webhook = { url = \"https://x:7420/\" }",
    4,
    "webhook.url` must use port 443, 80, 88 or 8443: Telegram posts to no other port"
)]
#[case::a_secret_that_cannot_be_sent(
    "webhook = { url = \"https://x/\", secret = \"a b\" }",
    4,
    "webhook.secret` must be 1 to 256 characters of A-Z, a-z, 0-9, _ and -"
)]
#[case::no_connections(
    "webhook = { url = \"https://x/\", max_connections = 0 }",
    4,
    "webhook.max_connections` must be a whole number from 1 to 100, not 0"
)]
#[case::a_slip_in_a_key(
    "webhook = { url = \"https://x/\", secrt = \"a\" }",
    4,
    "webhook.secrt` is unknown: did you mean `secret`?"
)]
fn a_webhook_that_cannot_work_is_named(#[case] keys: &str, #[case] line: usize, #[case] said: &str) {
    let errors = bot(&format!("mode = \"webhook\"\n{keys}")).errors();

    assert_eq!(errors, format!("config key `channels.telegram.main.{said} (rejoinder.toml:{line})"));
}

#[rstest]
#[case::nothing("", "is empty")]
#[case::words("my bot", "must be the token from BotFather: the bot's number, a colon, and letters, digits, _ and -")]
#[case::a_number("123456", "must be the token from BotFather: the bot's number, a colon, and letters, digits, _ and -")]
#[case::an_address(
    "bot123456:abc",
    "must be the token from BotFather: the bot's number, a colon, and letters, digits, _ and -"
)]
#[case::a_line(
    "123456:abc def",
    "must be the token from BotFather: the bot's number, a colon, and letters, digits, _ and -"
)]
fn what_is_no_token_is_named_and_not_shown(#[case] token: &str, #[case] said: &str) {
    let machine = Machine::with_channel::<TelegramSection>(&format!("[channels.telegram.main]\ntoken = \"{token}\""));

    assert_eq!(machine.errors(), format!("config key `channels.telegram.main.token` {said} (rejoinder.toml:2)"));
}

#[test]
fn a_bot_without_a_token_is_named() {
    let machine = Machine::with_channel::<TelegramSection>("[channels.telegram.main]\nstreaming = \"off\"");

    assert_eq!(machine.errors(), "config key `channels.telegram.main.token` must be set (rejoinder.toml:1)");
}

#[test]
fn an_emoji_that_is_no_reaction_there_is_named_with_those_that_are() {
    let errors = bot("reactions = { \"🥦\" = \"✅\" }").errors();

    let said = "config key `channels.telegram.main.reactions.\"🥦\"` must be an emoji that Telegram offers as a reaction, not \"✅\": 👍 👎 ❤";
    assert!(errors.starts_with(said), "{errors}");
    assert!(errors.ends_with("(rejoinder.toml:3)"), "{errors}");
}

/// F2.
#[test]
fn two_channels_of_one_bot_are_named() {
    let machine = Machine::with_channel::<TelegramSection>(
        "[channels.telegram.a]\ntoken = \"123:abc\"\n[channels.telegram.b]\ntoken = \"123:def\"\n[channels.telegram.c]\ntoken = \"124:abc\"",
    );

    assert_eq!(
        machine.errors(),
        "config key `channels.telegram.b.token` is the token of channels.telegram.a too: a bot can be used by one channel only (rejoinder.toml:4)"
    );
}

#[test]
fn the_manual_holds() {
    check_channel_manual::<TelegramSection>(
        &[
            ("TELEGRAM_BOT_TOKEN", "123456:example"),
            ("POSTED_BOT_TOKEN", "234567:example"),
            ("POSTED_WEBHOOK_SECRET", "example"),
        ],
        &["reactions", "agent", "language", "queue", "group_queue", "voice", "on_unknown", "mode", "webhook", "groups"],
    );
}

/// `check_channel_manual` does not cover the keys and defaults of the nested table.
#[test]
fn what_the_manual_says_of_a_webhook_holds() {
    let bare = bot("mode = \"webhook\"\nwebhook = { url = \"https://x/\" }").config();
    let (_, bot_of) = bare.channels.of::<TelegramSection>().next().expect("one channel");
    assert_eq!(bot_of.webhook.as_ref().map(|webhook| webhook.max_connections), Some(40));

    let manual = TelegramSection::MANUAL;
    let errors = bot("mode = \"webhook\"\nwebhook = { url = \"https://x/\", not-a-key-at-all = 1 }").errors();
    for key in known_in(&errors, "channels.telegram.main.webhook.not-a-key-at-all") {
        assert!(manual.contains(&format!("\n#{key} = ")), "{key}");
    }
    assert!(manual.contains("\n#max_connections = 40\n"));
}

#[test]
fn what_differs_in_a_group_is_a_rule_and_a_policy() {
    let config = bot("[channels.telegram.main.groups.\"-5\"]\nagent = \"front-desk\"\ngroup_policy = \"all\"\nsoft_deadline = \"off\"\n\
         [channels.telegram.main.groups.\"-6\"]\ngroup_policy = \"disabled\"\n")
    .config();
    let (id, channel) = config.channels.iter().next().expect("one channel");

    let rules: Vec<_> = channel.common.keys.groups.rules(&id).collect();
    let names: Vec<_> = rules.iter().map(|rule| &*rule.name).collect();
    assert_eq!(names, ["channels.telegram.main.groups.-5"]);
    assert_eq!(rules[0].conditions[0].to_string(), "conversation = \"telegram.main/-5\"");
    assert_eq!((rules[0].agent.as_deref(), rules[0].policy.soft_deadline), (Some("front-desk"), Some(None)));
    let policies: Vec<_> = channel.common.keys.groups.policies().collect();
    assert_eq!(policies, [("-5", GroupPolicy::All), ("-6", GroupPolicy::Disabled)]);
}

#[test]
fn what_is_wrong_with_a_group_is_named() {
    let errors = bot("[channels.telegram.main.groups.42]\nagent = \"boss\"\nhard_deadline = \"10s\"\n\
         ladder = { silent = [{ say = \"silnt\" }] }\n")
    .errors();

    for what in ["groups.42` must be called by a group's id such as", "`boss`, which does not exist"] {
        assert!(errors.contains(what), "{errors}");
    }
    let errors = bot("[channels.telegram.main.groups.\"-42\"]\nhard_deadline = \"10s\"\n\
         ladder = { silent = [{ say = \"silnt\" }] }\n")
    .errors();
    for what in
        ["groups.-42.hard_deadline` must be longer", "groups.-42.ladder.silent[0].say` names the template `silnt`"]
    {
        assert!(errors.contains(what), "{errors}");
    }
}
