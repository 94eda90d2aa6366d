//! Reads the text of a message: mentions by name instead of by number
//! (<https://discord.com/developers/docs/reference#message-formatting>).

use super::Reader;
use crate::{payload::User, snowflake::Snowflake};

/// The content of `<…>`.
enum Markup<'a> {
    User(Snowflake),
    Role(Snowflake),
    Channel(Snowflake),
    Emoji(&'a str),
    Command(&'a str),
}

impl<'a> Markup<'a> {
    fn parse(inner: &'a str) -> Option<Self> {
        if let Some(emoji) = inner.strip_prefix("a:").or_else(|| inner.strip_prefix(':')) {
            let (name, id) = emoji.split_once(':')?;
            return Snowflake::parse(id).map(|_| Self::Emoji(name));
        }
        if let Some(command) = inner.strip_prefix('/') {
            let (name, id) = command.split_once(':')?;
            return Snowflake::parse(id).map(|_| Self::Command(name));
        }
        if let Some(role) = inner.strip_prefix("@&") {
            return Snowflake::parse(role).map(Self::Role);
        }
        if let Some(user) = inner.strip_prefix("@!").or_else(|| inner.strip_prefix('@')) {
            return Snowflake::parse(user).map(Self::User);
        }
        Snowflake::parse(inner.strip_prefix('#')?).map(Self::Channel)
    }
}

impl Reader<'_> {
    /// Whether the text itself mentions us.
    pub(super) fn mentions_us(&self, content: &str) -> bool {
        let us = self.me.user;
        content.contains(&format!("<@{us}>")) || content.contains(&format!("<@!{us}>"))
    }

    /// The text without a leading mention of us, and with names in place of ids.
    pub(super) fn plain_text(&self, content: &str, mentions: &[User]) -> String {
        let us = self.me.user;
        let trimmed = content.trim();
        let bare = [format!("<@{us}>"), format!("<@!{us}>")]
            .iter()
            .find_map(|mention| trimmed.strip_prefix(mention.as_str()))
            .map_or(trimmed, |rest| rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ':')));
        // A mention alone is kept as the text.
        let trimmed = if bare.is_empty() { trimmed } else { bare };
        let mut plain = String::with_capacity(trimmed.len());
        let mut rest = trimmed;
        while let Some(start) = rest.find('<') {
            let (before, markup) = rest.split_at(start);
            plain.push_str(before);
            // None has a `<` inside.
            let end = markup[1..].find(['<', '>']).filter(|end| markup.as_bytes()[*end + 1] == b'>');
            let inner = end.map(|end| (&markup[1..=end], &markup[end + 2..]));
            let named = inner.and_then(|(inner, after)| Some((self.name(&Markup::parse(inner)?, mentions)?, after)));
            if let Some((name, after)) = named {
                plain.push_str(&name);
                rest = after;
            } else {
                plain.push('<');
                rest = &markup[1..];
            }
        }
        plain.push_str(rest);
        plain
    }

    /// What a person sees in its place; `None` if the name is unknown.
    fn name(&self, markup: &Markup<'_>, mentions: &[User]) -> Option<String> {
        match markup {
            Markup::User(id) => {
                let user = mentions.iter().find(|user| user.id == *id)?;
                Some(format!("@{}", user.global_name.as_deref().unwrap_or(&user.username)))
            }
            Markup::Role(id) => self.directory.role_name(*id).map(|name| format!("@{name}")),
            Markup::Channel(id) => self.directory.channel_name(*id).map(|name| format!("#{name}")),
            Markup::Emoji(name) => Some(format!(":{name}:")),
            Markup::Command(name) => Some(format!("/{name}")),
        }
    }
}
