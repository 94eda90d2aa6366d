//! What holds where nothing was written, and whether `default.toml` says so.

use std::collections::BTreeSet;

use rejoinder_config::{
    Access, Agent, Cause, Chat, Config, ConfigSource, DEFAULT_TOML, Rung, StoreUrl, TEMPLATES, Token,
};
use toml_edit::{DocumentMut, Item};

use crate::Machine;

/// `default.toml` with every line that is a setting in it: `#key = value` is one, `# prose` is not.
fn uncommented() -> String {
    let setting =
        |line: &'static str| line.strip_prefix('#').filter(|rest| !rest.is_empty() && !rest.starts_with([' ', '#']));
    DEFAULT_TOML.lines().map(|line| setting(line).unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// A machine where the example settings of `default.toml` hold too.
fn with_everything() -> Machine {
    Machine::with_toml(&uncommented()).with_environment(&[
        ("TICKETS_SIGNING_SECRET", "whsec_c2lnbmluZyBrZXkgb2YgdGlja2V0cw=="),
        ("TICKETS_HUB_SECRET", "hub"),
        ("TICKETS_CALLBACK_SECRET", "whsec_Y2FsbGJhY2sga2V5IG9mIHRpY2tldHM="),
        ("OPENAI_API_KEY", "sk-example"),
        ("DISCORD_BOT_TOKEN", "MTIz.exam.ple"),
        ("MATRIX_ACCESS_TOKEN", "syt_example"),
        ("MATRIX_PASSWORD", "example"),
        ("MATRIX_RECOVERY_KEY", "example"),
        ("TELEGRAM_BOT_TOKEN", "123456:example"),
        ("POSTED_BOT_TOKEN", "234567:example"),
        ("POSTED_WEBHOOK_SECRET", "example"),
    ])
}

#[test]
fn without_a_file_there_are_a_chat_page_a_hook_and_the_front_desk_on_loopback() {
    let loaded = Machine::new().load().expect("the defaults are right");
    let config = loaded.config;

    assert_eq!(loaded.source, ConfigSource::Defaults);
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:7420");
    assert_eq!(config.store.url, StoreUrl::Sqlite("rejoinder.db".into()));
    assert_eq!(config.channels.webchat["main"].access, Access::Loopback);
    assert!(matches!(config.channels.webhook["default"].token, Some(Token::Generate)));
    assert!(matches!(config.admin.token, Token::Generate));
    assert!(matches!(config.agents["front-desk"], Agent::FrontDesk(_)));
    assert_eq!(config.routing.default_agent, "front-desk");
}

#[test]
fn the_manual_as_a_file_changes_nothing() {
    let by_manual = Machine::with_toml(DEFAULT_TOML).config();

    assert_eq!(by_manual.to_toml_redacted(), Machine::new().config().to_toml_redacted());
}

#[test]
fn what_is_shown_can_be_loaded_and_shows_the_same() {
    let shown = Machine::new().config().to_toml_redacted();

    assert_eq!(Machine::with_toml(&shown).config().to_toml_redacted(), shown);
}

#[test]
fn every_example_of_the_manual_loads() {
    let config = with_everything().config();

    assert!(config.to_toml_redacted().contains("temperature = 0.7\n"));
    assert_eq!(config.channels.webchat["family"].access, Access::Token);
    assert!(config.channels.webhook["tickets"].callback_secret.is_some());
    assert_eq!(config.channels.telegram["main"].reactions["🥦"], "🔥");
    assert!(config.channels.telegram["posted"].webhook.is_some());
    assert!(matches!(config.agents["main"], Agent::OpenAi(_)));
    assert_eq!(config.routing.default_agent, "front-desk");
}

/// Both ways: what the manual names is known (or it would not load), and what is known the manual names.
#[test]
fn every_key_there_is_stands_in_the_manual() {
    let toml: DocumentMut = uncommented().parse().expect("it is TOML");
    let tables = [
        ("server", vec![&toml["server"]]),
        ("store", vec![&toml["store"]]),
        ("admin", vec![&toml["admin"]]),
        ("log", vec![&toml["log"]]),
        ("channels.discord.x", all(&toml["channels"]["discord"])),
        ("channels.matrix.x", all(&toml["channels"]["matrix"])),
        ("channels.telegram.x", all(&toml["channels"]["telegram"])),
        ("channels.telegram.x.webhook", vec![&toml["channels"]["telegram"]["posted"]["webhook"]]),
        ("channels.webchat.x", all(&toml["channels"]["webchat"])),
        ("channels.webhook.x", all(&toml["channels"]["webhook"])),
        ("routing", vec![&toml["routing"]]),
        ("outbox", vec![&toml["outbox"]]),
        ("guard", vec![&toml["guard"]]),
        ("guard.ladder.default", vec![&toml["guard"]["ladder"]["default"]]),
        ("guard.ladder.default.direct", vec![&toml["guard"]["ladder"]["default"]["direct"]]),
        ("guard.ladder.default.group", vec![&toml["guard"]["ladder"]["default"]["group"]]),
        ("guard.clarify.x", all(&toml["guard"]["clarify"])),
    ];

    for (header, tables) in tables {
        let in_manual: BTreeSet<String> = tables.iter().flat_map(|item| keys(item)).collect();
        assert_eq!(known_at(header, ""), in_manual, "[{header}]");
    }
    let mut openai = keys(&toml["agents"]["main"]);
    assert!(openai.remove("kind"));
    assert_eq!(known_at("agents.x", "kind = \"openai\"\nbase_url = \"http://x\"\nmodel = \"x\"\n"), openai);
}

/// The keys that the section takes, as it says itself when it is given one that it does not know.
fn known_at(header: &str, needed: &str) -> BTreeSet<String> {
    let errors = Machine::with_toml(&format!("[{header}]\n{needed}not-a-key-at-all = 1")).errors();
    let unknown = format!("`{header}.not-a-key-at-all` is unknown");
    let line = errors.lines().find(|line| line.contains(&unknown)).unwrap_or_else(|| panic!("{errors}"));
    let (_, known) = line.split_once("known here: ").unwrap_or_else(|| panic!("{line}"));
    known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn all(item: &Item) -> Vec<&Item> {
    item.as_table().expect("a table").iter().map(|(_, item)| item).collect()
}

fn keys(item: &Item) -> BTreeSet<String> {
    item.as_table_like().expect("a table").iter().map(|(key, _)| key.to_owned()).collect()
}

#[test]
fn a_key_without_a_value_in_its_table_has_the_default_that_the_manual_names() {
    let bare = Machine::with_toml(
        r#"
        [channels.webchat.main]
        [channels.webhook.default]
        token = { generate = true }
        [channels.discord.main]
        token = "MTIz.exam.ple"
        [channels.matrix.main]
        homeserver = "https://matrix.example.org"
        user = "@agent:example.org"
        password = "example"
        [channels.matrix.device]
        homeserver = "https://matrix.example.org"
        user = "@robot:example.org"
        access_token = "example"
        [channels.telegram.main]
        token = "123456:example"
        [channels.telegram.posted]
        token = "234567:example"
        mode = "webhook"
        webhook = { url = "https://rejoinder.example.org/telegram/posted" }
        [agents.main]
        kind = "openai"
        base_url = "http://127.0.0.1:11434/v1"
        model = "llama3.1"
        "#,
    )
    .config();
    let manual = with_everything().config();

    let [(webchat, webchat_manual), (webhook, webhook_manual)] = [
        (format!("{:?}", bare.channels.webchat), format!("{:?}", Machine::new().config().channels.webchat)),
        (format!("{:?}", bare.channels.webhook), format!("{:?}", Machine::new().config().channels.webhook)),
    ];
    assert_eq!((webchat, webhook), (webchat_manual, webhook_manual));

    let telegram = |config: &Config| {
        let mut bots = config.channels.telegram.clone();
        let main = bots.get_mut("main").expect("it is there");
        // These have no default to name.
        (main.reactions, main.agent, main.on_unknown) = Default::default();
        bots.get_mut("posted").and_then(|bot| bot.webhook.as_mut()).expect("it is there").secret = None;
        format!("{bots:?}")
    };
    assert_eq!(telegram(&bare), telegram(&manual));

    let discord = |config: &Config| {
        let mut bot = config.channels.discord["main"].clone();
        // These have no default to name.
        (bot.gateway_url, bot.agent) = Default::default();
        format!("{bot:?}")
    };
    assert_eq!(discord(&bare), discord(&manual));

    let matrix = |config: &Config| {
        let mut accounts = config.channels.matrix.clone();
        let main = accounts.get_mut("main").expect("it is there");
        // These have no default to name.
        (main.recovery_key, main.agent) = Default::default();
        format!("{accounts:?}")
    };
    assert_eq!(matrix(&bare), matrix(&manual));

    let (Agent::OpenAi(bare), Agent::OpenAi(manual)) = (&bare.agents["main"], &manual.agents["main"]) else {
        panic!("both are of kind openai");
    };
    assert_eq!((bare.tools, bare.images), (manual.tools, manual.images));
    assert_eq!(bare.thinks_first, manual.thinks_first);
    assert_eq!(bare.system_prompt, manual.system_prompt);
    assert_eq!((bare.history_messages, bare.history_chars), (manual.history_messages, manual.history_chars));
    assert_eq!((bare.first_token_timeout, bare.idle_timeout), (manual.first_token_timeout, manual.idle_timeout));
}

#[test]
fn every_key_and_table_of_the_manual_has_a_comment() {
    let mut above = "";
    for line in DEFAULT_TOML.lines() {
        let is_setting = !line.is_empty() && !line.starts_with("# ") && line != "#";
        if is_setting {
            let is_first_of_example = above.starts_with("#[");
            assert!(above.starts_with("# ") || is_first_of_example, "no comment above {line:?}");
        }
        above = line;
    }
}

#[test]
fn the_gateways_own_templates_are_those_of_the_manual() {
    let words = Machine::new().config().guard.templates;
    let in_manual: BTreeSet<&str> = words.for_channel("").into_keys().collect();

    assert_eq!(in_manual, BTreeSet::from(TEMPLATES));
}

/// A8, A11, B14.
#[test]
fn the_narrowest_ladder_holds_for_each_cause() {
    let guard = Machine::with_toml(
        r#"
        [agents.main]
        kind = "front-desk"
        [agents.boss]
        kind = "front-desk"
        [routing]
        default_agent = "main"
        [channels.webhook.siri]
        token = "t"
        [guard.ladder.webhook.direct]
        silent = [{ react = "👀" }]
        error = [{ handoff = "boss" }]
        [guard.ladder."webhook.siri".direct]
        silent = [{ say = "silent" }]
        "#,
    )
    .config()
    .guard;
    let direct = |channel, cause| guard.ladder.rungs(channel, Chat::Direct, cause).to_vec();
    let say = |name: &str| vec![Rung::Say(name.to_owned())];

    assert_eq!(direct("webhook.siri", Cause::Silent), say("silent"));
    assert_eq!(direct("webhook.other", Cause::Silent), [Rung::React("👀".to_owned())]);
    assert_eq!(direct("webhook.siri", Cause::Error), [Rung::Handoff("boss".to_owned())]);
    assert_eq!(direct("webhook.siri", Cause::Timeout), say("late"));
    assert_eq!(guard.ladder.rungs("webhook.siri", Chat::Group, Cause::Silent), say("silent"));
    assert_eq!(
        direct("webchat.main", Cause::Silent),
        [Rung::Clarify("what_next".to_owned()), Rung::Say("silent".to_owned())]
    );
}

#[test]
fn every_cause_has_a_rung_on_every_platform_by_default() {
    let guard = Machine::new().config().guard;

    for channel in ["discord.main", "telegram.main", "webchat.main", "webhook.default", "anything.else"] {
        for (chat, cause) in
            [Chat::Direct, Chat::Group].into_iter().flat_map(|chat| Cause::ALL.map(|cause| (chat, cause)))
        {
            assert!(!guard.ladder.rungs(channel, chat, cause).is_empty(), "{channel} {chat:?} {cause:?}");
        }
    }
}

/// A11.
#[test]
fn a_channels_own_words_come_before_its_platforms_and_those_before_everyones() {
    let words = Machine::with_toml(
        r#"
        [channels.webhook.siri]
        token = "t"
        [guard.templates]
        silent = "everyone's"
        [guard.templates."webhook.siri"]
        late = "siri's"
        "#,
    )
    .config()
    .guard
    .templates;
    let manual = Machine::new().config().guard.templates;

    assert_eq!(words.words("webhook.siri", "late"), Some("siri's"));
    assert_eq!(words.words("webhook.siri", "failed"), manual.words("webhook.default", "failed"));
    assert_eq!(words.words("webchat.main", "silent"), Some("everyone's"));
    assert_ne!(words.words("webhook.siri", "silent"), Some("everyone's"));
    assert_eq!(words.words("webchat.main", "unheard"), None);
}

#[test]
fn a_ladder_may_say_a_template_of_the_operators() {
    let config = Machine::with_toml(
        r#"
        [guard.ladder.default.direct]
        silent = [{ say = "calm" }]
        [guard.templates]
        calm = "All is well."
        "#,
    )
    .config();

    assert_eq!(config.guard.templates.words("webchat.main", "calm"), Some("All is well."));
}

#[test]
fn a_file_with_a_channel_of_its_own_has_no_other() {
    let config = Machine::with_toml("[channels.webhook.siri]\ntoken = \"t\"").config();

    assert!(config.channels.webchat.is_empty());
    assert_eq!(config.channels.webhook.keys().collect::<Vec<_>>(), ["siri"]);
}

#[test]
fn a_file_with_one_agent_routes_to_it() {
    let config = Machine::with_toml(
        "[agents.main]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:11434/v1\"\nmodel = \"llama3.1\"",
    )
    .config();

    assert_eq!(config.routing.default_agent, "main");
    assert_eq!(config.agents.keys().collect::<Vec<_>>(), ["main"]);
}

#[test]
fn a_file_with_empty_tables_is_a_file_without_them() {
    let config = Machine::with_toml("[channels]\n[agents]\n[server]").config();

    assert_eq!(config.to_toml_redacted(), Machine::new().config().to_toml_redacted());
}

#[test]
fn deferrals_of_the_gateways_own_can_be_switched_off() {
    let config = Machine::with_toml("[guard]\nsoft_deadline = \"off\"").config();

    assert_eq!(config.guard.soft_deadline, None);
    assert!(config.to_toml_redacted().contains("soft_deadline = \"off\""));
}

#[test]
fn the_database_is_in_the_data_directory_unless_its_path_is_absolute() {
    let path =
        |url: &str| Machine::with_toml(&format!("[store]\nurl = \"{url}\"")).config().store.url.path("/data".as_ref());

    assert_eq!(path("sqlite:rejoinder.db"), std::path::Path::new("/data/rejoinder.db"));
    assert_eq!(path("sqlite://rejoinder.db"), std::path::Path::new("/data/rejoinder.db"));
    assert_eq!(path("sqlite:///var/lib/r.db"), std::path::Path::new("/var/lib/r.db"));
}
