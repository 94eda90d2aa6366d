//! Reads a text with its entities: whether it is directed at us, and its Markdown.
//!
//! The Markdown keeps what an agent needs, which is link targets and code. Bold and similar styles are dropped.

use std::ops::Range;

use crate::{check::BotProfile, payload::Entity};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReadText {
    /// Markdown; `None` if the text is blank.
    pub(super) text: Option<String>,
    /// It begins with a command that names us or no bot.
    pub(super) is_command: bool,
    /// It begins with a command that names another bot.
    pub(super) is_anothers_command: bool,
    pub(super) mentions_us: bool,
}

pub(super) fn read_text(text: &str, entities: &[Entity], me: &BotProfile) -> ReadText {
    let offsets = offsets(text);
    let mut read = ReadText::default();
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    for entity in entities {
        let Some(range) = range(&offsets, entity) else { continue };
        let covered = &text[range.clone()];
        let change = match entity.kind.as_str() {
            "bot_command" if text[..range.start].trim().is_empty() => {
                let (command, bot) = covered.split_once('@').map_or((covered, None), |(it, bot)| (it, Some(bot)));
                match bot {
                    Some(bot) if !me.is_called(bot) => {
                        read.is_anothers_command = true;
                        None
                    }
                    _ => {
                        read.is_command = true;
                        bot.map(|_| command.to_owned())
                    }
                }
            }
            "bot_command" => {
                read.mentions_us |= covered.split_once('@').is_some_and(|(_, bot)| me.is_called(bot));
                None
            }
            "mention" if me.is_called(covered.trim_start_matches('@')) => {
                read.mentions_us = true;
                None
            }
            "text_mention" if entity.user.as_ref().is_some_and(|user| user.id == me.id) => {
                read.mentions_us = true;
                None
            }
            "text_link" => entity.url.as_deref().filter(|url| *url != covered).map(|url| link(covered, url)),
            "code" => Some(code(covered)),
            "pre" => Some(block(text, &range, entity.language.as_deref().unwrap_or_default())),
            _ => None,
        };
        if let Some(change) = change {
            changes.push((range, change));
        }
    }
    let start = if read.mentions_us { after_mention(text, entities, &offsets, me) } else { 0 };
    let written = with_changes(text, start, changes);
    let written = written.trim();
    // A mention alone is kept as the text.
    let trimmed = if written.is_empty() { text.trim() } else { written };
    // `@us /stop` is `/stop`.
    read.is_command |= start > 0 && trimmed.starts_with('/');
    read.text = (!trimmed.is_empty()).then(|| trimmed.to_owned());
    read
}

/// The byte offset of each UTF-16 unit and of the end; `None` for the second unit of a surrogate pair.
fn offsets(text: &str) -> Vec<Option<usize>> {
    let mut offsets = Vec::with_capacity(text.len() + 1);
    for (at, c) in text.char_indices() {
        offsets.push(Some(at));
        if c.len_utf16() == 2 {
            offsets.push(None);
        }
    }
    offsets.push(Some(text.len()));
    offsets
}

/// The byte range that an entity covers; `None` if it is not a valid part of the text.
fn range(offsets: &[Option<usize>], entity: &Entity) -> Option<Range<usize>> {
    let at = |unit: usize| offsets.get(unit).copied().flatten();
    let range = at(entity.offset)?..at(entity.offset.checked_add(entity.length)?)?;
    (!range.is_empty()).then_some(range)
}

/// The byte offset after a leading mention of us; 0 if there is none.
fn after_mention(text: &str, entities: &[Entity], offsets: &[Option<usize>], me: &BotProfile) -> usize {
    let is_us = |entity: &Entity, covered: &str| match entity.kind.as_str() {
        "mention" => me.is_called(covered.trim_start_matches('@')),
        "text_mention" => entity.user.as_ref().is_some_and(|user| user.id == me.id),
        _ => false,
    };
    let mentions = entities.iter().filter_map(|entity| {
        let range = range(offsets, entity)?;
        is_us(entity, &text[range.clone()]).then_some(range)
    });
    let first = mentions.into_iter().find(|range| text[..range.start].trim().is_empty());
    first.map_or(0, |range| {
        let rest = &text[range.end..];
        let unmentioned = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ':'));
        range.end + (rest.len() - unmentioned.len())
    })
}

