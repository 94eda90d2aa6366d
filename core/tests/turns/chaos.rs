//! Random events, faults and crashes, from a seed.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use rand::{Rng, SeedableRng, rngs::StdRng};
use rejoinder_core::{
    Accepted, AgentTurn, Capabilities, Cause, ChannelId, ConversationRef, Delivery, InboundEvent, Intake, Ladder,
    Policies, Policy, Receipts, Resend, Rung, Scope, Support,
    conformance::scripted::{Fault, Script, ScriptedChannel, capabilities},
};
use tokio::sync::watch;

use crate::gateway::{GatewaySetup, policy, said, secs, unrelated_node};

const CONVERSATIONS: u64 = 12;
const MESSAGES: u64 = 10;
const LIVES: u32 = 4;

/// How long the gateway may take to come to rest, in real time.
const PATIENCE: Duration = Duration::from_mins(1);

fn random(seed: u64, what: impl Hash) -> StdRng {
    let mut hasher = DefaultHasher::new();
    (seed, what).hash(&mut hasher);
    StdRng::seed_from_u64(hasher.finish())
}

fn script(seed: u64, turn: &AgentTurn) -> Script {
    let mut random = random(seed, (&turn.message.text, turn.attempt));
    let script = match random.random_range(0..100) {
        0..50 => Script::replies(&turn.message.text),
        50..58 => Script::replies(&[&*turn.message.text, "more"].join(ScriptedChannel::CUT)),
        58..64 => Script::reacts("👍"),
        64..70 => Script::is_silent("nothing to add"),
        70..76 => Script::fails("broken"),
        76..80 => Script::panics(),
        80..84 => Script::hangs(),
        84..90 => Script::defers(None, secs(random.random_range(1..40))),
        _ => Script::replies(&turn.message.text).sending("on my own").taking(secs(1)),
    };
    match random.random_range(0..4) {
        0 => script.streaming("well, ").taking(secs(random.random_range(0..30))).streaming("then"),
        1 => script.taking(secs(random.random_range(0..3))),
        _ => script,
    }
}

/// The fault of a delivery. Only first attempts are refused: the platform would not refuse what it may have accepted.
fn trouble(random: &mut StdRng, delivery: &Delivery) -> Option<Fault> {
    let first = delivery.attempt() == 1 && delivery.part().0 == 1;
    match random.random_range(0..100) {
        0..4 => Some(Fault::LoseResponse),
        4..7 => Some(Fault::LoseRequest),
        7..11 if first => Some(Fault::Refuse),
        11..17 => Some(Fault::NotSent),
        17..20 => Some(Fault::Limit { retry_after: secs(2), scope: Scope::Conversation }),
        20..21 => Some(Fault::Limit { retry_after: secs(1), scope: Scope::Account }),
        21..22 => Some(Fault::Hang),
        _ => None,
    }
}

fn setup(seed: u64) -> GatewaySetup {
    let say = |template: &str| Rung::Say(template.to_owned());
    let ladder = Ladder::empty()
        .with(Cause::Silent, vec![Rung::Handoff("orchestrator".to_owned()), say("silent")])
        .with(Cause::Error, vec![say("failed")])
        .with(Cause::Timeout, vec![Rung::Handoff("orchestrator".to_owned()), say("late")])
        .with(Cause::Refused, vec![say("failed")]);
    let mut setup = GatewaySetup::new()
        .slots(6)
        .agent("main", move |turn| script(seed, turn))
        .agent("orchestrator", move |turn| script(seed.wrapping_add(1), turn));
    setup.policies = Policies::new(Policy { ladder, hard_deadline: secs(60), max_deferrals: 2, ..policy() });
    setup.capabilities = Capabilities {
        drafts: Support::Full,
        typing: Support::Full,
        draft_interval: Duration::from_millis(200),
        ..capabilities()
    };
    setup
        .channels
        .push((ChannelId::new("sure", "main"), Capabilities { resend: Resend::Idempotent, ..capabilities() }));
    setup.channels.push((ChannelId::new("row", "main"), Capabilities { receipts: Receipts::Row, ..capabilities() }));
    setup
}

