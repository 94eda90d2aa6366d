//! Messages that show whether a channel goes on: one a second on each, in a chat of its own.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::sleep};

use crate::{
    channel::{Channel, Platform, Seen},
    crowd::Crowd,
    words::{self, Behaviour},
};

/// How often one is said on each channel.
const EVERY: Duration = Duration::from_secs(1);
/// How often its answer is looked for.
const LOOK: Duration = Duration::from_millis(200);
/// How many of a channel may wait for an answer.
const WAITING: usize = 8;
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_mins(3);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    pub(crate) platform: Platform,
    pub(crate) said: Instant,
    /// When the person saw the agent's answer: a deferral or a fallback is none.
    pub(crate) answered: Option<Instant>,
    /// When the person was told that the agent took too long.
    pub(crate) too_late: Option<Instant>,
}

impl Probe {
    const fn is_over(&self) -> bool {
        self.answered.is_some() || self.too_late.is_some()
    }
}

/// Says messages until it is dropped.
pub(crate) struct Probes {
    said: Arc<Mutex<Vec<Probe>>>,
    platforms: Vec<Platform>,
    _saying: JoinSet<()>,
}

impl Probes {
    pub(crate) fn start(crowd: &Arc<Crowd>, channels: &[Arc<dyn Channel>]) -> Self {
        let probes = Arc::<Mutex<Vec<Probe>>>::default();
        let mut saying = JoinSet::new();
        for channel in channels {
            saying.spawn(say(Arc::clone(crowd), Arc::clone(channel), Arc::clone(&probes)));
        }
        let platforms = channels.iter().map(|channel| channel.platform()).collect();
        Self { said: probes, platforms, _saying: saying }
    }

    /// Whether each channel has answered one that was said since then.
    pub(crate) fn all_answer_since(&self, since: Instant) -> bool {
        let probes = lock(&self.said);
        let answers = |platform: &Platform| {
            let mut its = probes.iter().filter(|probe| probe.platform == *platform);
            its.any(|probe| probe.said >= since && probe.answered.is_some())
        };
        self.platforms.iter().all(answers)
    }

    /// Says no more of them; those that were said can still be answered.
    pub(crate) fn end(self) -> Said {
        Said(self.said)
    }
}

/// All probes that were said.
pub(crate) struct Said(Arc<Mutex<Vec<Probe>>>);

impl Said {
    pub(crate) fn all(&self) -> Vec<Probe> {
        lock(&self.0).clone()
    }

    pub(crate) fn are_over(&self) -> bool {
        lock(&self.0).iter().all(Probe::is_over)
    }
}

fn lock(probes: &Mutex<Vec<Probe>>) -> MutexGuard<'_, Vec<Probe>> {
    probes.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn say(crowd: Arc<Crowd>, channel: Arc<dyn Channel>, probes: Arc<Mutex<Vec<Probe>>>) {
    let platform = channel.platform();
    loop {
        let waiting = lock(&probes).iter().filter(|it| it.platform == platform && !it.is_over()).count();
        if waiting < WAITING {
            // It goes on when no more are said.
            tokio::spawn(say_one(Arc::clone(&crowd), Arc::clone(&channel), Arc::clone(&probes)));
        }
        sleep(EVERY).await;
    }
}

async fn say_one(crowd: Arc<Crowd>, channel: Arc<dyn Channel>, probes: Arc<Mutex<Vec<Probe>>>) {
    let chat = channel.open().await;
    let said = Instant::now();
    let number = {
        let mut probes = lock(&probes);
        probes.push(Probe { platform: channel.platform(), said, answered: None, too_late: None });
        probes.len() - 1
    };
    crowd.say(channel.as_ref(), &chat, Behaviour::Answer).await;
    while said.elapsed() < PATIENCE {
        let seen = channel.seen(&chat).await;
        let (is_answered, is_too_late) = (seen.iter().any(is_answer), seen.iter().any(is_too_late));
        if is_answered || is_too_late {
            let (now, probe) = (Instant::now(), &mut lock(&probes)[number]);
            probe.answered = is_answered.then_some(now);
            probe.too_late = is_too_late.then_some(now);
            return;
        }
        sleep(LOOK).await;
    }
}

fn is_answer(seen: &Seen) -> bool {
    matches!(seen, Seen::Text(text) if words::parts_in(words::without_label(text).0).iter().any(|part| part.is_whole))
}

fn is_too_late(seen: &Seen) -> bool {
    matches!(seen, Seen::Text(text) if words::without_label(text).0 == words::TOO_LATE)
}