fn with_changes(text: &str, start: usize, mut changes: Vec<(Range<usize>, String)>) -> String {
    changes.sort_by_key(|(range, _)| range.start);
    let mut written = String::with_capacity(text.len());
    let mut at = start;
    for (range, change) in changes {
        // Of nested changes, only the outer one applies.
        if range.start >= at {
            written.push_str(&text[at..range.start]);
            written.push_str(&change);
            at = range.end;
        }
    }
    written.push_str(&text[at..]);
    written
}

fn link(covered: &str, url: &str) -> String {
    format!("[{}]({url})", covered.replace('[', "\\[").replace(']', "\\]"))
}

fn code(covered: &str) -> String {
    let fence = fence(covered, 1);
    let gap = if covered.starts_with('`') || covered.ends_with('`') { " " } else { "" };
    format!("{fence}{gap}{covered}{gap}{fence}")
}

fn block(text: &str, range: &Range<usize>, language: &str) -> String {
    let covered = &text[range.clone()];
    let fence = fence(covered, 3);
    let before = if text[..range.start].is_empty() || text[..range.start].ends_with('\n') { "" } else { "\n" };
    let end = if covered.ends_with('\n') { "" } else { "\n" };
    let after = if text[range.end..].is_empty() || text[range.end..].starts_with('\n') { "" } else { "\n" };
    format!("{before}{fence}{language}\n{covered}{end}{fence}{after}")
}

