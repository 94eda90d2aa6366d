//! People and other bots.

use serde_json::{Map, Value, json};

/// A person or a bot.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) id: i64,
    pub(crate) is_bot: bool,
    pub(crate) first_name: String,
    pub(crate) username: Option<String>,
}

impl User {
    pub(crate) fn to_json(&self) -> Value {
        let mut user = Map::new();
        user.insert("id".to_owned(), self.id.into());
        user.insert("is_bot".to_owned(), self.is_bot.into());
        user.insert("first_name".to_owned(), self.first_name.clone().into());
        if let Some(username) = &self.username {
            user.insert("username".to_owned(), username.clone().into());
        }
        if !self.is_bot {
            user.insert("language_code".to_owned(), "en".into());
        }
        Value::Object(user)
    }
}

/// The bot that the server's token belongs to.
#[derive(Debug, Clone)]
pub struct Bot {
    /// Also the first part of the token.
    pub id: i64,
    /// Without the `@`.
    pub username: String,
    /// The display name.
    pub name: String,
}

impl Bot {
    pub(crate) fn to_user(&self) -> User {
        User { id: self.id, is_bot: true, first_name: self.name.clone(), username: Some(self.username.clone()) }
    }

    /// The result of `getMe`.
    pub(crate) fn profile(&self, privacy: bool, topics: bool) -> Value {
        let mut profile = self.to_user().to_json();
        let more = json!({
            "can_join_groups": true,
            "can_read_all_group_messages": !privacy,
            "supports_guest_queries": false,
            "supports_inline_queries": false,
            "can_connect_to_business": false,
            "has_main_web_app": false,
            "has_topics_enabled": topics,
            "allows_users_to_create_topics": topics,
            "can_manage_bots": false,
            "supports_join_request_queries": false,
        });
        if let (Value::Object(profile), Value::Object(more)) = (&mut profile, more) {
            profile.extend(more);
        }
        profile
    }
}
