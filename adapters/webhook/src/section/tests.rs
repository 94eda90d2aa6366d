//! The keys of a hook's section, and the errors for wrong values.

use rejoinder_config::testing::{Machine, check_channel_manual};
use rstest::rstest;

use super::*;

#[test]
fn the_manual_holds() {
    check_channel_manual::<WebhookSection>(
        &[
            ("TICKETS_SIGNING_SECRET", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="),
            ("TICKETS_HUB_SECRET", "hub-secret-of-these-tests"),
            ("GITHUB_HOOK_SECRET", "hub-secret-of-these-tests"),
            ("TICKETS_CALLBACK_SECRET", "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="),
        ],
        &[
            "token",
            "conversation",
            "agent",
            "language",
            "queue",
            "body_limit",
            "signing_secret",
            "hub_secret",
            "callback_url",
            "callback_secret",
            "deliver_to",
            "owes",
            "prompt",
            "template",
            "words_to",
            "session",
        ],
    );
}

#[rstest]
#[case::an_open_hook(
    "[channels.webhook.siri]\nwait = \"5s\"",
    "`channels.webhook.siri.token` must be set, unless `signing_secret` or `hub_secret` is: a hook is never open (`token = { generate = true }` makes a token) (rejoinder.toml:1)"
)]
#[case::an_event_for_nobody(
    "[channels.webhook.github]\ntoken = \"token-of-these-tests\"\nowes = \"nothing\"",
    "`channels.webhook.github.owes` needs `deliver_to`: whom is it for? (rejoinder.toml:3)"
)]
#[case::an_event_for_no_address(
    "[channels.webhook.github]\ntoken = \"token-of-these-tests\"\ndeliver_to = \"telegram/42\"",
    "`channels.webhook.github.deliver_to` must be a conversation (CHANNEL/CHAT or CHANNEL/CHAT/THREAD), the name of a person, or role:owner, role:member or role:guest (rejoinder.toml:3)"
)]
#[case::an_event_for_no_channel(
    "[channels.webhook.github]\ntoken = \"token-of-these-tests\"\ndeliver_to = \"telegram.main/42\"",
    "`channels.webhook.github.deliver_to` names the channel `telegram.main`, which does not exist: there is only `webhook.github` (rejoinder.toml:3)"
)]
#[case::a_prompt_without_an_agent(
    "[channels.webhook.github]\ntoken = \"token-of-these-tests\"\ndeliver_to = \"ada\"\ndeliver_only = true\nprompt = \"Tell her.\"",
    "`channels.webhook.github.prompt` is not used: with `deliver_only` no agent is asked (rejoinder.toml:5)"
)]
#[case::a_voice_elsewhere(
    "[channels.webhook.github]\ntoken = \"token-of-these-tests\"\ndeliver_to = \"ada\"\nspoken = false",
    "`channels.webhook.github.spoken` is not used: events belong to the conversation of `deliver_to` (rejoinder.toml:4)"
)]
#[case::a_template_that_is_none(
    "[channels.webhook.github]\ntoken = \"token-of-these-tests\"\ndeliver_to = \"ada\"\ntemplate = \"{{ body.\"",
    "`channels.webhook.github.template` is no template: syntax error: unexpected end of input, expected identifier or integer (in template:1) (rejoinder.toml:4)"
)]
#[case::a_wait_that_is_too_long(
    "[channels.webhook.siri]\ntoken = \"token-of-these-tests\"\nwait = \"11m\"",
    "`channels.webhook.siri.wait` must be from 0s to 10m, not 11m (rejoinder.toml:3)"
)]
#[case::a_signing_secret_that_is_none(
    "[channels.webhook.siri]\nsigning_secret = \"abc\"",
    "`channels.webhook.siri.signing_secret` must be \"whsec_\" followed by a base64 key of 24 to 64 bytes, as Standard Webhooks requires (rejoinder.toml:2)"
)]
#[case::a_signing_secret_that_is_short(
    "[channels.webhook.siri]\nsigning_secret = \"whsec_c2hvcnQ=\"",
    "`channels.webhook.siri.signing_secret` must be \"whsec_\" followed by a base64 key of 24 to 64 bytes, as Standard Webhooks requires (rejoinder.toml:2)"
)]
#[case::a_hub_secret_that_is_short(
    "[channels.webhook.siri]\nhub_secret = \"nineteen-characters\"",
    "`channels.webhook.siri.hub_secret` has less than 20 characters, so it could be guessed: use what `openssl rand -hex 24` prints (rejoinder.toml:2)"
)]
#[case::an_unsigned_callback(
    "[channels.webhook.siri]\ntoken = \"token-of-these-tests\"\ncallback_url = \"http://127.0.0.1/\"",
    "`channels.webhook.siri.callback_secret` must be set: the posts to callback_url are signed with it (rejoinder.toml:1)"
)]
#[case::a_callback_secret_for_nothing(
    "[channels.webhook.siri]\ntoken = \"token-of-these-tests\"\ncallback_secret = \"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"",
    "`channels.webhook.siri.callback_secret` is not used without `callback_url`: set that, or remove this key (rejoinder.toml:3)"
)]
#[case::a_callback_that_is_not_http(
    "[channels.webhook.siri]\ntoken = \"token-of-these-tests\"\ncallback_url = \"ftp://host/\"",
    "`channels.webhook.siri.callback_url` must be a URL that begins with http:// or https://, not \"ftp://host/\" (rejoinder.toml:3)"
)]
fn a_mistake_is_named_with_its_key_file_and_line(#[case] toml: &str, #[case] said: &str) {
    assert_eq!(Machine::with_channel::<WebhookSection>(toml).errors(), format!("config key {said}"));
}

#[test]
fn no_secret_is_shown() {
    let machine = Machine::with_channel::<WebhookSection>(
        r#"
        [channels.webhook.siri]
        token = "sesame-4f1c-sesame-4f1c"
        signing_secret = "whsec_c2VzYW1lLTRmMWMtc2VzYW1lLTRmMWMt"
        hub_secret = "sesame-4f1c-sesame-4f1c"
        callback_url = "http://127.0.0.1:1/services/sesame-4f1c?key=sesame"
        callback_secret = "whsec_c2VzYW1lLTRmMWMtc2VzYW1lLTRmMWMt"
        "#,
    );
    let config = machine.config();
    let wrong = Machine::with_channel::<WebhookSection>(
        "[channels.webhook.siri]\nsigning_secret = \"sesame-4f1c-sesame-4f1c\"",
    );

    for shown in [config.to_toml_redacted(), format!("{config:?}"), wrong.errors()] {
        assert!(!shown.contains("sesame") && !shown.contains("c2VzYW1l"), "{shown}");
    }
    let shown = config.to_toml_redacted();
    assert_eq!(shown.matches("\"***\"").count(), 4);
    assert!(shown.contains("callback_url = \"http://127.0.0.1:1/***\""), "{shown}");
}
