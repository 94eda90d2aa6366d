//! The configuration of Matrix accounts, and its mistakes.

use rejoinder_config::testing::{Machine, check_channel_manual};
use rejoinder_core::{DirectPolicy, GroupPolicy};
use rstest::rstest;

use super::*;

/// An account with its required keys in lines 2 to 4, followed by `keys`.
fn account(keys: &str) -> Machine {
    Machine::with_channel::<MatrixSection>(&format!(
        "[channels.matrix.main]\nhomeserver = \"https://matrix.example.org\"\nuser = \"@agent:example.org\"\npassword = \"sesame\"\n{keys}"
    ))
}

fn read(keys: &str) -> MatrixSection {
    account(keys).config().channels.of::<MatrixSection>().next().expect("the account is configured").1.clone()
}

#[test]
fn an_account_needs_a_homeserver_a_name_and_a_password_and_no_more() {
    let account = read("");

    assert_eq!((account.homeserver.as_str(), &*account.user), ("https://matrix.example.org/", "@agent:example.org"));
    assert_eq!((account.streaming, account.pace), (Streaming::Edit, Pace::Synapse));
    assert_eq!((account.people.dm_policy, account.people.group_policy), (DirectPolicy::Pairing, GroupPolicy::Mention));
    assert_eq!((account.auto_join, account.read_receipts), (AutoJoin::Allowlist, ReadReceipts::Immediate));
    assert!(account.people.allow_from.is_empty() && account.people.group_allow_from.is_empty());
    assert!(account.access_token.is_none() && account.recovery_key.is_none() && !account.tell_reactions);
    assert_eq!((account.decrypt_patience, account.sync_timeout), (Duration::from_mins(1), Duration::from_secs(30)));
    assert_eq!((account.max_attachment.bytes(), account.max_upload.bytes()), (50 << 20, 50 << 20));
    assert_eq!(account.device_name, "Rejoinder");
}

#[test]
fn everything_about_an_account_can_be_said() {
    let account = read(
        r#"
        recovery_key = "EsTj 3yST"
        device_name = "the gateway"
        auto_join = "never"
        dm_policy = "open"
        group_policy = "all"
        streaming = "off"
        read_receipts = "on_answer"
        tell_reactions = true
        decrypt_patience = "5s"
        sync_timeout = "10s"
        max_attachment = "1 MiB"
        max_upload = "2 MiB"
        pace = "server"
        agent = "front-desk"
        "#,
    );

    assert_eq!((account.streaming, account.pace), (Streaming::Off, Pace::Server));
    assert_eq!((account.people.dm_policy, account.people.group_policy), (DirectPolicy::Open, GroupPolicy::All));
    assert_eq!((account.auto_join, account.read_receipts), (AutoJoin::Never, ReadReceipts::OnAnswer));
    assert_eq!((account.decrypt_patience, account.sync_timeout), (Duration::from_secs(5), Duration::from_secs(10)));
    assert!(account.recovery_key.is_some() && account.tell_reactions);
}

#[test]
fn people_are_named_by_id_by_server_or_all_at_once() {
    let account = read(
        r#"
        allow_from = ["@Ada:example.org", "@bo:matrix.example.org:8448", "*:example.org", "*"]
        group_allow_from = ["!abc:example.org", "!Vv12-room_id", "@cy:example.org"]
        "#,
    );

    assert_eq!(
        account.people.allow_from.iter().collect::<Vec<_>>(),
        ["@Ada:example.org", "@bo:matrix.example.org:8448", "*:example.org", "*"]
    );
    assert_eq!(
        account.people.group_allow_from.iter().collect::<Vec<_>>(),
        ["!abc:example.org", "!Vv12-room_id", "@cy:example.org"]
    );
}

#[test]
fn what_is_shown_of_an_account_can_be_loaded_but_for_its_secrets() {
    let machine =
        account("recovery_key = \"sesame\"\nallow_from = [\"@ada:example.org\"]\nread_receipts = \"on_answer\"");
    let shown = machine.config().to_toml_redacted();
    assert!(shown.contains("password = \"***\"") && !shown.contains("sesame"), "{shown}");

    let again = Machine::with_channel::<MatrixSection>(&shown).config().to_toml_redacted();

    assert_eq!(again, shown);
}

