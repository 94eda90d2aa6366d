//! `[[routing.rules]]` and `[guard.deadlines]`.

use std::time::Duration;

use rejoinder_core::{Cause, ChatKind, Condition, PersonLimits, PersonRole, Rung};

use crate::Machine;

#[test]
fn a_rule_is_read_with_its_conditions_and_what_it_sets() {
    let config = Machine::with_toml(
        r#"[agents.main]
kind = "front-desk"
[agents.cheap]
kind = "front-desk"
[routing]
default_agent = "main"
time_zone = "Europe/Vienna"
[[routing.rules]]
name = "night"
channel = ["page", "hook.siri"]
conversation = "page.main/-5/7"
person = ["ada", "page.main/42"]
role = "owner"
chat = "group"
command = "/code"
between = "22:00-07:00"
days = ["sat", "sun"]
agent = "cheap"
language = "de"
soft_deadline = "off"
hard_deadline = "1m"
ladder = { silent = [{ handoff = "main" }] }
[[routing.rules]]
name = "rest"
language = "en"
[channels.page.main]
[channels.hook.siri]
token = "token-of-these-tests"
"#,
    )
    .config();

    let rules = config.routing.rules();
    let written: Vec<String> = rules[0].conditions.iter().map(Condition::to_string).collect();
    assert_eq!(
        written,
        [
            r#"channel = ["page", "hook.siri"]"#,
            r#"conversation = "page.main/-5/7""#,
            r#"person = ["ada", "page.main/42"]"#,
            r#"role = "owner""#,
            r#"chat = "group""#,
            r#"command = "/code""#,
            r#"between = "22:00-07:00""#,
            r#"days = ["sat", "sun"]"#,
        ]
    );
    let policy = &rules[0].policy;
    assert_eq!((policy.soft_deadline, policy.hard_deadline), (Some(None), Some(Duration::from_mins(1))));
    let rungs = vec![Rung::Handoff("main".to_owned()), Rung::Say("silent".to_owned())];
    assert_eq!(policy.ladder, [(Cause::Silent, rungs)], "something is said in any case");
    assert_eq!((rules[0].agent.as_deref(), rules[1].agent.as_deref()), (Some("cheap"), None));
    assert!(rules[1].conditions.is_empty());
}

