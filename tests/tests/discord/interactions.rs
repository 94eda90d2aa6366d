//! Slash commands: three seconds to acknowledge one, a quarter of an hour to answer it.

use std::time::Duration;

use rejoinder_discord_server::{Channel, DiscordServer, Fault, Interaction, Person};
use rejoinder_tests::{Gateway, GatewayBuilder, ModelServer, ScriptedAgent, eventually};
use rstest::rstest;
use serde_json::json;

use crate::{DEFERRAL, FAILED, SILENT, acknowledged, between, between_with, discord, finds, hears};

/// Deadlines for an agent that takes more than a quarter of an hour.
const PATIENT: &str = "[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"24h\"\n";

fn callback() -> rejoinder_discord_server::Fault {
    Fault::on("POST", "/interactions/*/*/callback").reset()
}

async fn asks(person: &Person, channel: &Channel, question: &str) -> Interaction {
    person.slash(channel, "ask", json!({ "question": question })).await
}

struct Scene {
    server: DiscordServer,
    general: Channel,
    ada: Person,
}

impl Scene {
    async fn set() -> Self {
        let server = DiscordServer::start().await;
        let general = server.guild("Friends").await.channel("general").await;
        let ada = server.person("Ada").await;
        Self { server, general, ada }
    }

    fn before(&self, agent: &ScriptedAgent) -> GatewayBuilder {
        between_with(&self.server, agent, "streaming = \"off\"")
    }

    /// Checks that the answer replaced the command's loading message, and is the bot's only message.
    async fn is_answered_in_place(&self, asked: &Interaction, words: &str) {
        let answer = hears(&self.server, &self.general, words).await;
        let asked = self.server.interaction(asked).await;
        assert_eq!(asked.message_id, Some(answer.id));
        assert!(!asked.failed, "{asked:?}");
        let ours: Vec<_> =
            self.server.visible(&self.general).await.into_iter().filter(|message| message.ours).collect();
        assert_eq!(ours.len(), 1, "{ours:#?}");
    }
}

/// An agent that takes 2.9 of the 3 seconds is not too late, as the command is acknowledged long before.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_whose_agent_takes_almost_three_seconds_is_answered_in_place() {
    let scene = Scene::set().await;
    let (agent, release) = ScriptedAgent::holding("At 2.9 s.").await;
    let gateway = scene.before(&agent).start().await;

    let asked = asks(&scene.ada, &scene.general, "how long?").await;
    let waits = tokio::time::sleep(Duration::from_millis(2_900));
    let noticed = acknowledged(&scene.server, &asked).await;
    agent.until_called(1).await;
    waits.await;
    release.release_one();

    scene.is_answered_in_place(&asked, "At 2.9 s.").await;
    gateway.until_settled().await;
    assert_eq!(noticed.response.as_deref(), Some("deferred"));
}

/// A1, A3, B10, C5: whatever the agent does with a command, the loading message becomes one answer.
#[rstest]
#[case::reply("hello", "The model's answer.")]
#[case::empty("zebra-empty", SILENT)]
#[case::marker("zebra-marker", SILENT)]
#[case::chosen("zebra-silent", SILENT)]
#[case::reaction("zebra-react", "👍")]
#[case::error("zebra-boom", FAILED)]
#[case::cut("zebra-cut", FAILED)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn whatever_the_agent_does_a_command_is_answered_in_place(#[case] question: &str, #[case] words: &str) {
    let (scene, model) = tokio::join!(Scene::set(), ModelServer::start());
    let gateway = Gateway::builder().config(&discord(&scene.server, "")).config(&model.section()).start().await;

    let asked = asks(&scene.ada, &scene.general, question).await;

    scene.is_answered_in_place(&asked, words).await;
    gateway.until_settled().await;
}

/// An acknowledgement that fails in any way is retried within the three seconds; "already acknowledged" (40060) counts as a
/// success.
#[rstest]
#[case::its_answer_is_lost(Fault::on("POST", "/interactions/*/*/callback").executed_then_dropped())]
#[case::an_error_after_it_was_taken(Fault::on("POST", "/interactions/*/*/callback").failed_after_executing(502))]
#[case::it_never_arrived(callback().times(2))]
#[case::an_error_instead(Fault::on("POST", "/interactions/*/*/callback").failed(503).times(2))]
#[case::it_is_slow(Fault::on("POST", "/interactions/*/*/callback").delayed(Duration::from_secs(1)))]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_acknowledgement_that_is_lost_is_made_again(#[case] fault: Fault) {
    let scene = Scene::set().await;
    let agent = ScriptedAgent::replying("Hello.").await;
    let gateway = scene.before(&agent).start().await;

    scene.server.fault(fault).await;
    let asked = asks(&scene.ada, &scene.general, "hello").await;

    scene.is_answered_in_place(&asked, "Hello.").await;
    gateway.until_settled().await;
    assert!(gateway.readiness().await.0);
}

