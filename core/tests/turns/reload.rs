//! A configuration that is read again while the gateway runs.

use std::{collections::HashMap, sync::Arc, time::Duration};

use rejoinder_core::{
    Access, Actor, AgentRuntime, DirectPolicy, Identity, Missed, NewSchedule, PersonRole, ScheduledAction, When,
    conformance::scripted::{Script, ScriptedAgent},
};

use crate::{
    approvals::person,
    gateway::{GatewaySetup, TestGateway, chat, comes_in, is_on_postgres, main_channel, secs},
    life::{Crash, Life},
    linking::says,
};

/// Nobody but the people of the configuration may write.
async fn closed() -> TestGateway {
    let mut setup = GatewaySetup::new().always(Script::replies("hello"));
    setup.access.insert(main_channel(), Access { direct: DirectPolicy::Allowlist, ..Access::default() });
    setup.people = vec![person("Grace", PersonRole::Owner)];
    setup.start().await
}

#[tokio::test]
async fn a_person_is_known_as_soon_as_the_configuration_names_them() {
    let gateway = closed().await;
    comes_in(&gateway, says(&chat("ada"), "before")).await;
    let mut settings = gateway.settings();
    settings.people.push(person("Ada", PersonRole::Member));

    gateway.reads(settings).await;
    gateway.receives(says(&chat("ada"), "after")).await;

    assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some("hello"));
    let names: Vec<_> = gateway.engine().people().all().await.expect("read").into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["Grace", "Ada"]);
    gateway.at_rest().await;
}

/// Only the next start lets them in again.
#[tokio::test]
async fn who_was_revoked_stays_a_stranger_when_an_unchanged_configuration_is_read_again() {
    let gateway = closed().await;
    gateway.receives(says(&chat("grace"), "one")).await;
    let grace = Identity { channel: main_channel(), id: "grace".to_owned() };
    gateway.engine().operations().revoke(&grace, Actor::named("ada".to_owned())).await.expect("she is known");

    gateway.reads(gateway.settings()).await;
    comes_in(&gateway, says(&chat("grace"), "two")).await;

    assert_eq!(gateway.visible(&chat("grace")).iter().filter(|text| *text == "hello").count(), 1);
    assert_eq!(gateway.engine().people().all().await.expect("read"), []);
    gateway.at_rest().await;
}

/// Says "Tea." to Grace every hour.
fn tea() -> NewSchedule {
    NewSchedule {
        name: "tea".to_owned(),
        when: When::Every(Duration::from_hours(1)),
        time_zone: "UTC".into(),
        to: "Grace".parse().expect("a target"),
        action: ScheduledAction::Message("Tea.".to_owned()),
        missed: Missed::Once,
    }
}

/// Whether Grace is known, and her tea is scheduled.
async fn is_planted(gateway: &TestGateway) -> bool {
    let people = gateway.engine().people().all().await.expect("read");
    let schedules = gateway.engine().calendar().seen_by(None);
    assert_eq!(people.len(), schedules.len());
    !people.is_empty()
}

/// Another node has replaced the configuration, and an operator has revoked Grace. On SQLite there is no other node, and each start plants.
#[tokio::test]
async fn a_start_with_a_configuration_that_was_replaced_plants_nothing_and_a_reload_does() {
    let mut gateway = closed().await;
    gateway.configuration = Some([1; 32]);
    gateway.restart().await;
    gateway.store.configuration(&[2; 32]).await.expect("the configuration is set");
    let grace = Identity { channel: main_channel(), id: "grace".to_owned() };
    gateway.engine().operations().revoke(&grace, Actor::named("ada".to_owned())).await.expect("she is known");
    gateway.change_schedules(vec![tea()]);

    gateway.restart().await;
    assert_eq!(is_planted(&gateway).await, !is_on_postgres());
    gateway.reads(gateway.settings()).await;
    assert!(is_planted(&gateway).await);

    gateway.at_rest().await;
}

