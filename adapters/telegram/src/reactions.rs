//! Which emoji Telegram offers as reactions, and replacements for those that it does not.

use std::{collections::BTreeMap, sync::Arc};

/// The emoji that bots may react with (<https://core.telegram.org/bots/api#reactiontypeemoji>). A chat may
/// allow fewer.
pub(crate) const ALLOWED: &str = "\
    👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 \
    🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 \
    🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡";

/// Common emoji that are not [`ALLOWED`], by what replaces them.
const REPLACEMENTS: [(&str, &str); 14] = [
    ("👍", "✅ ☑ ✔"),
    ("👌", "🆗"),
    ("😁", "🙂 😊 😀 😃 😄"),
    ("🤣", "😂"),
    ("👏", "🙌"),
    ("🔥", "💪 🚀"),
    ("🎉", "✨ 🥳"),
    ("🏆", "⭐ 🌟"),
    ("🤔", "💡 ❓ ⚠"),
    ("⚡", "❗"),
    ("👎", "❌ 🚫 ⛔"),
    ("👀", "⏳ ⌛ 🔍"),
    ("✍", "📝"),
    ("🤝", "👋"),
];

pub(crate) fn is_allowed(emoji: &str) -> bool {
    let emoji = bare(emoji);
    ALLOWED.split(' ').any(|allowed| allowed == emoji)
}

fn replacements() -> impl Iterator<Item = (&'static str, &'static str)> {
    REPLACEMENTS.iter().flat_map(|(reaction, emoji)| emoji.split(' ').map(|emoji| (emoji, *reaction)))
}

/// Maps emoji to their replacements.
#[derive(Clone, Debug)]
pub(crate) struct Reactions {
    replacements: BTreeMap<String, String>,
    known: Arc<[String]>,
}

impl Reactions {
    /// The operator's choices take precedence over the built-in ones.
    pub(crate) fn new(chosen: &BTreeMap<String, String>) -> Self {
        let built_in = replacements().map(|(emoji, reaction)| (emoji.to_owned(), reaction.to_owned()));
        let chosen = chosen.iter().map(|(emoji, reaction)| (bare(emoji), bare(reaction)));
        let replacements: BTreeMap<_, _> = built_in.chain(chosen).collect();
        let mapped = replacements.keys().filter(|emoji| !is_allowed(emoji));
        let known = ALLOWED.split(' ').map(str::to_owned).chain(mapped.cloned()).collect();
        Self { replacements, known }
    }

    pub(crate) fn of(&self, emoji: &str) -> Option<String> {
        let emoji = bare(emoji);
        if let Some(reaction) = self.replacements.get(&emoji) {
            return Some(reaction.clone());
        }
        is_allowed(&emoji).then_some(emoji)
    }

    /// Every emoji that [`of`](Self::of) has a reaction for.
    pub(crate) fn known(&self) -> Arc<[String]> {
        Arc::clone(&self.known)
    }
}

/// Removes variation selectors and skin tones, which Telegram's list does not have.
fn bare(emoji: &str) -> String {
    emoji.trim().chars().filter(|c| !matches!(c, '\u{fe0e}' | '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emoji_becomes_one_that_telegram_has() {
        let reactions = Reactions::new(&BTreeMap::new());

        assert_eq!(reactions.of("👍").as_deref(), Some("👍"));
        assert_eq!(reactions.of("❤️").as_deref(), Some("❤"));
        assert_eq!(reactions.of("👍🏽").as_deref(), Some("👍"));
        assert_eq!(reactions.of("✅").as_deref(), Some("👍"));
        assert_eq!(reactions.of("⚠️").as_deref(), Some("🤔"));
        assert_eq!(reactions.of("🥦"), None);
    }

    #[test]
    fn what_the_operator_chose_goes_first() {
        let chosen = [("✅", "🎉"), ("🥦", "👍")].map(|(emoji, to)| (emoji.to_owned(), to.to_owned()));

        let reactions = Reactions::new(&BTreeMap::from(chosen));

        assert_eq!(reactions.of("✅").as_deref(), Some("🎉"));
        assert_eq!(reactions.of("🥦").as_deref(), Some("👍"));
    }

    #[test]
    fn everything_known_has_a_reaction() {
        let reactions = Reactions::new(&BTreeMap::new());

        assert!(replacements().all(|(emoji, to)| !is_allowed(emoji) && is_allowed(to)));
        assert!(reactions.known().iter().all(|emoji| reactions.of(emoji).is_some_and(|to| is_allowed(&to))));
    }
}