/// A19: a command that cannot be acknowledged is answered in its channel.
#[rstest]
#[case::too_late(Fault::on("POST", "/interactions/*/*/callback").refused(404, 10062, "Unknown interaction"))]
#[case::never(callback().always())]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_that_cannot_be_acknowledged_is_answered_in_the_channel(#[case] fault: Fault) {
    let scene = Scene::set().await;
    let agent = ScriptedAgent::replying("Hello.").await;
    let gateway = scene.before(&agent).start().await;

    scene.server.fault(fault).await;
    asks(&scene.ada, &scene.general, "hello").await;
    hears(&scene.server, &scene.general, "Hello.").await;

    gateway.until_settled().await;
    assert_eq!(scene.server.bot_texts(&scene.general).await, ["Hello."]);
}

/// A10: after sixteen minutes the interaction token has expired, and the answer is sent to the channel.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_after_sixteen_minutes_comes_in_the_channel() {
    let scene = Scene::set().await;
    let (agent, release) = ScriptedAgent::holding("At last.").await;
    let gateway = scene.before(&agent).own_calendar().config(PATIENT).start().await;

    let asked = asks(&scene.ada, &scene.general, "how long?").await;
    acknowledged(&scene.server, &asked).await;
    agent.until_called(1).await;
    scene.server.advance(Duration::from_mins(16)).await;
    gateway.set_calendar_offset(16 * 60);
    release.release_one();
    hears(&scene.server, &scene.general, "At last.").await;

    gateway.until_settled().await;
    assert_eq!(scene.server.bot_texts(&scene.general).await, ["At last."]);
    let sends = scene.server.calls_to("POST", &format!("/channels/{}/messages", scene.general.id())).await;
    assert_eq!(sends.len(), 1, "{sends:?}");
}

/// A10, B10: a deferral in the loading message becomes the answer, even when the interaction token has expired.
#[rstest]
#[case::at_once(0)]
#[case::after_sixteen_minutes(16)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deferral_in_the_place_of_the_notice_becomes_the_answer(#[case] minutes: u32) {
    let scene = Scene::set().await;
    let (agent, release) = ScriptedAgent::holding("At last.").await;
    let deadlines = "[guard]\nsoft_deadline = \"1s\"\nhard_deadline = \"24h\"\nmax_deferrals = 1\n";
    let gateway = scene.before(&agent).own_calendar().config(deadlines).start().await;

    let asked = asks(&scene.ada, &scene.general, "how long?").await;
    scene.is_answered_in_place(&asked, DEFERRAL).await;
    scene.server.advance(Duration::from_mins(minutes.into())).await;
    gateway.set_calendar_offset(i64::from(minutes) * 60);
    release.release_one();

    scene.is_answered_in_place(&asked, "At last.").await;
    gateway.until_settled().await;
}

/// B11: a private command is answered privately, visible only to the person who asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_asked_in_private_is_answered_in_private() {
    let scene = Scene::set().await;
    let bob = scene.server.person("Bob").await;
    bob.says(&scene.general, "I am here").await;
    let agent = ScriptedAgent::replying(&"long words ".repeat(300)).await;
    let gateway = scene.before(&agent).start().await;

    scene.ada.slash(&scene.general, "ask", json!({ "question": "what is it?", "private": true })).await;
    let both = scene.server.until("both parts", async || {
        let ours = scene.ada.sees(&scene.general).await.into_iter().filter(|it| it.ours && !it.loading);
        let ours: Vec<_> = ours.collect();
        (ours.len() == 2).then_some(ours)
    });
    let both = both.await;

    gateway.until_settled().await;
    assert!(both.iter().all(|message| message.ephemeral_to.as_deref() == Some(scene.ada.id())));
    assert!(bob.sees(&scene.general).await.iter().all(|message| !message.ours), "somebody else sees the answer");
}

/// B11, A19: a private answer that takes too long is sent to the direct chat, not to the channel.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_private_answer_after_sixteen_minutes_comes_in_the_direct_chat() {
    let scene = Scene::set().await;
    let (agent, release) = ScriptedAgent::holding("At last.").await;
    let gateway = scene.before(&agent).own_calendar().config(PATIENT).start().await;

    let asked = scene.ada.slash(&scene.general, "ask", json!({ "question": "how long?", "private": true })).await;
    acknowledged(&scene.server, &asked).await;
    agent.until_called(1).await;
    scene.server.advance(Duration::from_mins(16)).await;
    gateway.set_calendar_offset(16 * 60);
    release.release_one();
    hears(&scene.server, &scene.ada.direct().await, "At last.").await;

    gateway.until_settled().await;
    let public = scene.server.visible(&scene.general).await;
    assert!(public.iter().all(|message| !message.ours || message.ephemeral_to.is_some()), "{public:#?}");
}

