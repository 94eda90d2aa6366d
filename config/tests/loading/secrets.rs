//! Secrets are read from where the file says, and never printed.

use rejoinder_config::{Config, Token, TokenValue};
use rstest::rstest;
use secrecy::ExposeSecret;

use crate::{Machine, sections::Hook};

const SEEN: &str = "sesame-4f1c-sesame-4f1c";

fn token(config: &Config) -> &str {
    match &config.channels.of::<Hook>().next().expect("a channel").1.token {
        Some(Token { current: TokenValue::Configured(secret), .. }) => secret.get().expose_secret(),
        other => panic!("a token was given, not {other:?}"),
    }
}

#[test]
fn a_secret_is_read_inline_from_the_environment_or_from_a_file() {
    let inline = Machine::with_toml("[channels.hook.siri]\ntoken = \"sesame-4f1c-sesame-4f1c\"");
    let from_env = Machine::with_toml("[channels.hook.siri]\ntoken = { env = \"SIRI_TOKEN\" }")
        .with_environment(&[("SIRI_TOKEN", SEEN)]);
    let from_file = Machine::with_toml("[channels.hook.siri]\ntoken = { file = \"secrets/siri\" }")
        .with_file("secrets/siri", "sesame-4f1c-sesame-4f1c\n");

    for machine in [inline, from_env, from_file] {
        assert_eq!(token(&machine.config()), SEEN);
    }
}

#[test]
fn a_secrets_file_is_looked_for_beside_the_config_file() {
    let mut machine = Machine::new()
        .with_file("etc/rejoinder.toml", "[channels.hook.siri]\ntoken = { file = \"siri.token\" }")
        .with_file("etc/siri.token", SEEN);
    machine.options.path = Some("etc/rejoinder.toml".into());

    assert_eq!(token(&machine.config()), SEEN);
}

#[test]
fn a_secret_is_not_seen_in_what_is_printed() {
    let machine = Machine::with_toml(
        r#"
        [admin]
        token = "sesame-4f1c-sesame-4f1c"
        [channels.hook.siri]
        token = { env = "SIRI_TOKEN" }
        key = "key_sesame-4f1c-sesame-4f1c"
        [agents.main]
        kind = "robot"
        base_url = "http://127.0.0.1:11434/v1"
        model = "llama3.1"
        api_key = "sesame-4f1c-sesame-4f1c"
        "#,
    )
    .with_environment(&[("SIRI_TOKEN", SEEN), ("REJOINDER__ADMIN__TOKEN", SEEN)]);
    let loaded = machine.load().expect("the configuration is valid");

    let printed = [format!("{loaded:#?}"), format!("{:?}", machine.options), loaded.config.to_toml_redacted()];
    for printed in &printed {
        assert!(!printed.contains(SEEN), "{printed}");
    }
    assert_eq!(printed[2].matches("\"***\"").count(), 4, "{}", printed[2]);
}

/// While it is changed, by anybody who still sends the old one.
#[test]
fn a_token_may_have_a_former_one() {
    let machine = Machine::with_toml(
        "[admin]\ntoken = [{ generate = true }, { env = \"OLD\" }]\n\
         [channels.hook.siri]\ntoken = [\"sesame-4f1c-sesame-4f1c\", \"the-token-of-last-year\"]",
    )
    .with_environment(&[("OLD", "the-token-of-last-year")]);
    let config = machine.config();

    let admin = &config.admin.token;
    assert!(matches!((&admin.current, &admin.former), (TokenValue::Generate, Some(_))), "{admin:?}");
    assert_eq!(token(&config), SEEN);
    let shown = config.to_toml_redacted();
    assert!(shown.contains("token = [\"***\", \"***\"]"), "{shown}");
    assert!(shown.contains("token = [{ generate = true }, \"***\"]"), "{shown}");
}

