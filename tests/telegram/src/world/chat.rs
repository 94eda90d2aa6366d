//! Chats, and the bot's membership in them.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::Instant,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::message::Message;
use crate::{error::ApiError, limits::Spent, view::Draft};

/// The kind of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatKind {
    /// Between a person and the bot.
    Private,
    /// A basic group, which may be upgraded to a supergroup.
    Group,
    Supergroup,
    /// A supergroup with topics.
    Forum,
    /// A channel; the bot is an administrator by default.
    Channel,
}

impl ChatKind {
    /// The name in the Bot API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Group => "group",
            Self::Supergroup | Self::Forum => "supergroup",
            Self::Channel => "channel",
        }
    }

    /// A group of any kind.
    pub(crate) fn is_group(self) -> bool {
        matches!(self, Self::Group | Self::Supergroup | Self::Forum)
    }
}

/// The bot's membership in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Membership {
    /// May write, and gets the messages that privacy mode lets through.
    Member,
    /// May write and delete, and gets all messages.
    Administrator,
    /// Kicked; blocked in a private chat.
    Kicked,
    /// Left by itself.
    Left,
    /// A private chat that the person has not opened.
    NotStarted,
}

/// A chat action.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(crate) action: String,
    pub(crate) thread: Option<i64>,
    pub(crate) at: Instant,
    /// Whether the bot has sent a message since.
    pub(crate) ended: bool,
}

#[derive(Debug)]
pub(crate) struct Chat {
    pub(crate) id: i64,
    pub(crate) kind: ChatKind,
    /// The title, or the person's name.
    pub(crate) title: String,
    pub(crate) username: Option<String>,
    pub(crate) membership: Membership,
    pub(crate) messages: BTreeMap<i64, Message>,
    pub(crate) last_message: i64,
    /// Names by thread id.
    pub(crate) topics: BTreeMap<i64, String>,
    /// If set, only these emoji are allowed.
    pub(crate) available_reactions: Option<Vec<String>>,
    pub(crate) migrated_to: Option<i64>,
    /// The drafts that are shown now, by thread.
    pub(crate) drafts: HashMap<Option<i64>, Draft>,
    /// The last states of all drafts.
    pub(crate) past_drafts: VecDeque<Draft>,
    pub(crate) notices: VecDeque<Notice>,
    pub(crate) spent: Spent,
    /// Notified of each change.
    pub(crate) changed: Arc<Notify>,
}

/// How many drafts and chat actions each chat remembers.
const REMEMBERED: usize = 200;

impl Chat {
    pub(crate) fn new(id: i64, kind: ChatKind, title: &str, username: Option<&str>) -> Self {
        Self {
            id,
            kind,
            title: title.to_owned(),
            username: username.map(str::to_owned),
            membership: if kind == ChatKind::Channel { Membership::Administrator } else { Membership::Member },
            messages: BTreeMap::new(),
            last_message: 0,
            topics: BTreeMap::new(),
            available_reactions: None,
            migrated_to: None,
            drafts: HashMap::new(),
            past_drafts: VecDeque::new(),
            notices: VecDeque::new(),
            spent: Spent::default(),
            changed: Arc::default(),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut chat = Map::new();
        chat.insert("id".to_owned(), self.id.into());
        let name = if self.kind == ChatKind::Private { "first_name" } else { "title" };
        chat.insert(name.to_owned(), self.title.clone().into());
        if let Some(username) = &self.username {
            chat.insert("username".to_owned(), username.clone().into());
        }
        chat.insert("type".to_owned(), self.kind.name().into());
        if self.kind == ChatKind::Forum {
            chat.insert("is_forum".to_owned(), true.into());
        }
        Value::Object(chat)
    }

    /// The result of `getChat`.
    pub(crate) fn full_info(&self) -> Value {
        let mut chat = self.to_json();
        let reactions = self
            .available_reactions
            .as_ref()
            .map(|emoji| emoji.iter().map(|emoji| json!({ "type": "emoji", "emoji": emoji })).collect::<Vec<_>>());
        if let Value::Object(chat) = &mut chat {
            chat.insert("accent_color_id".to_owned(), 0.into());
            chat.insert("max_reaction_count".to_owned(), 11.into());
            let gifts = json!({
                "unlimited_gifts": false, "limited_gifts": false, "unique_gifts": false,
                "premium_subscription": false, "gifts_from_channels": false,
            });
            chat.insert("accepted_gift_types".to_owned(), gifts);
            if let Some(reactions) = reactions {
                chat.insert("available_reactions".to_owned(), reactions.into());
            }
            if let Some(username) = &self.username {
                chat.insert("active_usernames".to_owned(), json!([username]));
            }
        }
        chat
    }

    /// Checks that the bot may write here.
    ///
    /// # Errors
    /// The server's error, 403 or 400.
    pub(crate) fn writable(&self) -> Result<(), ApiError> {
        if let Some(to) = self.migrated_to {
            return Err(ApiError::migrated(to));
        }
        let kind = self.kind.name();
        match (self.membership, self.kind) {
            (Membership::Member, ChatKind::Channel) => {
                Err(ApiError::bad_request("need administrator rights in the channel chat"))
            }
            (Membership::Member | Membership::Administrator, _) => Ok(()),
            (Membership::NotStarted, _) => Err(ApiError::forbidden("bot can't initiate conversation with a user")),
            (_, ChatKind::Private) => Err(ApiError::forbidden("bot was blocked by the user")),
            (Membership::Kicked, _) => Err(ApiError::forbidden(format!("bot was kicked from the {kind} chat"))),
            (Membership::Left, _) => Err(ApiError::forbidden(format!("bot is not a member of the {kind} chat"))),
        }
    }

    /// Checks that a message may be sent to this thread.
    ///
    /// # Errors
    /// 400 if there is no such thread.
    pub(crate) fn check_thread(&self, thread: Option<i64>) -> Result<(), ApiError> {
        let Some(thread) = thread else { return Ok(()) };
        let is_comment_thread = self.kind == ChatKind::Supergroup && self.messages.contains_key(&thread);
        if self.topics.contains_key(&thread) || is_comment_thread {
            return Ok(());
        }
        Err(ApiError::bad_request("message thread not found"))
    }

    pub(crate) fn remember_draft(&mut self, draft: Draft) {
        if self.past_drafts.len() == REMEMBERED {
            self.past_drafts.pop_front();
        }
        self.past_drafts.push_back(draft.clone());
        self.drafts.insert(draft.thread, draft);
    }

    pub(crate) fn remember_notice(&mut self, action: &str, thread: Option<i64>) {
        if self.notices.len() == REMEMBERED {
            self.notices.pop_front();
        }
        self.notices.push_back(Notice { action: action.to_owned(), thread, at: Instant::now(), ended: false });
    }

    /// Removes the draft and the chat action that a message of the bot replaces.
    pub(crate) fn bot_wrote(&mut self, thread: Option<i64>) {
        self.drafts.remove(&thread);
        let shown = self.notices.iter_mut().rev().take_while(|notice| !notice.ended);
        shown.filter(|notice| notice.thread == thread).for_each(|notice| notice.ended = true);
    }
}
