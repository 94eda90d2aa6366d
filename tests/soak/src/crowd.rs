//! The people: they write, and everything that a platform has accepted is noted.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    channel::{Channel, Platform},
    words::{self, Behaviour},
};

/// How many people write at the same time on a platform.
const PEOPLE: u64 = 6;
/// The pauses between the messages of a person, in milliseconds.
const PAUSES: std::ops::Range<u64> = 2_000..9_000;
/// After this many messages, somebody else writes, in another chat.
const MESSAGES_PER_CHAT: usize = 12;
/// How likely a person who waits for a slow answer says `/stop`, in percent.
const STOPS: u32 = 25;
/// The people of a flood on each platform.
const FLOOD_PEOPLE: usize = 10;
/// How many messages a flood has on all platforms together.
pub(crate) const FLOOD: usize = 500;

/// A message that its platform has accepted.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) platform: Platform,
    pub(crate) chat: String,
    pub(crate) text: String,
    /// The turn, where the platform told it.
    pub(crate) turn: Option<String>,
}

/// All people.
pub(crate) struct Crowd {
    channels: Vec<Arc<dyn Channel>>,
    seed: u64,
    is_over: watch::Sender<bool>,
    said: Mutex<Vec<Said>>,
    /// Messages that a platform has not accepted yet.
    trying: AtomicUsize,
    tokens: AtomicUsize,
}

impl Crowd {
    /// People who write on these channels. Their tokens begin with this number.
    pub(crate) fn new(channels: Vec<Arc<dyn Channel>>, seed: u64, first_token: usize) -> Arc<Self> {
        Arc::new(Self {
            channels,
            seed,
            is_over: watch::Sender::new(false),
            said: Mutex::default(),
            trying: AtomicUsize::new(0),
            tokens: AtomicUsize::new(first_token),
        })
    }

    /// From now on, nobody begins a message.
    pub(crate) fn end(&self) {
        self.is_over.send_replace(true);
    }

    /// The number after that of the last token.
    pub(crate) fn next_token(&self) -> usize {
        self.tokens.load(Ordering::Relaxed)
    }

    /// What was accepted so far.
    pub(crate) fn said(&self) -> Vec<Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many messages were accepted so far.
    pub(crate) fn said_count(&self) -> usize {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// How many messages were not accepted yet.
    pub(crate) fn trying_count(&self) -> usize {
        self.trying.load(Ordering::Relaxed)
    }

    /// Makes everybody write until the [end](Self::end).
    pub(crate) fn start(self: &Arc<Self>) -> JoinSet<()> {
        let mut writing = JoinSet::new();
        for (number, channel) in self.channels.iter().enumerate() {
            for person in 0..PEOPLE {
                let random = StdRng::seed_from_u64(self.seed ^ (number as u64 + 1) << 32 ^ person);
                let (crowd, channel) = (Arc::clone(self), Arc::clone(channel));
                writing.spawn(async move { crowd.write(channel.as_ref(), random).await });
            }
        }
        writing
    }

    /// Makes ten people on each platform write at once, at this time.
    pub(crate) fn flood(self: &Arc<Self>, writing: &mut JoinSet<()>, at: Instant) {
        let messages = FLOOD / self.channels.len() / FLOOD_PEOPLE;
        for channel in &self.channels {
            let (crowd, channel) = (Arc::clone(self), Arc::clone(channel));
            writing.spawn(async move {
                sleep(at.saturating_duration_since(Instant::now())).await;
                crowd.flood_channel(&channel, messages).await;
            });
        }
    }

    async fn write(&self, channel: &dyn Channel, mut random: StdRng) {
        let mut left = 0;
        let mut chat = String::new();
        let mut is_over = self.is_over.subscribe();
        loop {
            let pause = Duration::from_millis(random.random_range(PAUSES));
            if timeout(pause, is_over.wait_for(|is_over| *is_over)).await.is_ok() {
                return;
            }
            if left == 0 {
                chat = channel.open().await;
                left = MESSAGES_PER_CHAT;
            }
            left -= 1;
            let behaviour = any_behaviour(&mut random);
            self.say(channel, &chat, behaviour).await;
            let is_slow = matches!(behaviour, Behaviour::Slow | Behaviour::Stall | Behaviour::Stream);
            if is_slow && channel.takes_commands(&chat) && random.random_range(0..100) < STOPS {
                sleep(Duration::from_millis(random.random_range(300..1500))).await;
                let key = format!("{}-stop", self.token(channel));
                self.accepted(channel, &chat, &key, "/stop").await;
            }
        }
    }

    /// Ten people write at once, each this many messages.
    async fn flood_channel(&self, channel: &Arc<dyn Channel>, messages: usize) {
        let mut chats = Vec::new();
        for _ in 0..FLOOD_PEOPLE {
            chats.push(channel.open().await);
        }
        let says = chats.iter().map(async |chat| {
            for _ in 0..messages {
                self.say(channel.as_ref(), chat, Behaviour::Answer).await;
            }
        });
        futures_util::future::join_all(says).await;
    }

    /// Writes a message, and returns once it is accepted.
    pub(crate) async fn say(&self, channel: &dyn Channel, chat: &str, behaviour: Behaviour) {
        let token = self.token(channel);
        self.accepted(channel, chat, &token, &format!("{} {token}", behaviour.word())).await;
    }

    fn token(&self, channel: &dyn Channel) -> String {
        words::token(channel.platform().prefix(), self.tokens.fetch_add(1, Ordering::Relaxed))
    }

    async fn accepted(&self, channel: &dyn Channel, chat: &str, key: &str, text: &str) {
        self.trying.fetch_add(1, Ordering::Relaxed);
        let turn = channel.say(chat, key, text).await;
        self.trying.fetch_sub(1, Ordering::Relaxed);
        let said = Said { platform: channel.platform(), chat: chat.to_owned(), text: text.to_owned(), turn };
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push(said);
    }
}

fn any_behaviour(random: &mut StdRng) -> Behaviour {
    let mut drawn = random.random_range(0..Behaviour::SHARES.iter().map(|(_, share)| share).sum());
    for (behaviour, share) in Behaviour::SHARES {
        if drawn < share {
            return behaviour;
        }
        drawn -= share;
    }
    Behaviour::Answer
}

/// Makes a channel fail and heal in turns until `end`; one failure in ten is long. `note` gets each failure.
pub(crate) async fn trouble(channel: Arc<dyn Channel>, mut random: StdRng, end: Instant, note: impl Fn(&'static str)) {
    loop {
        let calm = random.random_range(1_500..6_000);
        let is_long = random.random_ratio(1, 10);
        let lasts = random.random_range(if is_long { 20_000..30_000 } else { 1_000..6_000 });
        if Instant::now() + Duration::from_millis(calm + lasts) > end {
            return;
        }
        sleep(Duration::from_millis(calm)).await;
        note(channel.fail(&mut random).await);
        sleep(Duration::from_millis(lasts)).await;
        channel.heal().await;
    }
}
