//! The platform is unavailable and recovers.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::{Calls, Failure, Platform, SentMessage, check_answered_once, texts, wait_for_text};
use crate::{Gate, GatewayBuilder, Script, ScriptedAgent, eventually};

/// How many people write.
const PEOPLE: usize = 20;

/// The factor by which the gateway's clock runs faster while its platform is unavailable.
const FASTER: u32 = 5;

/// How long the platform is unavailable, by the gateway's clock: long enough for the retry backoff to grow.
const AWAY: Duration = Duration::from_secs(20);

/// The limit for "at once", by our clock: half of what is left of the backoff, and far above the time that sending takes.
const AT_ONCE: Duration = Duration::from_secs(3);

/// How long an answer may take once a gateway is ready: far below the backoff for a platform that rejects the token.
const SOON: Duration = Duration::from_secs(8);

/// A period in which calls to the platform fail.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    /// The calls that fail.
    pub calls: Calls,
    /// How they fail.
    pub failure: Failure,
    /// How many messages arrive at its beginning although the platform reports an error.
    pub arrive: u32,
    /// Its duration by the gateway's clock.
    pub lasts: Duration,
    /// The factor by which the gateway's clock runs faster.
    pub faster: u32,
}

impl Default for Outage {
    /// Every message gets a 502 for three seconds.
    fn default() -> Self {
        let (calls, failure) = (Calls::Sending(""), Failure::BadGateway);
        Self { calls, failure, arrive: 0, lasts: Duration::from_secs(3), faster: 1 }
    }
}

impl Outage {
    /// Twenty seconds, on a clock that runs ten times as fast.
    #[must_use]
    pub fn long() -> Self {
        Self { lasts: Duration::from_secs(20), faster: 10, ..Self::default() }
    }
}

/// Twenty people write, and sending to them fails for a while: each is answered once, and copies are labelled.
pub async fn twenty_people_are_answered_after_an_outage<P: Platform>(outage: Outage, keys: &str) {
    let mut wrong = Vec::new();
    for (n, messages) in messages_after::<P>(outage, keys).await.iter().enumerate() {
        wrong.extend(check_answered_once::<P>(messages, &answer(n)).err());
    }
    assert!(wrong.is_empty(), "{} of {PEOPLE} are answered, once: {wrong:#?}", PEOPLE - wrong.len());
}