/// One mistake each: the added keys, and the error after "channels.matrix.main."
#[rstest]
#[case::two_proofs("access_token = \"syt_a\"", "access_token` cannot be set with password: remove one of the two")]
#[case::a_policy_for_direct_chats_that_there_is_not(
    "dm_policy = \"nobody\"",
    "dm_policy` must be one of `pairing`, `allowlist`, `open` or `disabled`, not `nobody`"
)]
#[case::an_invitation_that_there_is_not(
    "auto_join = \"all\"",
    "auto_join` must be one of `allowlist`, `always` or `never`, not `all`"
)]
#[case::a_receipt_that_there_is_not(
    "read_receipts = \"on_answers\"",
    "read_receipts` must be one of `immediate`, `on_answer` or `off`, not `on_answers` (did you mean `on_answer`?)"
)]
#[case::a_name_without_its_server(
    "allow_from = [\"@ada\"]",
    "allow_from[0]` must be a user id such as \"@ada:example.org\", \"*:example.org\" for a whole server, or \"*\", not \"@ada\""
)]
#[case::a_room_among_people(
    "allow_from = [\"!abc:example.org\"]",
    "allow_from[0]` is a group: groups belong in group_allow_from"
)]
#[case::a_rooms_alias(
    "group_allow_from = [\"#friends:example.org\"]",
    "group_allow_from[0]` must be a user id such as \"@ada:example.org\", \"*:example.org\" for a whole server, or \"*\", or a room's id such as \"!abc:example.org\", not \"#friends:example.org\""
)]
#[case::a_way_of_streaming_that_there_is_not(
    "streaming = \"draft\"",
    "streaming` must be `edit` or `off`, not `draft`"
)]
#[case::a_pace_that_there_is_not("pace = \"matrix\"", "pace` must be `synapse` or `server`, not `matrix`")]
#[case::no_patience("decrypt_patience = \"0s\"", "decrypt_patience` must be from 1s to 24h, not 0s")]
#[case::a_sync_that_is_too_long("sync_timeout = \"10m\"", "sync_timeout` must be from 1s to 5m, not 10m")]
#[case::a_file_that_is_too_large(
    "max_upload = \"2 GiB\"",
    "max_upload` must be a size from \"1 KiB\" to \"64 MiB\", not \"2 GiB\""
)]
#[case::an_agent_that_is_not_there(
    "agent = \"boss\"",
    "agent` names the agent `boss`, which does not exist: there is only `front-desk`"
)]
#[case::a_slip_in_a_key("autojoin = \"always\"", "autojoin` is unknown: did you mean `auto_join`?")]
fn a_mistake_is_named_with_its_key_file_and_line(#[case] keys: &str, #[case] said: &str) {
    assert_eq!(account(keys).errors(), format!("config key `channels.matrix.main.{said} (rejoinder.toml:5)"));
}

#[rstest]
#[case::no_name(
    "homeserver = \"https://x\"\nuser = \"agent\"\npassword = \"p\"",
    "user` must be a full user id such as \"@agent:example.org\", not \"agent\" (rejoinder.toml:3)"
)]
#[case::a_name_without_its_sign(
    "homeserver = \"https://x\"\nuser = \"agent:example.org\"\npassword = \"p\"",
    "user` must be a full user id such as \"@agent:example.org\", not \"agent:example.org\" (rejoinder.toml:3)"
)]
#[case::no_address(
    "homeserver = \"example.org\"\nuser = \"@a:b\"\npassword = \"p\"",
    "homeserver` must be a URL that begins with http:// or https://, not \"example.org\" (rejoinder.toml:2)"
)]
#[case::an_address_with_a_query(
    "homeserver = \"https://x/?a=1\"\nuser = \"@a:b\"\npassword = \"p\"",
    "homeserver` must end with the path: remove the part from the `?` or `#` on (rejoinder.toml:2)"
)]
#[case::no_homeserver("user = \"@a:b\"\npassword = \"p\"", "homeserver` must be set (rejoinder.toml:1)")]
#[case::no_proof(
    "homeserver = \"https://x\"\nuser = \"@a:b\"",
    "password` must be set, or access_token: the gateway needs one of the two to log in (rejoinder.toml:1)"
)]
#[case::an_empty_proof(
    "homeserver = \"https://x\"\nuser = \"@a:b\"\npassword = \"\"",
    "password` is empty (rejoinder.toml:4)"
)]
fn what_an_account_needs_is_named(#[case] keys: &str, #[case] said: &str) {
    let machine = Machine::with_channel::<MatrixSection>(&format!("[channels.matrix.main]\n{keys}"));

    assert_eq!(machine.errors(), format!("config key `channels.matrix.main.{said}"));
}

/// F2.
#[test]
fn two_channels_of_one_account_are_named() {
    let section = |name: &str, user: &str| {
        format!("[channels.matrix.{name}]\nhomeserver = \"https://x\"\nuser = \"{user}\"\npassword = \"p\"\n")
    };
    let machine = Machine::with_channel::<MatrixSection>(
        &[section("a", "@a:b"), section("b", "@a:b"), section("c", "@c:b")].concat(),
    );

    assert_eq!(
        machine.errors(),
        "config key `channels.matrix.b.user` is the user of channels.matrix.a too: an account can be used by one channel only (rejoinder.toml:7)"
    );
}

#[test]
fn the_manual_holds() {
    check_channel_manual::<MatrixSection>(
        &[("MATRIX_ACCESS_TOKEN", "syt_example"), ("MATRIX_PASSWORD", "example"), ("MATRIX_RECOVERY_KEY", "example")],
        &["password", "access_token", "recovery_key", "agent", "language", "queue", "group_queue", "voice", "groups"],
    );
}

#[test]
fn an_access_token_goes_before_a_password() {
    let section = MatrixSection { password: Some("hunter2".into()), ..MatrixSection::default() };
    assert!(matches!(section.login(), Login::Password(_)));
    let section = section.with_login(Login::AccessToken("syt".into()));
    assert!(matches!(section.login(), Login::AccessToken(_)) && section.password.is_none());
}
