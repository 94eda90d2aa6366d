//! A bot on the Telegram double. Every fourth chat is a group, where people mention the bot.

use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rand::rngs::StdRng;
use rejoinder_telegram_double::{ApiError, Fault, Outage, Person, TelegramDouble};

use super::{Channel, NAME, Platform, Seen, one_of};
use crate::words;

pub(super) struct Telegram {
    double: TelegramDouble,
    people: Mutex<HashMap<String, Person>>,
    count: AtomicUsize,
}

impl Telegram {
    pub(super) async fn start() -> Self {
        let double = TelegramDouble::start().await;
        double.keep_calls(false);
        Self { double, people: Mutex::default(), count: AtomicUsize::new(0) }
    }

    fn person(&self, chat: &str) -> Person {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)[chat].clone()
    }
}

#[async_trait]
impl Channel for Telegram {
    fn platform(&self) -> Platform {
        Platform::Telegram
    }

    fn section(&self) -> String {
        format!(
            "[channels.telegram.{NAME}]\ntoken = \"{}\"\napi_url = \"{}\"\ndm_policy = \"open\"\npoll_timeout = \"5s\"\n",
            self.double.token(),
            self.double.url()
        )
    }

    async fn open(&self) -> String {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let mut person = self.double.person(&format!("Ada {number}"));
        if number % 4 == 3 {
            person = person.at(&self.double.supergroup(&format!("Family {number}")));
        }
        let chat = person.chat().to_string();
        self.people.lock().unwrap_or_else(PoisonError::into_inner).insert(chat.clone(), person);
        chat
    }

    fn takes_commands(&self, chat: &str) -> bool {
        // A group's id is negative.
        !chat.starts_with('-')
    }

    async fn say(&self, chat: &str, _key: &str, text: &str) -> Option<String> {
        let person = self.person(chat);
        if chat.starts_with('-') {
            person.says(&format!("@{} {text}", self.double.bot().username));
        } else {
            person.says(text);
        }
        None
    }

    async fn fail(&self, random: &mut StdRng) -> &'static str {
        let method = one_of(random, &["sendMessage", "sendMessage", "editMessageText", "setMessageReaction"]);
        let times = one_of(random, &[1, 2, 3]);
        let (fault, what) = match one_of(random, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
            0 => (Fault::too_many(one_of(random, &[1, 2, 3])).on(method).times(times), "429"),
            1 => {
                self.double.close_bot(Duration::from_secs(one_of(random, &[1, 3])));
                return "429 for the whole account";
            }
            2 => (Fault::error_before(one_of(random, &[500, 502])).on(method).forever(), "5xx, not executed"),
            3 => (Fault::error_after(one_of(random, &[500, 502])).on(method).times(times), "5xx, executed"),
            4 => (Fault::lost_answer().on(method).times(times), "lost response"),
            5 => (Fault::reset().on(method).times(times), "reset connection"),
            6 => (Fault::stall().on(method).forever(), "hang"),
            7 => (Fault::slow_answer(Duration::from_secs(2)).on(method).forever(), "slow response"),
            8 => (Fault::error_before(502).on("getUpdates").forever(), "no updates"),
            // Only answers: where every way of answering is refused, the promise is a dead letter. And no copies:
            // nothing follows an answer that may have been seen, so the promise is a dead letter there as well.
            9 => {
                let refuse = Fault::refuse(ApiError::bad_request("MESSAGE_TOO_LONG")).on("sendMessage");
                (refuse.saying(words::END).not_saying(words::LABEL).times(1), "refused answer")
            }
            _ => {
                self.double.start_outage(one_of(random, &[Outage::Refuse, Outage::Unavailable]));
                return "outage";
            }
        };
        self.double.fault(fault);
        what
    }

    async fn heal(&self) {
        self.double.clear_faults();
        self.double.end_outage();
    }

    fn unacknowledged(&self) -> usize {
        self.double.inspect(|view| view.pending_updates())
    }

    fn is_send(&self, line: &str) -> bool {
        let line = line.to_ascii_lowercase();
        ["/sendmessage", "/editmessagetext", "/setmessagereaction"].iter().any(|method| line.contains(method))
    }

    async fn seen(&self, chat: &str) -> Vec<Seen> {
        let seen = self.person(chat).sees().into_iter().filter_map(|message| {
            if message.ours {
                return Some(Seen::Text(message.text));
            }
            (!message.our_reactions.is_empty()).then_some(Seen::Reaction { to: message.text })
        });
        seen.collect()
    }
}
