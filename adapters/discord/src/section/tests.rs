//! Tests of the Discord section: valid keys, and the errors for invalid ones.

use rejoinder_config::testing::{Machine, check_channel_manual};
use rejoinder_core::DirectPolicy;
use rstest::rstest;

use super::*;

/// An application whose token is in line 2, followed by `keys`.
fn bot(keys: &str) -> Machine {
    Machine::with_channel::<DiscordSection>(&format!("[channels.discord.main]\ntoken = \"MTIz.abc_DEF.g-h1\"\n{keys}"))
}

fn read(keys: &str) -> DiscordSection {
    bot(keys).config().channels.of::<DiscordSection>().next().expect("one channel").1.clone()
}

#[test]
fn an_application_needs_a_token_and_no_more() {
    let bot = read("");

    assert_eq!((bot.streaming, bot.pace), (Streaming::Edit, Pace::Discord));
    assert_eq!((bot.people.dm_policy, bot.people.group_policy), (DirectPolicy::Pairing, GroupPolicy::Mention));
    assert!(
        bot.people.allow_from.is_empty() && bot.people.group_allow_from.is_empty() && bot.people.allow_bots.is_empty()
    );
    assert!(bot.message_content && bot.commands && bot.command_guilds.is_empty());
    assert!(!bot.auto_thread && bot.suppress_embeds && bot.people.quote_strangers && !bot.tell_reactions);
    assert_eq!((bot.api_url.as_str(), bot.gateway_url), ("https://discord.com/", None));
    assert_eq!(bot.backfill_max_age, Duration::from_hours(24));
    assert_eq!((bot.max_attachment.bytes(), bot.max_upload.bytes()), (25 << 20, 25 << 20));
}

#[test]
fn the_pace_stays_within_what_discord_says() {
    let all = Pace::Discord.limits().account.expect("a limit");

    assert!(u128::from(all.burst) + 1_000 / all.per.as_millis() <= 50);
}

#[test]
fn everything_about_an_application_can_be_said() {
    let bot = read(
        r#"
        api_url = "http://127.0.0.1:8081/base"
        gateway_url = "ws://127.0.0.1:8081/gateway"
        dm_policy = "open"
        group_policy = "all"
        allow_bots = ["43", 42]
        command_guilds = ["197038439483310086", 81384788765712384]
        auto_thread = true
        streaming = "off"
        suppress_embeds = false
        quote_strangers = false
        tell_reactions = true
        backfill_max_age = "90m"
        max_attachment = "1 MiB"
        max_upload = "2 MiB"
        pace = "server"
        agent = "front-desk"
        "#,
    );

    assert_eq!((bot.streaming, bot.pace), (Streaming::Off, Pace::Server));
    assert_eq!((bot.people.dm_policy, bot.people.group_policy), (DirectPolicy::Open, GroupPolicy::All));
    assert_eq!(bot.people.allow_bots.iter().collect::<Vec<_>>(), ["43", "42"]);
    assert_eq!(bot.command_guilds, ["197038439483310086", "81384788765712384"]);
    assert_eq!(bot.gateway_url.map(String::from).as_deref(), Some("ws://127.0.0.1:8081/gateway"));
    assert_eq!(bot.backfill_max_age, Duration::from_mins(90));
    assert!(bot.auto_thread && !bot.suppress_embeds && !bot.people.quote_strangers && bot.tell_reactions);
}