/// It pauses between reading the latest configuration and planting its own, and an operator has revoked Grace.
#[tokio::test]
async fn a_start_that_stands_still_while_its_configuration_is_replaced_plants_nothing() {
    let mut gateway = closed().await;
    let grace = Identity { channel: main_channel(), id: "grace".to_owned() };
    gateway.engine().operations().revoke(&grace, Actor::named("ada".to_owned())).await.expect("she is known");
    gateway.configuration = Some([1; 32]);
    gateway.change_schedules(vec![tea()]);
    gateway.life.kill();
    let life = Arc::<Life>::default();
    life.hold(Some("commit"));
    let (store, held) = (Arc::clone(&gateway.store), Arc::clone(&life));
    let replacing = async move {
        while is_on_postgres() && store.latest_configuration().await.expect("it is read").is_none() {
            tokio::task::yield_now().await;
        }
        store.configuration(&[2; 32]).await.expect("the configuration is set");
        held.hold(None);
    };

    let (has_begun, ()) = tokio::join!(gateway.begin(life), replacing);
    gateway.settle().await;

    assert!(has_begun);
    assert_eq!(is_planted(&gateway).await, !is_on_postgres());
    gateway.at_rest().await;
}

/// Other nodes would all be behind a configuration that no node has.
#[tokio::test]
async fn a_reload_that_cannot_be_stored_leaves_the_latest_configuration() {
    let mut gateway = closed().await;
    gateway.configuration = Some([1; 32]);
    gateway.restart().await;
    let mut settings = gateway.settings();
    settings.people.push(person("Ada", PersonRole::Member));

    gateway.life.lose_at(1, Crash::Before);
    let failed = gateway.engine().reload(settings, HashMap::new(), Some([2; 32])).await;

    assert!(failed.is_err(), "{failed:?}");
    let latest = gateway.store.latest_configuration().await.expect("the configuration is read");
    assert_eq!(latest.map(|latest| latest.digest), is_on_postgres().then_some([1; 32]));
    gateway.at_rest().await;
}

/// The operator reloads once it is clear which configuration is to count.
#[tokio::test]
async fn a_reload_that_stands_still_while_another_configuration_becomes_the_latest_changes_nothing() {
    let mut gateway = closed().await;
    gateway.configuration = Some([1; 32]);
    gateway.restart().await;
    gateway.life.hold(Some("commit"));
    let (engine, mut settings) = (gateway.engine().clone(), gateway.settings());
    settings.people.push(person("Ada", PersonRole::Member));
    let reading = tokio::spawn(async move { engine.reload(settings, HashMap::new(), Some([2; 32])).await });
    gateway.settle().await;

    gateway.store.configuration(&[3; 32]).await.expect("the configuration is set");
    gateway.life.hold(None);
    let replanted = reading.await.expect("it does not panic").expect("the store can be written");

    assert_eq!(replanted.is_none(), is_on_postgres());
    let people = gateway.engine().people().all().await.expect("read");
    assert_eq!(people.len(), if is_on_postgres() { 1 } else { 2 });
    gateway.at_rest().await;
}

/// The schedules of the latest configuration, which other nodes go by, stay.
#[tokio::test]
async fn a_start_with_a_configuration_that_was_replaced_removes_no_schedule() {
    let mut gateway = closed().await;
    gateway.configuration = Some([1; 32]);
    gateway.restart().await;
    gateway.configuration = Some([2; 32]);
    gateway.change_schedules(vec![tea()]);
    gateway.restart().await;

    gateway.configuration = Some([1; 32]);
    gateway.change_schedules(Vec::new());
    gateway.restart().await;

    assert_eq!(gateway.engine().calendar().seen_by(None).is_empty(), !is_on_postgres());
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_schedule_begins_and_ends_with_its_place_in_the_configuration() {
    let gateway = closed().await;
    gateway.receives(says(&chat("grace"), "hi")).await;
    let mut settings = gateway.settings();
    settings.schedules.seeds = vec![tea()];
    gateway.reads(settings.clone()).await;
    gateway.advance(secs(3600)).await;

    settings.schedules.seeds.clear();
    gateway.reads(settings).await;
    gateway.advance(secs(7200)).await;

    assert_eq!(gateway.visible(&chat("grace")), ["hello", "Tea."]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_agent_that_has_changed_answers_the_next_turn() {
    let gateway = closed().await;
    gateway.receives(says(&chat("grace"), "one")).await;
    let changed = ScriptedAgent::new(gateway.clock.clone(), |_| Script::replies("hello from the new prompt"));

    gateway
        .reads_with(gateway.settings(), HashMap::from([("main".into(), Arc::new(changed) as Arc<dyn AgentRuntime>)]))
        .await;
    gateway.receives(says(&chat("grace"), "two")).await;

    assert_eq!(gateway.visible(&chat("grace")), ["hello", "hello from the new prompt"]);
    gateway.at_rest().await;
}
