//! Overrides from the environment.

use std::time::Duration;

use rejoinder_config::{LogFormat, Token, TokenValue};
use rejoinder_core::Language;
use secrecy::ExposeSecret;

use crate::{
    Machine,
    sections::{Hook, Page, Robot},
};

#[test]
fn a_variable_overrides_the_file() {
    let machine = Machine::with_toml("[server]\nlisten = \"127.0.0.1:1\"\ndrain = \"1s\"")
        .with_environment(&[("REJOINDER__SERVER__LISTEN", "0.0.0.0:2")]);
    let loaded = machine.load().expect("the configuration is valid");

    assert_eq!(loaded.config.server.listen.to_string(), "0.0.0.0:2");
    assert_eq!(loaded.config.server.drain, Duration::from_secs(1));
    assert_eq!(loaded.overrides, ["REJOINDER__SERVER__LISTEN"]);
}

#[test]
fn a_variable_holds_toml_or_else_text() {
    let config = Machine::new()
        .with_environment(&[
            ("REJOINDER__ROUTING__MAX_CONCURRENT_TURNS", "8"),
            ("REJOINDER__LOG__FORMAT", "json"),
            ("REJOINDER__GUARD__SOFT_DEADLINE", "\"5s\""),
            ("REJOINDER__GUARD__CLARIFY__WHAT_NEXT__CHOICES", "[\"Yes\", \"No\"]"),
            ("REJOINDER__CHANNELS__PAGE__MAIN__TITLE", "42"),
        ])
        .config();

    assert_eq!(config.routing.max_concurrent_turns, 8);
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.guard.soft_deadline, Some(Duration::from_secs(5)));
    let question = config.guard.clarify.question("what_next", Language::ENGLISH).expect("it is there");
    assert_eq!(question.choices, ["Yes", "No"]);
    assert_eq!(config.channels.of::<Page>().next().expect("a channel").1.title, "42");
}

#[test]
fn a_token_that_looks_like_a_number_is_the_text_that_was_given() {
    let config = Machine::new()
        .with_environment(&[
            ("REJOINDER__CHANNELS__HOOK__DEFAULT__TOKEN", "00120012001200120012"),
            ("REJOINDER__ADMIN__TOKEN", "1979-05-27T07:32:00Z"),
        ])
        .config();

    let given = |token: &Token| match &token.current {
        TokenValue::Configured(secret) => secret.get().expose_secret().to_owned(),
        TokenValue::Generate => panic!("a token was given"),
    };
    assert_eq!(
        given(config.channels.of::<Hook>().next().expect("a channel").1.token.as_ref().expect("it has one")),
        "00120012001200120012"
    );
    assert_eq!(given(&config.admin.token), "1979-05-27T07:32:00Z");
}

#[test]
fn a_secret_may_be_referred_to_from_a_variable() {
    for (name, value) in [("REJOINDER__ADMIN__TOKEN", "{ env = \"OTHER\" }"), ("REJOINDER__ADMIN__TOKEN__ENV", "OTHER")]
    {
        let config = Machine::new().with_environment(&[(name, value), ("OTHER", "found-where-it-was-said")]).config();

        let TokenValue::Configured(secret) = config.admin.token.current else { panic!("{name}: a token was given") };
        assert_eq!(secret.get().expose_secret(), "found-where-it-was-said");
    }
}

#[test]
fn a_default_channel_is_adjusted_by_a_variable_and_the_others_stay() {
    let config = Machine::new().with_environment(&[("REJOINDER__CHANNELS__HOOK__DEFAULT__WAIT", "5s")]).config();

    assert_eq!(config.channels.of::<Hook>().next().expect("a channel").1.wait, Duration::from_secs(5));
    assert_eq!(config.channels.of::<Page>().count(), 1);
}

#[test]
fn an_agent_from_variables_alone_is_the_one_that_answers() {
    let config = Machine::new()
        .with_environment(&[
            ("REJOINDER__AGENTS__MAIN__KIND", "robot"),
            ("REJOINDER__AGENTS__MAIN__BASE_URL", "http://ollama:11434/v1"),
            ("REJOINDER__AGENTS__MAIN__MODEL", "llama3.1"),
        ])
        .config();

    assert_eq!(config.routing.default_agent, "main");
    assert_eq!(config.agents["main"].section::<Robot>().expect("a robot").model, "llama3.1");
}

#[test]
fn a_name_is_found_whatever_its_case_and_with_an_underscore_for_a_hyphen() {
    let config = Machine::with_toml("[channels.hook.front-door]\ntoken = \"token-of-these-tests\"")
        .with_environment(&[("Rejoinder__Channels__Hook__Front_Door__Wait", "5s")])
        .config();

    assert_eq!(
        config.channels.of::<Hook>().map(|(name, hook)| (name, hook.wait)).collect::<Vec<_>>(),
        [("front-door", Duration::from_secs(5))]
    );
}

#[test]
fn other_variables_of_the_gateway_are_no_overrides() {
    let machine = Machine::new().with_environment(&[("REJOINDER_DATA", "/data"), ("REJOINDER_ADMIN_TOKEN", "x")]);

    assert_eq!(machine.load().expect("the configuration is valid").overrides, [""; 0]);
}

#[test]
fn a_wrong_override_names_its_variable() {
    let errors = Machine::with_toml("[server]\nlisten = \"127.0.0.1:1\"")
        .with_environment(&[
            ("REJOINDER__SERVER__LISEN", "127.0.0.1:2"),
            ("REJOINDER__SERVER__DRAIN", "20 parsecs"),
            ("REJOINDER__SERVER", "5s"),
            ("REJOINDER__LOG__", "x"),
            ("REJOINDER__LOG__LEVEL", "info"),
            ("rejoinder__log__level", "warn"),
            ("REJOINDER__ROUTING__DEFAULT_AGENT", ""),
        ])
        .errors();

    insta::assert_snapshot!(errors, @r#"
    6 problems in the configuration:
      config key `routing.default_agent` is empty ($REJOINDER__ROUTING__DEFAULT_AGENT)
      config key `server.drain` must be a duration such as "250ms", "20s", "10m" or "1h30m", not "20 parsecs" ($REJOINDER__SERVER__DRAIN)
      config key `server.lisen` is unknown: did you mean `listen`? ($REJOINDER__SERVER__LISEN)
      environment variable REJOINDER__LOG__ names no config key: write it like REJOINDER__SERVER__LISTEN
      environment variable REJOINDER__SERVER names a table of config keys: name a key in it, or give it `{ key = value }`
      environment variable rejoinder__log__level sets the same config key as REJOINDER__LOG__LEVEL: unset one of them
    "#);
}