#[test]
fn people_and_channels_are_named_by_number_by_name_or_all_at_once() {
    let bot = read(r#"allow_from = [80351110224678912, "18446744073709551615", " @Ada_L ", "@g.hopper", "*"]"#);
    let servers = read(r#"group_allow_from = [155101607195836416, "@ada_l"]"#);

    assert_eq!(
        bot.people.allow_from.iter().collect::<Vec<_>>(),
        ["80351110224678912", "18446744073709551615", "@Ada_L", "@g.hopper", "*"]
    );
    assert_eq!(servers.people.group_allow_from.iter().collect::<Vec<_>>(), ["155101607195836416", "@ada_l"]);
}

#[test]
fn lists_can_be_set_from_the_environment() {
    let machine = bot("").with_environment(&[
        ("REJOINDER__CHANNELS__DISCORD__MAIN__ALLOW_FROM", "[42, \"@ada_l\"]"),
        ("REJOINDER__CHANNELS__DISCORD__MAIN__COMMAND_GUILDS", "[7]"),
    ]);

    let config = machine.config();
    let bot = config.channels.of::<DiscordSection>().next().expect("one channel").1;

    assert_eq!(bot.people.allow_from.iter().collect::<Vec<_>>(), ["42", "@ada_l"]);
    assert_eq!(bot.command_guilds, ["7"]);
}

#[test]
fn what_is_shown_of_an_application_can_be_loaded_but_for_its_token() {
    let machine = bot(
        "allow_from = [42]\ncommand_guilds = [7]\nbackfill_max_age = \"0s\"\ngateway_url = \"wss://gateway.example.org\"",
    );
    let shown = machine.config().to_toml_redacted();
    assert!(shown.contains("token = \"***\"") && !shown.contains("abc_DEF"), "{shown}");

    let again = Machine::with_channel::<DiscordSection>(&shown.replace("***", "MTIz.a.b")).config().to_toml_redacted();

    assert_eq!(again, shown);
}

/// One mistake each: the keys below the token, and the error after "channels.discord.main."
#[rstest]
#[case::an_address_that_is_none(
    "api_url = \"discord\"",
    "api_url` must be a URL that begins with http:// or https://, not \"discord\""
)]
#[case::an_address_with_a_query(
    "api_url = \"https://x/?a=1\"",
    "api_url` must end with the path: remove the part from the `?` or `#` on"
)]
#[case::a_gateway_of_another_kind(
    "gateway_url = \"https://gateway.discord.gg\"",
    "gateway_url` must be a URL that begins with ws:// or wss://, not \"https://gateway.discord.gg\""
)]
#[case::a_gateway_with_a_query(
    "gateway_url = \"wss://gateway.discord.gg/?v=10\"",
    "gateway_url` must end with the path: remove the part from the `?` or `#` on"
)]
#[case::a_gateway_with_a_password(
    "gateway_url = \"wss://me:pw@gateway.discord.gg\"",
    "gateway_url` contains a user or a password, which would be printed with it: remove them"
)]
#[case::a_policy_for_direct_chats_that_there_is_not(
    "dm_policy = \"nobody\"",
    "dm_policy` must be one of `pairing`, `allowlist`, `open` or `disabled`, not `nobody`"
)]
#[case::a_slip_in_a_policy(
    "group_policy = \"mentions\"",
    "group_policy` must be one of `mention`, `all` or `disabled`, not `mentions` (did you mean `mention`?)"
)]
#[case::no_list("allow_from = 42", "allow_from` must be a list, not a number")]
#[case::nobody("allow_from = [42, \" \"]", "allow_from[1]` is empty: it must be an id or a name")]
#[case::a_name_that_nobody_can_have(
    "allow_from = [\"Ada Lovelace\"]",
    "allow_from[0]` must be a person's id such as 80351110224678912, a username such as \"@ada_l\", or \"*\", not \"Ada Lovelace\""
)]
#[case::a_mention(
    "allow_from = [\"<@80351110224678912>\"]",
    "allow_from[0]` must be a person's id such as 80351110224678912, a username such as \"@ada_l\", or \"*\", not \"<@80351110224678912>\""
)]
#[case::a_number_that_is_no_id(
    "allow_from = [\"99999999999999999999\"]",
    "allow_from[0]` must be a person's id such as 80351110224678912, a username such as \"@ada_l\", or \"*\", not \"99999999999999999999\""
)]
#[case::a_channels_name(
    "group_allow_from = [\"#general\"]",
    "group_allow_from[0]` must be a person's id such as 80351110224678912, a username such as \"@ada_l\", or \"*\", or a channel's id, not \"#general\""
)]
#[case::a_bot_that_is_none(
    "allow_bots = [\"<@42>\"]",
    "allow_bots[0]` must be a bot's or webhook's id, or \"*\", not \"<@42>\""
)]
#[case::a_bots_name(
    "allow_bots = [\"@robot\"]",
    "allow_bots[0]` must be a bot's or webhook's id, or \"*\", not \"@robot\""
)]
#[case::a_name_without_its_sign(
    "allow_from = [\"ada_l\"]",
    "allow_from[0]` must be a person's id such as 80351110224678912, a username such as \"@ada_l\", or \"*\", not \"ada_l\""
)]
#[case::a_servers_name(
    "command_guilds = [\"197038439483310086\", \"ours\"]",
    "command_guilds[1]` must be a server's id such as \"197038439483310086\", not \"ours\""
)]
#[case::a_servers_number_that_is_none(
    "command_guilds = [-1]",
    "command_guilds[0]` must be a server's id such as \"197038439483310086\", not -1"
)]
#[case::servers_for_no_commands(
    "command_guilds = [7]\ncommands = false",
    "command_guilds` is not used while commands is false: remove one of the two"
)]
#[case::everything_without_its_words(
    "group_policy = \"all\"\nmessage_content = false",
    "group_policy` is \"all\", but message_content is false, so most messages arrive without text: set it to true, or use \"mention\" here"
)]
#[case::a_way_of_streaming_that_there_is_not(
    "streaming = \"draft\"",
    "streaming` must be `edit` or `off`, not `draft`"
)]
#[case::a_pace_that_there_is_not("pace = \"telegram\"", "pace` must be `discord` or `server`, not `telegram`")]
#[case::a_switch_of_another_type("auto_thread = \"yes\"", "auto_thread` must be a boolean, not \"yes\"")]
#[case::a_gap_that_is_too_long("backfill_max_age = \"721h\"", "backfill_max_age` must be from 0s to 720h, not 721h")]
#[case::a_gap_that_is_none(
    "backfill_max_age = \"a day\"",
    "backfill_max_age` must be a duration such as \"250ms\", \"20s\", \"10m\" or \"1h30m\", not \"a day\""
)]
#[case::a_file_that_is_too_large(
    "max_upload = \"2 GiB\"",
    "max_upload` must be a size from \"1 KiB\" to \"64 MiB\", not \"2 GiB\""
)]
#[case::an_agent_that_is_not_there(
    "agent = \"boss\"",
    "agent` names the agent `boss`, which does not exist: there is only `front-desk`"
)]
#[case::a_slip_in_a_key("auto_threads = true", "auto_threads` is unknown: did you mean `auto_thread`?")]
fn a_mistake_is_named_with_its_key_file_and_line(#[case] keys: &str, #[case] said: &str) {
    assert_eq!(bot(keys).errors(), format!("config key `channels.discord.main.{said} (rejoinder.toml:3)"));
}

