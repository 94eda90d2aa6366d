//! The configuration of chat pages, and its mistakes.

use rejoinder_config::testing::{Machine, check_channel_manual};
use rstest::rstest;

use super::*;

#[test]
fn the_manual_holds() {
    check_channel_manual::<WebchatSection>(
        &[],
        &["access", "token", "header", "origins", "agent", "language", "queue"],
    );
}

#[rstest]
#[case::a_name_that_is_taken(
    "[channels.webchat.ws]",
    "`channels.webchat.ws` has a reserved name: choose another (rejoinder.toml:1)"
)]
#[case::a_chat_page_for_all_without_a_token(
    "[channels.webchat.main]\naccess = \"token\"",
    "`channels.webchat.main.token` must be set: access is \"token\" (`{ generate = true }` creates one) (rejoinder.toml:1)"
)]
#[case::a_chat_page_for_this_machine_behind_a_proxy(
    "[server]\npublic_url = \"https://rejoinder.example.org\"\n[channels.webchat.main]\naccess = \"loopback\"",
    "`channels.webchat.main.access` is \"loopback\" while server.public_url is set: behind a proxy everybody seems to be on this machine. Set access = \"token\" and token = { generate = true }, or remove this chat page or server.public_url (rejoinder.toml:4)"
)]
#[case::a_token_that_nobody_asks_for(
    "[channels.webchat.main]\ntoken = \"token-of-these-tests\"",
    "`channels.webchat.main.token` is not used while access is \"loopback\": set access = \"token\", or remove this token (rejoinder.toml:2)"
)]
#[case::an_access_that_there_is_not(
    "[channels.webchat.main]\naccess = \"public\"",
    "`channels.webchat.main.access` must be one of `loopback`, `token` or `people`, not `public` (rejoinder.toml:2)"
)]
#[case::a_token_for_people_who_sign_in(
    "[channels.webchat.main]\naccess = \"people\"\ntoken = \"token-of-these-tests\"",
    "`channels.webchat.main.token` is not used while access is \"people\", who sign in: remove this token (rejoinder.toml:3)"
)]
#[case::a_header_that_nobody_reads(
    "[channels.webchat.main]\nheader = { name = \"X-User\", from = [\"10.0.0.2\"] }",
    "`channels.webchat.main.header` is only used while access is \"people\": set that, or remove this header (rejoinder.toml:2)"
)]
#[case::a_header_that_nobody_may_send(
    "[channels.webchat.main]\naccess = \"people\"\nheader = { name = \"X-User\", from = [] }",
    "`channels.webchat.main.header.from` must name the addresses of the proxy: nobody else is believed (rejoinder.toml:3)"
)]
#[case::a_header_that_anybody_may_send(
    "[channels.webchat.main]\naccess = \"people\"\nheader = { name = \"X-User\", from = [\"0.0.0.0/0\"] }",
    "`channels.webchat.main.header.from[0]` is everybody: anybody could then say who they are. Name the addresses of the proxy (rejoinder.toml:3)"
)]
#[case::no_name_of_a_header(
    "[channels.webchat.main]\naccess = \"people\"\nheader = { name = \"X User\", from = [\"10.0.0.2\"] }",
    "`channels.webchat.main.header.name` is not the name of a header (rejoinder.toml:3)"
)]
#[case::a_page_that_is_no_origin(
    "[channels.webchat.main]\norigins = [\"https://home.example.org/page\"]",
    "`channels.webchat.main.origins[0]` must be the origin of a page, such as \"https://home.example.org\" (rejoinder.toml:2)"
)]
fn a_mistake_is_named_with_its_key_file_and_line(#[case] toml: &str, #[case] said: &str) {
    assert_eq!(Machine::with_channel::<WebchatSection>(toml).errors(), format!("config key {said}"));
}

#[rstest]
#[case("push = \"quiet\"", "`channels.webchat.main.push` must be")]
#[case("push_services = [\"nowhere\"]", "`channels.webchat.main.push_services")]
fn a_mistake_about_notifications_is_named(#[case] key: &str, #[case] said: &str) {
    let errors = Machine::with_channel::<WebchatSection>(&format!("[channels.webchat.main]\n{key}")).errors();

    assert!(errors.contains(said), "{errors}");
}

#[test]
fn no_token_is_shown() {
    let config = Machine::with_channel::<WebchatSection>(
        "[channels.webchat.main]\naccess = \"token\"\ntoken = \"sesame-4f1c-sesame-4f1c\"",
    )
    .config();
    let wrong = Machine::with_channel::<WebchatSection>("[channels.webchat.main]\ntoken = \"sesame-4f1c-sesame-4f1c\"");

    for shown in [config.to_toml_redacted(), format!("{config:?}"), wrong.errors()] {
        assert!(!shown.contains("sesame"), "{shown}");
    }
}