#[test]
fn every_rule_that_leads_nowhere_is_named() {
    let machine = Machine::with_toml(
        r#"[channels.page.main]
[channels.hook.siri]
token = "token-of-these-tests"
[[routing.rules]]
name = "one"
channel = "pge"
agent = "boss"
[[routing.rules]]
name = "one"
conversation = "page.other/1"
language = "xx"
[[routing.rules]]
name = "nothing"
command = "/two words"
[[routing.rules]]
name = "hooks"
channel = "hook"
role = "owner"
soft_deadline = "20m"
[[routing.rules]]
name = "all"
ladder = { silent = [{ say = "silnt" }], error = [] }
[[routing.rules]]
name = "never"
chat = "direct"
language = "en"
"#,
    );

    insta::assert_snapshot!(machine.errors(), @r#"
    12 problems in the configuration:
      config key `routing.rules[0].channel` names neither a platform nor a channel: did you mean `page`? (rejoinder.toml:6)
      config key `routing.rules[0].agent` names the agent `boss`, which does not exist: there is only `front-desk` (rejoinder.toml:7)
      config key `routing.rules[1].name` is the name of routing.rules[0] too: choose another (rejoinder.toml:9)
      config key `routing.rules[1].conversation` names the channel `page.other`, which does not exist: there are `hook.siri` and `page.main` (rejoinder.toml:10)
      config key `routing.rules[1].language` names the language `xx`, which has no texts: there are `de`, `en` and `es`, and you can add xx with [guard.templates.xx] (rejoinder.toml:11)
      config key `routing.rules[2]` sets nothing: add agent, language, soft_deadline, hard_deadline or ladder (rejoinder.toml:12)
      config key `routing.rules[2].command` must be one word, such as "/code" (rejoinder.toml:14)
      config key `routing.rules[3].role` can never hold: callers of these channels have a token, and nobody is known there (rejoinder.toml:18)
      config key `routing.rules[3].soft_deadline` must be shorter than the hard_deadline that holds here, or "off" (rejoinder.toml:19)
      config key `routing.rules[4].ladder.error` is empty: name at least one rung, or a turn that is owed an answer could get none (rejoinder.toml:22)
      config key `routing.rules[4].ladder.silent[0].say` names the template `silnt`, which does not exist: did you mean `silent`? (rejoinder.toml:22)
      config key `routing.rules[5]` can never hold, because `all` has no conditions: move that to the end (rejoinder.toml:23)
    "#);
}

#[test]
fn a_rule_of_the_wrong_shape_is_named() {
    let wrong = |rule: &str| Machine::with_toml(&format!("[[routing.rules]]\n{rule}\nlanguage = \"en\"")).errors();

    for (rule, what) in [
        ("chat = \"direct\"", "`routing.rules[0].name` must be set"),
        ("name = \"a\"\nchat = \"room\"", "`routing.rules[0].chat` must be `direct` or `group`, not `room`"),
        ("name = \"a\"\nrole = \"boss\"", "`routing.rules[0].role` must be"),
        ("name = \"a\"\nrole = []", "`routing.rules[0].role` is empty: remove it, or name one"),
        ("name = \"a\"\nbetween = \"22:00-22:00\"", "`routing.rules[0].between` must be two different times of day"),
        ("name = \"a\"\ndays = [\"mon\", \"monday\"]", "`routing.rules[0].days[1]` must be one of mon, tue"),
        ("name = \"a\"\nconversation = \"42\"", "`routing.rules[0].conversation` must be a conversation such as"),
        ("name = \"a\"\nchannels = \"page\"", "`routing.rules[0].channels` is unknown: did you mean `channel`?"),
        ("name = \"channels.a\"", "`routing.rules[0].name` must not begin with `channels.`"),
    ] {
        assert!(wrong(rule).contains(what), "{rule}: {}", wrong(rule));
    }
}

#[test]
fn deadlines_are_those_of_the_channel_or_its_platform_or_of_all() {
    let config = Machine::with_toml(
        r#"[channels.page.main]
[channels.page.other]
[channels.hook.siri]
token = "token-of-these-tests"
[guard.deadlines.page]
soft_deadline = "5s"
hard_deadline = "30m"
[guard.deadlines.page.group]
soft_deadline = "off"
[guard.deadlines."page.other"]
hard_deadline = "1m"
"#,
    )
    .config();

    let seconds = |channel: &str, chat| {
        let policy = config.guard.policy(channel, chat, None);
        (policy.soft_deadline.map(|soft| soft.as_secs()), policy.hard_deadline.as_secs())
    };
    assert_eq!(seconds("page.main", ChatKind::Direct), (Some(5), 1800));
    assert_eq!(seconds("page.main", ChatKind::Group), (None, 1800));
    assert_eq!(seconds("page.other", ChatKind::Direct), (Some(5), 60));
    assert_eq!(seconds("page.other", ChatKind::Group), (None, 60));
    assert_eq!(seconds("hook.siri", ChatKind::Direct), (Some(20), 600));
}

#[test]
fn deadlines_in_the_wrong_order_are_named() {
    let machine = Machine::with_toml(
        r#"[guard.deadlines.page]
hard_deadline = "10s"
[guard.deadlines.page.direct]
soft_deadline = "15s"
[guard.deadlines.pag]
hard_deadline = "10m"
"#,
    );

    insta::assert_snapshot!(machine.errors(), @r#"
    3 problems in the configuration:
      config key `guard.deadlines.page.hard_deadline` must be longer than the soft_deadline that holds here: also set that to less, or to "off" (rejoinder.toml:2)
      config key `guard.deadlines.page.direct.soft_deadline` must be shorter than the hard_deadline that holds here, or "off" (rejoinder.toml:4)
      config key `guard.deadlines.pag` names neither a platform nor a channel: did you mean `page`? (rejoinder.toml:5)
    "#);
}

#[test]
fn limits_of_a_person_fall_back_to_those_of_their_role_and_these_to_everybodys() {
    let config = Machine::with_toml(
        r#"[channels.page.main]
[limits]
turns_per_minute = 9
waiting_turns = 8
turns_per_day = 7
tokens_per_day = 4_000_000_000
[limits.guest]
turns_per_minute = 2
tokens_per_day = 1
[people.ada]
role = "guest"
identities = ["page.main/42"]
limits = { waiting_turns = "off", turns_per_day = 5 }
[people.bob]
identities = ["page.main/43"]
"#,
    )
    .config();

    let numbers = |limits: PersonLimits| (limits.turns_per_minute, limits.waiting_turns);
    assert_eq!(numbers(config.limits.of_role(PersonRole::Member)), (Some(9), Some(8)));
    assert_eq!(numbers(config.limits.of_role(PersonRole::Guest)), (Some(2), Some(8)));
    let of_people: Vec<_> = config.people.limits(&config.limits).into_iter().collect();
    let [(name, limits)] = &of_people[..] else { panic!("only Ada has her own: {of_people:?}") };
    assert_eq!((name.as_str(), numbers(*limits)), ("ada", (Some(2), None)));
    let daily = |limits: PersonLimits| (limits.turns_per_day, limits.tokens_per_day);
    assert_eq!(daily(config.limits.of_role(PersonRole::Member)), (Some(7), Some(4_000_000_000)));
    assert_eq!(daily(*limits), (Some(5), Some(1)));
}
