//! The defaults, and whether `default.toml` documents them.

use std::collections::BTreeSet;

use rejoinder_config::{
    ConfigSource, StoreUrl, TEMPLATES, TokenValue,
    testing::{check_agent_manual, check_channel_manual, every_key_has_a_comment, keys, known_in, uncommented},
};
use rejoinder_core::{Cause, ChannelId, ChatKind, FileLimits, Identity, Language, PersonRole, Rung, SeedPerson};
use toml_edit::{DocumentMut, Item};

use crate::{
    BUILD, Machine,
    sections::{Hook, Page, Robot},
};

#[test]
fn without_a_file_there_is_what_the_manual_has() {
    let loaded = Machine::new().load().expect("the defaults are valid");
    let config = loaded.config;

    assert_eq!(loaded.source, ConfigSource::Defaults);
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:7420");
    assert_eq!(config.store.url, StoreUrl::Sqlite("rejoinder.db".into()));
    let channels: Vec<_> = config.channels.iter().map(|(id, _)| id.to_string()).collect();
    assert_eq!(channels, ["hook.default", "page.main"]);
    assert!(matches!(config.admin.token.current, TokenValue::Generate));
    assert_eq!(config.agents["front-desk"].kind, "front-desk");
    assert_eq!(config.routing.default_agent, "front-desk");
    assert_eq!(config.files.limits(), FileLimits::default());
}

#[test]
fn the_manual_names_the_platforms_and_the_kinds_of_agents() {
    let manual = BUILD.manual();

    assert!(manual.contains("the platforms hook and page."), "{manual}");
    assert!(manual.contains("The kind: \"front-desk\" or \"robot\"."), "{manual}");
    assert!(!manual.contains("#{"), "{manual}");
}

#[test]
fn the_manual_as_a_file_changes_nothing() {
    let by_manual = Machine::with_toml(&BUILD.manual()).config();

    assert_eq!(by_manual.to_toml_redacted(), Machine::new().config().to_toml_redacted());
}

#[test]
fn what_is_shown_can_be_loaded_and_shows_the_same() {
    let shown = Machine::new().config().to_toml_redacted();

    assert_eq!(Machine::with_toml(&shown).config().to_toml_redacted(), shown);
}