#[rstest]
#[case::nothing("", "is empty")]
#[case::words("my bot", "must be the token from \"Bot\" in the developer portal: three parts separated by dots")]
#[case::the_applications_id(
    "80351110224678912",
    "must be the token from \"Bot\" in the developer portal: three parts separated by dots"
)]
#[case::with_its_scheme(
    "Bot MTIz.abc.def",
    "must be the token from \"Bot\" in the developer portal: three parts separated by dots"
)]
#[case::a_part_that_is_empty(
    "MTIz..def",
    "must be the token from \"Bot\" in the developer portal: three parts separated by dots"
)]
fn what_is_no_token_is_named_and_not_shown(#[case] token: &str, #[case] said: &str) {
    let machine = Machine::with_channel::<DiscordSection>(&format!("[channels.discord.main]\ntoken = \"{token}\""));

    assert_eq!(machine.errors(), format!("config key `channels.discord.main.token` {said} (rejoinder.toml:2)"));
}

#[test]
fn an_application_without_a_token_is_named() {
    let machine = Machine::with_channel::<DiscordSection>("[channels.discord.main]\nstreaming = \"off\"");

    assert_eq!(machine.errors(), "config key `channels.discord.main.token` must be set (rejoinder.toml:1)");
}

/// F2.
#[test]
fn two_channels_of_one_bot_are_named() {
    let machine = Machine::with_channel::<DiscordSection>(
        "[channels.discord.a]\ntoken = \"MTIz.a.b\"\n[channels.discord.b]\ntoken = \"MTIz.c.d\"\n[channels.discord.c]\ntoken = \"MTI0.a.b\"",
    );

    assert_eq!(
        machine.errors(),
        "config key `channels.discord.b.token` is the token of channels.discord.a too: a bot can be used by one channel only (rejoinder.toml:4)"
    );
}

#[test]
fn the_manual_holds() {
    check_channel_manual::<DiscordSection>(
        &[("DISCORD_BOT_TOKEN", "MTIz.exam.ple")],
        &["gateway_url", "agent", "language", "queue", "group_queue", "voice", "groups"],
    );
}