/// Gives `event` to the current gateway until one has accepted it.
async fn brings_in(intake: &mut watch::Receiver<Option<Intake>>, event: InboundEvent) {
    loop {
        let current = intake.borrow_and_update().clone();
        if let Some(current) = current {
            tokio::select! {
                accepted = current.accept(event.clone()) => match accepted {
                    Ok(Accepted::Turn(_) | Accepted::Duplicate { .. }) => return,
                    Ok(other) => unreachable!("it is directed at the agent, and picks nothing: {other:?}"),
                    Err(_) => {}
                },
                _ = intake.changed() => continue,
            }
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(2)) => {}
            _ = intake.changed() => {}
        }
    }
}

async fn talks(seed: u64, number: u64, mut intake: watch::Receiver<Option<Intake>>) {
    let mut random = random(seed, ("person", number));
    let platform = ["test", "sure", "row"][usize::try_from(number % 3).expect("small")];
    let conversation = ConversationRef::new(ChannelId::new(platform, "main"), &format!("c{number}"));
    for message in 0..MESSAGES {
        let text = match random.random_range(0..20) {
            0 => "/stop".to_owned(),
            1 => "/new".to_owned(),
            _ => format!("{number}.{message}"),
        };
        let event = said(&conversation, &text);
        brings_in(&mut intake, event.clone()).await;
        if random.random_range(0..10) == 0 {
            brings_in(&mut intake, event).await;
        }
        tokio::time::sleep(Duration::from_millis(random.random_range(0..12))).await;
    }
}

async fn survives(seed: u64) {
    let mut gateway = setup(seed).start().await;
    let mut moods = random(seed, "platform");
    gateway.platform.choose_faults(move |delivery| trouble(&mut moods, delivery));
    let (lives, intake) = watch::channel(Some(gateway.intake()));
    let people: Vec<_> = (0..CONVERSATIONS).map(|number| tokio::spawn(talks(seed, number, intake.clone()))).collect();
    let passing = gateway.clock.run_automatically(secs(2));

    let mut ends = random(seed, "ends");
    for _ in 1..LIVES {
        tokio::time::sleep(Duration::from_millis(ends.random_range(10..60))).await;
        lives.send_replace(None);
        gateway.life.kill();
        assert!(gateway.begin(Arc::default()).await);
        lives.send_replace(Some(gateway.intake()));
    }
    for person in people {
        person.await.expect("no task panics");
    }
    gateway.platform.clear_faults();

    let rests = async {
        loop {
            let backlog = gateway.store.backlog().await.expect("readable");
            // A run may continue after its own send has settled the turn.
            let running = gateway.store.runs_left(unrelated_node(), &[], None, 1).await.expect("readable");
            let sending = gateway.store.attempts_left(None).await.expect("readable");
            let are_left = (backlog.open, backlog.waiting, backlog.pending_deliveries) != (0, 0, 0);
            if !are_left && running.is_empty() && sending.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, rests).await.is_err() {
        let turns = gateway.turns().await;
        let open: Vec<_> = turns.iter().filter(|turn| turn.ended_at.is_none()).collect();
        panic!("seed {seed}: no rest at {}: {open:#?}", rejoinder_core::Clock::now(&*gateway.clock));
    }
    drop(passing);
    gateway.at_rest().await;
}

/// How many seeds to try: `REJOINDER_SEEDS` from the environment, by default 3.
fn seeds() -> u64 {
    std::env::var("REJOINDER_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(3)
}

/// A1, A3, B10, D1, E6, E8.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_happens_every_turn_ends_in_one_signal() {
    for seed in 0..seeds() {
        survives(seed).await;
    }
}