/// D1: after a crash, the next process answers an acknowledged command in place.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_survives_a_crash() {
    let scene = Scene::set().await;
    let (agent, _never) = ScriptedAgent::holding("never").await;
    let mut gateway = scene.before(&agent).start().await;

    let asked = asks(&scene.ada, &scene.general, "hello").await;
    acknowledged(&scene.server, &asked).await;
    agent.until_called(1).await;
    gateway.kill();
    gateway.restart().await;

    scene.is_answered_in_place(&asked, "echo hello").await;
    gateway.until_settled().await;
}

/// D1: a crash at any step of a command leaves one answer: in place if Discord has the acknowledgement, otherwise in the
/// channel.
#[rstest]
#[case::received_before_the_commit("received:1")]
#[case::committed_before_it_is_acknowledged("accepted:1")]
#[case::the_agent_has_run("run_ended:1")]
#[case::claimed_and_not_sent("after_commit:1")]
#[case::about_to_be_sent("attempt_started:1")]
#[case::sent_and_not_written_down("attempt_ended:1")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_at_any_step_of_a_command_leaves_one_answer(#[case] point: &str) {
    let scene = Scene::set().await;
    let agent = ScriptedAgent::replying("Hello.").await;
    let mut gateway = scene.before(&agent).start().await;
    let (server, general) = (&scene.server, &scene.general);
    // The next start resumes the session, so that only the command passes the crash points.
    scene.ada.mentions(general, "we meet").await;
    hears(server, general, "Hello.").await;
    gateway.until_settled().await;
    gateway.stop().await;

    gateway.spawn_crashing_at(point);
    gateway.until_ready().await;
    asks(&scene.ada, general, "hello").await;
    gateway.until_crashed().await;
    gateway.restart().await;
    server.until_bot_texts(general, 2).await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(general).await, ["Hello.", "Hello."]);
}

/// B3, D18: the gateway's own commands are settled by their responses.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn commands_are_the_gateways_own() {
    let scene = Scene::set().await;
    let (agent, _never) = ScriptedAgent::holding("too late").await;
    let gateway = between(&scene.server, &agent).config("[sessions]\nnew_in_groups = \"everyone\"\n").start().await;
    let (server, ada, general) = (&scene.server, &scene.ada, &scene.general);

    ada.slash(general, "stop", json!({})).await;
    hears(server, general, "There is nothing to cancel.").await;
    ada.mentions(general, "a long task").await;
    agent.until_called(1).await;
    ada.slash(general, "status", json!({})).await;
    finds(server, general, "the status", |message| message.content.contains("is working on what came")).await;
    ada.slash(general, "stop", json!({})).await;
    finds(server, general, "who stopped it", |message| message.content.starts_with("Cancelled by ")).await;
    ada.slash(general, "new", json!({})).await;
    finds(server, general, "a new session", |message| message.content.starts_with("We start afresh.")).await;
    ada.slash(general, "help", json!({})).await;
    finds(server, general, "the help", |message| message.content.contains("/status")).await;

    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 1);
    let loading = server.visible(general).await.into_iter().filter(|message| message.loading).count();
    assert_eq!(loading, 0, "a loading message remains");
}

/// H4: a global rate limit does not delay acknowledgements.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_global_limit_does_not_hold_up_an_acknowledgement() {
    let scene = Scene::set().await;
    let agent = ScriptedAgent::replying("Hello.").await;
    let gateway = scene.before(&agent).start().await;
    let bob = scene.server.person("Bob").await;
    let limited = Fault::on("POST", "/channels/*/messages");
    scene.server.fault(limited.rate_limited(Duration::from_secs(5), rejoinder_discord_server::Scope::Global)).await;

    bob.dm("hello").await;
    eventually("his message is rate limited", async || {
        let sends = scene.server.calls_to("POST", "/messages").await;
        sends.iter().any(|call| call.status == Some(429)).then_some(())
    })
    .await;
    let asked = asks(&scene.ada, &scene.general, "hello").await;
    acknowledged(&scene.server, &asked).await;

    scene.is_answered_in_place(&asked, "Hello.").await;
    hears(&scene.server, &bob.direct().await, "Hello.").await;
    gateway.until_settled().await;
}