/// For each kind of mistake in or around a secret.
#[rstest]
#[case::of_another_shape("[channels.hook.siri]\nkey = \"sesame-4f1c-sesame-4f1c\"")]
#[case::alone_in_a_list("[admin]\ntoken = [\"sesame-4f1c-sesame-4f1c\"]")]
#[case::beside_one_to_generate("[admin]\ntoken = [\"sesame-4f1c-sesame-4f1c\", { generate = true }]")]
#[case::too_short("[admin]\ntoken = \"sesame-4f1c\"")]
#[case::under_another_name("[admin]\ntoken = { value = \"sesame-4f1c-sesame-4f1c\" }")]
#[case::under_an_unknown_key("[admin]\ntokn = \"sesame-4f1c-sesame-4f1c\"")]
#[case::in_a_url(
    "[agents.main]\nkind = \"robot\"\nmodel = \"x\"\nbase_url = \"http://me:sesame-4f1c-sesame-4f1c@host/\""
)]
#[case::in_the_store("[store]\nurl = \"postgres://me:sesame-4f1c-sesame-4f1c@host\"")]
#[case::in_the_port("[store]\nurl = \"postgres://me:sesame-4f1c/sesame-4f1c@host/db\"")]
#[case::never_closed("[admin]\ntoken = \"sesame-4f1c-sesame-4f1c")]
#[case::without_quotes("[admin]\ntoken = sesame-4f1c-sesame-4f1c")]
#[case::twice("[admin]\ntoken = \"sesame-4f1c-sesame-4f1c\"\ntoken = \"sesame-4f1c-sesame-4f1c\"")]
fn a_secret_is_not_seen_in_an_error(#[case] toml: &str) {
    let machine = Machine::with_toml(toml);
    let errors = machine.load().expect_err("the configuration is invalid");

    assert!(!errors.to_string().contains("sesame"), "{errors}");
    assert!(!format!("{errors:?}").contains("sesame"), "{errors:?}");
}

#[test]
fn whoever_only_looks_at_rows_needs_no_secrets() {
    let machine = Machine::with_toml(
        "[store]\nurl = \"sqlite:elsewhere.db\"\n[channels.hook.siri]\ntoken = { env = \"SIRI_TOKEN\" }",
    );

    assert!(machine.load().is_err());
    let store = rejoinder_config::load_store(&machine.options).expect("the section is valid");

    assert_eq!(store.url.file("/data".as_ref()), Some("/data/elsewhere.db".into()));
}

#[test]
fn the_password_of_the_database_is_read_and_not_shown() {
    let machine = Machine::with_toml(
        "[store]\nurl = \"postgres://me@host/db\"\npassword = { env = \"DB_PASSWORD\" }\n\
         [channels.hook.siri]\ntoken = { env = \"SIRI_TOKEN\" }",
    )
    .with_environment(&[("DB_PASSWORD", "sesame-4f1c")]);

    let store = rejoinder_config::load_store(&machine.options).expect("the section is valid");

    assert_eq!(store.postgres().expect("a URL").expose_secret(), "postgres://me:sesame-4f1c@host/db");
    assert!(!format!("{store:?}").contains("sesame"), "{store:?}");
}

#[test]
fn a_password_in_the_url_of_the_database_is_a_secret_too() {
    let config = Machine::with_toml("[store]\nurl = \"postgres://me:sesame-4f1c@host/db\"").config();

    assert!(config.secrets.iter().any(|secret| secret.expose_secret() == "sesame-4f1c"));
    let shown = config.to_toml_redacted();
    assert!(shown.contains("url = \"postgres://me:***@host/db\"") && !shown.contains("sesame"), "{shown}");
    assert!(!format!("{config:?}").contains("sesame"));
}

#[test]
fn what_is_wrong_with_the_rows_place_is_said_without_secrets_too() {
    let machine = Machine::with_toml("[store]\nurl = \"redis:6379\"");

    let error = rejoinder_config::load_store(&machine.options).expect_err("the configuration is invalid").to_string();

    assert!(error.contains("store.url"), "{error}");
}