#[test]
fn a_section_is_shown_in_the_order_of_its_keys_as_toml_and_as_json() {
    let config = Machine::with_toml(
        "[channels.hook.a]\ntoken = \"token-of-these-tests\"\nwait = \"5s\"\nagent = \"front-desk\"",
    )
    .config();

    let toml = config.to_toml_redacted();
    assert!(toml.contains("[channels.hook.a]\ntoken = \"***\"\nwait = \"5s\"\nagent = \"front-desk\"\n"), "{toml}");
    let json = serde_json::to_string(&config).expect("it can be written");
    assert!(
        json.contains(r#""a":{"token":"***","key":null,"wait":"5s","callback":null,"agent":"front-desk"}"#),
        "{json}"
    );
    assert!(json.contains(r#"{"front-desk":{"kind":"front-desk"}}"#), "{json}");
}

#[test]
fn a_section_is_its_platforms_and_nobody_elses() {
    let config = Machine::with_toml("[channels.hook.a]\ntoken = \"token-of-these-tests\"").config();

    assert_eq!(config.channels.of::<Hook>().map(|(name, _)| name).collect::<Vec<_>>(), ["a"]);
    assert_eq!(config.channels.of::<Page>().count(), 0);
    let (_, channel) = config.channels.iter().next().expect("a channel");
    assert!(channel.section::<Hook>().is_some() && channel.section::<Page>().is_none());
}

#[test]
fn what_every_channel_tells_is_read_from_its_section() {
    let toml = "[channels.page.a]\nallow_from = [42, \"@Ada\"]\ntell_reactions = true\non_unknown = \"hold\"\ngroup_policy = \"all\"";
    let config = Machine::with_toml(toml).config();

    let (_, channel) = config.channels.iter().next().expect("a channel");
    let access = channel.common.people.as_ref().expect("people").access();
    assert_eq!(access.allow, ["42", "@ada"].into_iter().collect());
    assert_eq!(access.group, rejoinder_core::GroupPolicy::All);
    assert!(channel.common.notify_reactions);
    assert_eq!(channel.common.on_unknown, Some(rejoinder_core::OnUnknown::Hold));
}

#[test]
fn people_are_named_with_their_role_and_who_they_are() {
    let toml = r#"
        [people.ada]
        role = "owner"
        identities = ["page.main/42", "page.main/@ada:example.org"]
        home = "page.main"
        language = "de-AT"
        [people."Bob B."]
        identities = ["page.main/7"]
        "#;
    let config = Machine::with_toml(toml).config();

    let identity = |platform, name, id: &str| Identity { channel: ChannelId::new(platform, name), id: id.to_owned() };
    let (bob, ada) = (
        SeedPerson {
            name: "Bob B.".to_owned(),
            role: PersonRole::Member,
            identities: vec![identity("page", "main", "7")],
            home: None,
            language: None,
        },
        SeedPerson {
            name: "ada".to_owned(),
            role: PersonRole::Owner,
            identities: vec![identity("page", "main", "42"), identity("page", "main", "@ada:example.org")],
            home: Some(ChannelId::new("page", "main")),
            language: Language::of("de"),
        },
    );
    assert_eq!(config.people.seeds(), [bob, ada]);
    let shown = config.to_toml_redacted();
    assert!(shown.contains("[people.ada]\nrole = \"owner\"\nidentities = [\"page.main/42\", "), "{shown}");
}

/// The checks of a section's manual pass for correct sections.
#[test]
fn every_section_keeps_to_its_manual() {
    check_channel_manual::<Hook>(&[], &["token", "key", "callback", "agent"]);
    check_channel_manual::<Page>(&[], &["on_unknown"]);
    check_agent_manual::<Robot>(&[("ROBOT_KEY", "k")], &["api_key", "max_tokens"]);
}

#[test]
#[should_panic(expected = "the manual names the defaults")]
fn a_default_that_the_manual_has_wrong_is_noticed() {
    check_channel_manual::<Hook>(&[], &["token", "key", "callback"]);
}

/// The manual names every known key. The reverse follows because the manual loads.
#[test]
fn every_key_there_is_stands_in_the_manual() {
    let toml: DocumentMut = uncommented(&BUILD.manual()).parse().expect("it is TOML");
    let tables = [
        ("server", vec![&toml["server"]]),
        ("store", vec![&toml["store"]]),
        ("admin", vec![&toml["admin"]]),
        ("metrics", vec![&toml["metrics"]]),
        ("log", vec![&toml["log"]]),
        ("people.x", all(&toml["people"])),
        ("routing", vec![&toml["routing"]]),
        ("limits", vec![&toml["limits"]]),
        ("files", vec![&toml["files"]]),
        ("voice", vec![&toml["voice"]]),
        ("voice.transcriptions", vec![&toml["voice"]["transcriptions"]]),
        ("voice.speech", vec![&toml["voice"]["speech"]]),
        ("outbox", vec![&toml["outbox"]]),
        ("retention", vec![&toml["retention"]]),
        ("guard", vec![&toml["guard"]]),
        ("guard.ladder.default", vec![&toml["guard"]["ladder"]["default"]]),
        ("guard.ladder.default.direct", vec![&toml["guard"]["ladder"]["default"]["direct"]]),
        ("guard.ladder.default.group", vec![&toml["guard"]["ladder"]["default"]["group"]]),
        ("guard.clarify.x", all(&toml["guard"]["clarify"])),
    ];

    for (header, tables) in tables {
        let in_manual: BTreeSet<String> = tables.iter().flat_map(|item| keys(item)).collect();
        let errors = Machine::with_toml(&format!("[{header}]\nnot-a-key-at-all = 1")).errors();
        assert_eq!(known_in(&errors, &format!("{header}.not-a-key-at-all")), in_manual, "[{header}]");
    }
}

fn all(item: &Item) -> Vec<&Item> {
    item.as_table().expect("a table").iter().map(|(_, item)| item).collect()
}

#[test]
fn every_key_and_table_of_the_manual_has_a_comment() {
    every_key_has_a_comment(&BUILD.manual());
}

#[test]
fn the_gateways_own_templates_are_those_of_the_manual() {
    let templates = Machine::new().config().guard.templates;
    let in_manual: BTreeSet<&str> = templates.for_channel("", Language::ENGLISH).into_keys().collect();

    assert_eq!(in_manual, TEMPLATES.iter().copied().collect());
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
        [channels.hook.siri]
        token = "token-of-these-tests"
        [guard.ladder.hook.direct]
        silent = [{ react = "👀" }]
        error = [{ handoff = "boss" }]
        [guard.ladder."hook.siri".direct]
        silent = [{ say = "silent" }]
        "#,
    )
    .config()
    .guard;
    let direct = |channel, cause| guard.ladder.rungs(channel, ChatKind::Direct, cause).to_vec();
    let say = |name: &str| vec![Rung::Say(name.to_owned())];

    assert_eq!(direct("hook.siri", Cause::Silent), say("silent"));
    assert_eq!(direct("hook.other", Cause::Silent), [Rung::React("👀".to_owned())]);
    assert_eq!(direct("hook.siri", Cause::Error), [Rung::Handoff("boss".to_owned())]);
    assert_eq!(direct("hook.siri", Cause::Timeout), say("late"));
    assert_eq!(guard.ladder.rungs("hook.siri", ChatKind::Group, Cause::Silent), say("silent"));
    assert_eq!(
        direct("page.main", Cause::Silent),
        [Rung::Clarify("what_next".to_owned()), Rung::Say("silent".to_owned())]
    );
}

/// A5, P4: whichever rungs are configured, the person is told something.
#[test]
fn a_ladder_without_a_last_word_ends_with_the_words_of_its_cause() {
    let config = Machine::with_toml(
        r#"
        [agents.main]
        kind = "front-desk"
        [agents.boss]
        kind = "front-desk"
        [routing]
        default_agent = "main"
        [guard.ladder.default.direct]
        silent = [{ handoff = "boss" }]
        error = [{ handoff = "boss" }]
        timeout = [{ handoff = "boss" }, { clarify = "what_next" }]
        refused = [{ react = "👀" }]
        unreadable = [{ handoff = "boss" }, { say = "calm" }]
        [guard.templates]
        calm = "All is well."
        "#,
    )
    .config();

    let ladder = config.guard.policy("hook.default", ChatKind::Direct, None).ladder;

    let last_words = Cause::ALL.map(|cause| ladder.rungs(cause).last().map(ToString::to_string).unwrap_or_default());
    assert_eq!(
        last_words,
        ["say:silent", "say:failed", "say:failed", "say:late", "say:refused", "say:calm", "say:unheard", "say:budget"]
    );
    assert_eq!(ladder.rungs(Cause::Silent).len(), 2);
    assert_eq!(ladder.rungs(Cause::Unreadable).len(), 2);
}

/// In each scope, an agent that cannot be reached has failed, unless the scope says more.
#[test]
fn what_is_tried_for_errors_is_tried_for_unreachable_agents_without_rungs_of_their_own() {
    let config = Machine::with_toml(
        r#"
        [guard.ladder.default.direct]
        unreachable = [{ say = "unreachable" }]
        [guard.ladder.hook.direct]
        error = [{ react = "👎" }]
        "#,
    )
    .config();

    let rungs = |channel: &str, chat| {
        let ladder = config.guard.policy(channel, chat, None).ladder;
        ladder.rungs(Cause::Unreachable).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(rungs("page.main", ChatKind::Direct), ["say:unreachable"]);
    assert_eq!(rungs("page.main", ChatKind::Group), ["say:failed"]);
    assert_eq!(rungs("hook.default", ChatKind::Direct), ["react:👎", "say:failed"]);
}

#[test]
fn every_cause_has_a_rung_on_every_platform_by_default() {
    let guard = Machine::new().config().guard;

    for channel in ["page.main", "hook.default", "anything.else"] {
        for (chat, cause) in
            [ChatKind::Direct, ChatKind::Group].into_iter().flat_map(|chat| Cause::ALL.map(|cause| (chat, cause)))
        {
            assert!(!guard.ladder.rungs(channel, chat, cause).is_empty(), "{channel} {chat:?} {cause:?}");
        }
    }
}

/// A11.
#[test]
fn a_channels_own_words_come_before_its_platforms_and_those_before_everyones() {
    let templates = Machine::with_toml(
        r#"
        [channels.hook.siri]
        token = "token-of-these-tests"
        [guard.templates]
        silent = "everyone's"
        [guard.templates."hook.siri"]
        late = "siri's"
        "#,
    )
    .config()
    .guard
    .templates;
    let manual = Machine::new().config().guard.templates;

    assert_eq!(templates.text("hook.siri", Language::ENGLISH, "late"), Some("siri's"));
    assert_eq!(
        templates.text("hook.siri", Language::ENGLISH, "failed"),
        manual.text("hook.default", Language::ENGLISH, "failed")
    );
    assert_eq!(templates.text("page.main", Language::ENGLISH, "silent"), Some("everyone's"));
    assert_ne!(templates.text("hook.siri", Language::ENGLISH, "silent"), Some("everyone's"));
    assert_eq!(templates.text("page.main", Language::ENGLISH, "no_such_text"), None);
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

    assert_eq!(config.guard.templates.text("page.main", Language::ENGLISH, "calm"), Some("All is well."));
}

#[test]
fn a_file_with_a_channel_of_its_own_has_no_other() {
    let config = Machine::with_toml("[channels.hook.siri]\ntoken = \"token-of-these-tests\"").config();

    assert_eq!(config.channels.of::<Page>().count(), 0);
    assert_eq!(config.channels.of::<Hook>().map(|(name, _)| name).collect::<Vec<_>>(), ["siri"]);
}

#[test]
fn a_file_with_one_agent_routes_to_it() {
    let config = Machine::with_toml(
        "[agents.main]\nkind = \"robot\"\nbase_url = \"http://127.0.0.1:11434/v1\"\nmodel = \"llama3.1\"",
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
        |url: &str| Machine::with_toml(&format!("[store]\nurl = \"{url}\"")).config().store.url.file("/data".as_ref());

    assert_eq!(path("sqlite:rejoinder.db"), Some("/data/rejoinder.db".into()));
    assert_eq!(path("sqlite://rejoinder.db"), Some("/data/rejoinder.db".into()));
    assert_eq!(path("sqlite:///var/lib/r.db"), Some("/var/lib/r.db".into()));
    assert_eq!(path("postgres://me@host/db"), None);
}
