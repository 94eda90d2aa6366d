//! `[approvals]`.

use rejoinder_core::{ChannelId, Identity};

use crate::Machine;

/// N2. A name stands for whom the configuration names so: people are let in under names that they choose.
#[test]
fn an_approver_is_somebody_whom_the_configuration_names() {
    let config = Machine::with_toml(
        r#"[channels.page.main]
[people.Grace]
identities = ["page.main/1"]
[approvals]
approvers = ["Grace", "page.main/2"]
expires = "1h"
[[approvals.auto]]
person = "Grace"
kind = "mail.*"
decision = "approve"
"#,
    )
    .config();

    let settings = config.approvals.settings(&config.people);
    let identity = |id: &str| Identity { channel: ChannelId::new("page", "main"), id: id.to_owned() };
    assert_eq!((settings.owners, settings.people), (false, vec![identity("1"), identity("2")]));
    assert_eq!((settings.rules[0].people.clone(), settings.rules[0].approves), (vec![identity("1")], true));
}

#[test]
fn owners_decide_unless_somebody_else_is_named() {
    let config = Machine::with_toml("").config();

    let settings = config.approvals.settings(&config.people);
    assert!(settings.owners && settings.people.is_empty() && settings.rules.is_empty());
    assert_eq!(config.approvals.expires.as_secs(), 7 * 24 * 3600);
}

#[test]
fn whoever_and_whatever_does_not_exist_is_named() {
    let machine = Machine::with_toml(
        r#"[channels.page.main]
[approvals]
approvers = ["Bob", "page.other/1"]
[[approvals.auto]]
agent = "boss"
channel = "pge"
person = "Eve"
decision = "perhaps"
"#,
    );
    let perhaps = machine.errors();
    assert!(perhaps.contains("approvals.auto[0].decision"), "{perhaps}");

    let machine = Machine::with_toml(
        r#"[channels.page.main]
[approvals]
approvers = ["Bob", "page.other/1"]
[[approvals.auto]]
agent = "boss"
channel = "pge"
person = "Eve"
decision = "approve"
"#,
    );
    let errors = machine.errors();
    for part in [
        "`approvals.approvers[0]` names `Bob`, who is not in [people]",
        "`approvals.approvers[1]` names the channel `page.other`, which does not exist",
        "`approvals.auto[0].agent` names the agent `boss`, which does not exist",
        "`approvals.auto[0].channel` names neither a platform nor a channel: did you mean `page`?",
        "`approvals.auto[0].person` names `Eve`, who is not in [people]",
    ] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
}