/// As [`twenty_people_are_answered_after_an_outage`]: nobody sees more than `most` labelled copies.
pub async fn twenty_people_see_few_copies<P: Platform>(outage: Outage, most: usize, keys: &str) {
    let heard = messages_after::<P>(outage, keys).await;
    let mut wrong = Vec::new();
    for (n, messages) in heard.iter().enumerate() {
        wrong.extend(check_answered_once::<P>(messages, &answer(n)).err());
        if messages.iter().filter(|message| message.is_copy()).count() > most {
            wrong.push(format!("more than {most} copies: {:?}", texts(messages)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// As [`twenty_people_are_answered_after_an_outage`], with labels switched off: nobody sees a label, and there are no more
/// copies than messages that arrived without acknowledgement.
pub async fn twenty_people_are_answered_without_a_label<P: Platform>(outage: Outage, keys: &str) {
    let heard = messages_after::<P>(outage, keys).await;
    let is_answered = |(n, messages): &(usize, &Vec<SentMessage>)| {
        !messages.is_empty() && messages.iter().all(|it| it.text == answer(*n))
    };
    let wrong: Vec<_> =
        heard.iter().enumerate().filter(|it| !is_answered(it)).map(|(_, messages)| texts(messages)).collect();
    assert!(wrong.is_empty(), "{} of {PEOPLE} are answered: {wrong:#?}", PEOPLE - wrong.len());
    let copies = heard.iter().map(Vec::len).sum::<usize>() - PEOPLE;
    let arrived = usize::try_from(outage.arrive).expect("a number of messages");
    assert!(copies <= arrived, "{copies} are seen twice, and {arrived} may be");
}

fn answer(n: usize) -> String {
    format!("echo question {n}")
}

/// What each of twenty people sees when an outage is over and nothing is owed any more.
async fn messages_after<P: Platform>(outage: Outage, keys: &str) -> Vec<Vec<SentMessage>> {
    let (platform, gate) = (P::new().await, Gate::default());
    let agent = {
        let gate = gate.clone();
        ScriptedAgent::start(move |call, _| Script::replies(&format!("echo {}", call.said())).waiting(&gate)).await
    };
    let gateway = without_soft_deadline(&platform, &agent, keys, outage.faster).start().await;
    let people = join_all((0..PEOPLE).map(|_| platform.person())).await;

    join_all(people.iter().enumerate().map(async |(n, person)| platform.says(person, &format!("question {n}")).await))
        .await;
    agent.until_called(PEOPLE).await;
    if outage.arrive > 0 {
        platform.fail_calls(Calls::Sending(""), Failure::DoneAndBadGateway, Some(outage.arrive)).await;
    }
    platform.fail_calls(outage.calls, outage.failure, None).await;
    gate.open();
    let_time_pass(outage.lasts / outage.faster).await;
    platform.clear_faults().await;
    gateway.until_settled().await;

    join_all(people.iter().map(|person| platform.messages_of(person))).await
}

/// What happens while the platform is unavailable.
#[derive(Clone, Copy, Debug)]
pub enum Meanwhile {
    /// No other message arrives: the first call that succeeds is the gateway's poll or sync.
    Silence,
    /// Somebody else asks: the first call that succeeds may be the answer to that question.
    Question,
}

/// An answer is owed while connections are refused. It is sent as soon as the platform is back, however long the backoff
/// has become.
pub async fn what_waits_goes_when_the_platform_is_back<P: Platform>(meanwhile: Meanwhile, keys: &str) {
    let (platform, gate) = (P::new().await, Gate::default());
    let agent = gated_agent(&gate).await;
    let gateway = without_soft_deadline(&platform, &agent, keys, FASTER).start().await;
    let (ada, bob) = (platform.person().await, platform.person().await);

    platform.says(&ada, "hello").await;
    agent.until_called(1).await;
    platform.disconnect().await;
    gate.open();
    if matches!(meanwhile, Meanwhile::Question) {
        platform.says(&bob, "are you there?").await;
    }
    let_time_pass(AWAY / FASTER).await;
    let before = platform.messages_of(&ada).await;
    platform.reconnect().await;
    let back = Instant::now();
    wait_for_text(&platform, &ada, "The first.").await;
    let waited = back.elapsed();

    gateway.until_settled().await;
    assert_eq!(before, [], "sent while the platform was unavailable");
    assert!(waited < AT_ONCE, "sent {:?} after the platform was back, by the gateway's clock", waited * FASTER);
    assert_eq!(texts(&platform.messages_of(&ada).await), ["The first."]);
}

/// An answer is owed while the account's token is rejected. It is sent at once when the gateway restarts with a valid
/// token.
pub async fn a_waiting_answer_is_sent_when_the_token_is_restored<P: Platform>(keys: &str) {
    let (platform, gate) = (P::new().await, Gate::default());
    let agent = gated_agent(&gate).await;
    let mut gateway = without_soft_deadline(&platform, &agent, keys, 1).start().await;
    let ada = platform.person().await;

    platform.says(&ada, "hello").await;
    agent.until_called(1).await;
    platform.revoke_token().await;
    gate.open();
    let turn = gateway.only_turn();
    eventually("the token is rejected", async || gateway.explain(&turn).contains("401").then_some(())).await;
    gateway.stop().await;
    platform.restore_token().await;
    gateway.restart().await;
    let ready = Instant::now();
    wait_for_text(&platform, &ada, "The first.").await;
    let waited = ready.elapsed();

    gateway.until_settled().await;
    assert!(waited < SOON, "sent {waited:?} after the gateway was ready");
    assert_eq!(texts(&platform.messages_of(&ada).await), ["The first."]);
}

/// Replies "The first." to the first question once the gate is open, and echoes the others.
async fn gated_agent(gate: &Gate) -> ScriptedAgent {
    let gate = gate.clone();
    ScriptedAgent::start(move |call, number| match number {
        0 => Script::replies("The first.").waiting(&gate),
        _ => Script::replies(&format!("echo {}", call.said())),
    })
    .await
}

/// A gateway without a soft deadline.
fn without_soft_deadline<P: Platform>(platform: &P, agent: &ScriptedAgent, keys: &str, faster: u32) -> GatewayBuilder {
    let builder = platform.gateway(keys).config(&agent.section());
    let builder = builder.config("[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\n");
    if faster > 1 { builder.time_passes_faster(faster) } else { builder }
}

/// Waits for this much real time.
async fn let_time_pass(time: Duration) {
    let begun = Instant::now();
    eventually("time passes", async || (begun.elapsed() >= time).then_some(())).await;
}