/// A fence of at least `least` backticks, longer than any run of backticks in the text.
fn fence(covered: &str, least: usize) -> String {
    let longest = covered.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(if longest >= least { longest + 1 } else { least })
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};
    use rejoinder_core::conformance::growth::assert_linear;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn me() -> BotProfile {
        BotProfile { id: 7, username: "our_bot".to_owned(), ..BotProfile::default() }
    }

    fn read(text: &str, entities: &Value) -> ReadText {
        let entities: Vec<Entity> = serde_json::from_value(entities.clone()).expect("entities");
        read_text(text, &entities, &me())
    }

    fn text(text: &str, entities: &Value) -> String {
        read(text, entities).text.unwrap_or_default()
    }

    #[rstest]
    #[case("@our_bot what is this?", 0, "what is this?")]
    #[case("@OUR_bot, what?", 0, "what?")]
    #[case("what is this, @our_bot?", 14, "what is this, @our_bot?")]
    #[case("@our_bot", 0, "@our_bot")]
    fn a_mention_at_the_start_is_no_part_of_the_words(#[case] said: &str, #[case] at: usize, #[case] words: &str) {
        let read = read(said, &json!([{"type": "mention", "offset": at, "length": 8}]));

        assert!(read.mentions_us);
        assert_eq!(read.text.as_deref(), Some(words));
    }

    #[test]
    fn a_mention_of_another_one_is_none() {
        assert!(!read("@our_bots hello", &json!([{"type": "mention", "offset": 0, "length": 9}])).mentions_us);
        assert!(!read("write to @our_bot", &json!([])).mentions_us);
    }

    #[test]
    fn we_are_mentioned_by_our_number_as_well() {
        let entity = |id: i64| json!([{"type": "text_mention", "offset": 0, "length": 3, "user": {"id": id}}]);

        assert!(read("Bot hello", &entity(7)).mentions_us);
        assert_eq!(text("Bot hello", &entity(7)), "hello");
        assert!(!read("Bot hello", &entity(8)).mentions_us);
    }

    #[rstest]
    #[case("/stop", 5, true, false, "/stop")]
    #[case("/stop@our_bot", 13, true, false, "/stop")]
    #[case("/say@Our_Bot it", 12, true, false, "/say it")]
    #[case("/stop@another", 13, false, true, "/stop@another")]
    fn a_command_is_for_whom_it_names(
        #[case] said: &str,
        #[case] length: usize,
        #[case] is_ours: bool,
        #[case] is_anothers: bool,
        #[case] words: &str,
    ) {
        let read = read(said, &json!([{"type": "bot_command", "offset": 0, "length": length}]));

        assert_eq!((read.is_command, read.is_anothers_command), (is_ours, is_anothers));
        assert_eq!(read.text.as_deref(), Some(words));
    }

    #[test]
    fn a_command_after_our_name_is_ours() {
        let said = read(
            "@our_bot /stop",
            &json!([{"type": "mention", "offset": 0, "length": 8}, {"type": "bot_command", "offset": 9, "length": 5}]),
        );

        assert!(said.is_command);
        assert_eq!(said.text.as_deref(), Some("/stop"));
    }

    #[test]
    fn a_command_inside_a_text_is_none() {
        assert!(!read("say /stop", &json!([{"type": "bot_command", "offset": 4, "length": 5}])).is_command);
    }

    #[test]
    fn links_and_code_are_markdown() {
        assert_eq!(
            text(
                "🎉 see here",
                &json!([{"type": "text_link", "offset": 7, "length": 4, "url": "https://example.org/a"}])
            ),
            "🎉 see [here](https://example.org/a)"
        );
        assert_eq!(text("run ls -l now", &json!([{"type": "code", "offset": 4, "length": 5}])), "run `ls -l` now");
        assert_eq!(text("a`b", &json!([{"type": "code", "offset": 0, "length": 3}])), "``a`b``");
        assert_eq!(
            text("Look: fn main() {} ok", &json!([{"type": "pre", "offset": 6, "length": 12, "language": "rust"}])),
            "Look: \n```rust\nfn main() {}\n```\n ok"
        );
    }

    /// E4.
    #[rstest]
    #[case(json!([{"type": "text_link", "offset": 1, "length": 1, "url": "https://example.org"}]))]
    #[case(json!([{"type": "code", "offset": 40, "length": 5}]))]
    #[case(json!([{"type": "code", "offset": 0, "length": usize::MAX}]))]
    #[case(json!([{"type": "of_another_year", "offset": 0, "length": 2}]))]
    fn entities_that_make_no_sense_are_let_pass(#[case] entities: Value) {
        assert_eq!(text("🎉 yes", &entities), "🎉 yes");
    }

    const KINDS: [&str; 8] =
        ["mention", "text_mention", "bot_command", "text_link", "code", "pre", "bold", "of_another_year"];

    proptest! {
        /// E4.
        #[test]
        fn any_text_with_any_entities_is_read(
            said in "[@/`\\[\\]a 🎉\\n]{0,30}|\\PC{0,30}",
            entities in vec((select(&KINDS), 0..40_usize, 0..40_usize), 0..12),
        ) {
            let entity = |(kind, offset, length): &(&str, usize, usize)| {
                json!({"type": kind, "offset": offset, "length": length, "url": "https://a.test", "user": {"id": 7}})
            };
            let entities: Value = entities.iter().map(entity).collect();
            let read = read(&said, &entities);
            prop_assert!(read.text.is_some() || said.trim().is_empty());
        }
    }

    #[test]
    fn a_long_text_costs_what_its_length_asks_for() {
        assert_linear(&["🎉", "@our_bot ", "`", "[", " ", "a"], |said| {
            let length = said.encode_utf16().count();
            let each = |kind: &'static str| {
                let step = (length / 100).max(1);
                let entity =
                    move |at| json!({"type": kind, "offset": at * step, "length": step, "url": "https://a.test"});
                (0..100).map(entity)
            };
            let entities: Value = KINDS.into_iter().flat_map(each).collect();
            drop(read(said, &entities));
            let all = json!([{"type": "pre", "offset": 0, "length": length}]);
            drop(read(said, &all));
        });
    }
}
