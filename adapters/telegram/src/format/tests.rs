use proptest::prelude::*;
use rejoinder_core::conformance::markdown::{PIECES, SEEN, sample};
use teloxide::types::{MessageEntity, MessageEntityKind};

use super::{
    CAPTION_UNITS, LABEL_UNITS, MESSAGE_UNITS, PART_UNITS, caption, fits_caption, format, parts, plain, utf16_len,
};

/// The text that an entity covers; `None` if it starts or ends inside a character.
fn covered(text: &str, entity: &MessageEntity) -> Option<String> {
    let units: Vec<u16> = text.encode_utf16().collect();
    String::from_utf16(units.get(entity.offset..entity.offset + entity.length)?).ok()
}

/// The text, and each entity's kind and covered text.
fn shown(markdown: &str) -> (String, Vec<(MessageEntityKind, String)>) {
    let formatted = format(markdown);
    let entities = formatted
        .entities
        .iter()
        .map(|entity| (entity.kind.clone(), covered(&formatted.text, entity).expect("an entity inside the text")))
        .collect();
    (formatted.text, entities)
}

fn bold(text: &str) -> (MessageEntityKind, String) {
    (MessageEntityKind::Bold, text.to_owned())
}

fn italic(text: &str) -> (MessageEntityKind, String) {
    (MessageEntityKind::Italic, text.to_owned())
}

fn code(text: &str) -> (MessageEntityKind, String) {
    (MessageEntityKind::Code, text.to_owned())
}

fn pre(language: Option<&str>, text: &str) -> (MessageEntityKind, String) {
    (MessageEntityKind::Pre { language: language.map(str::to_owned) }, text.to_owned())
}

fn link(url: &str, text: &str) -> (MessageEntityKind, String) {
    (MessageEntityKind::TextLink { url: url.parse().expect("a URL") }, text.to_owned())
}

/// A7.
#[test]
fn what_shows_something_is_shown() {
    for (markdown, words) in SEEN {
        assert!(plain(markdown).contains(words), "{markdown:?}: {:?}", plain(markdown));
    }
}

#[test]
fn emphasis_becomes_entities() {
    let (text, entities) = shown("🎉 **bold _both_** ~~gone~~ `code`");

    assert_eq!(text, "🎉 bold both gone code");
    assert_eq!(
        entities,
        [bold("bold both"), italic("both"), (MessageEntityKind::Strikethrough, "gone".into()), code("code")]
    );
}

#[test]
fn code_stands_in_no_other_style() {
    assert_eq!(shown("**a `b` c**"), ("a b c".into(), vec![bold("a"), code("b"), bold("c")]));
    assert_eq!(shown("[see `b`](https://example.org)").1, [link("https://example.org", "see b")]);
}

#[test]
fn a_heading_is_bold() {
    assert_eq!(shown("# One **two**\ntext"), ("One two\n\ntext".into(), vec![bold("One two")]));
}

/// K6.
#[test]
fn a_fence_becomes_a_block_of_its_language() {
    let (text, entities) = shown("Look:\n\n```rust,ignore\n  let x = 1;\n\n  x\n```\nDone");

    assert_eq!(text, "Look:\n\n  let x = 1;\n\n  x\n\nDone");
    assert_eq!(entities, [pre(Some("rust"), "  let x = 1;\n\n  x")]);
}

#[test]
fn a_leading_code_block_keeps_its_indentation() {
    assert_eq!(shown("```\n  x\n```"), ("  x".into(), vec![pre(None, "  x")]));
}

#[test]
fn links_of_known_schemes_are_links_and_others_are_written_out() {
    let shown_link = ("a (example.org)".into(), vec![link("https://example.org/b", "a")]);
    assert_eq!(shown("[a](https://example.org/b)"), shown_link);
    let host = shown("[example.org](https://example.org/b)");
    assert_eq!(host, ("example.org".into(), vec![link("https://example.org/b", "example.org")]));
    assert_eq!(shown("[a](javascript:alert)"), ("a (javascript:alert)".into(), vec![]));
    assert_eq!(shown("[write](mailto:a@example.org)"), ("write (a@example.org)".into(), vec![]));
    assert_eq!(
        shown("<https://example.org> and https://example.org"),
        ("https://example.org and https://example.org".into(), vec![])
    );
    assert_eq!(shown("[](https://example.org)"), ("https://example.org".into(), vec![]));
}

/// A link to `tg://user?id=…` notifies that person, in any group.
#[test]
fn no_link_leads_into_telegram() {
    assert_eq!(shown("[a](tg://user?id=42)"), ("a (user?id=42)".into(), vec![]));
    assert_eq!(shown("| a |\n|---|\n| [b](tg:user?id=42) |").0, "a\n--------------\nb (user?id=42)");
}

#[test]
fn a_picture_is_a_link_with_its_words() {
    assert_eq!(shown("![a cat](https://example.org/c.png)").1, [link("https://example.org/c.png", "a cat")]);
    assert_eq!(shown("![](https://example.org/c.png)").0, "https://example.org/c.png");
    let badge = shown("[![build](https://example.org/b.svg)](https://example.org)");
    assert_eq!(badge, ("build (example.org)".into(), vec![link("https://example.org", "build")]));
}

#[test]
fn lists_keep_their_nesting_and_numbers() {
    let text = plain("3. three\n4. four\n   - a\n   - b\n     more\n\nend\n\n- [ ] open\n- [x] done");

    assert_eq!(text, "3. three\n4. four\n   • a\n   • b\n     more\n\nend\n\n☐ open\n☑ done");
}

#[test]
fn code_in_a_list_stands_at_the_margin() {
    assert_eq!(shown("- a\n  ```\n  b\n  ```\n- c"), ("• a\nb\n• c".into(), vec![pre(None, "b")]));
    assert_eq!(plain("- ```\n  b\n  ```"), "•\u{20}\nb");
}

#[test]
fn a_quote_in_a_quote_has_its_mark() {
    let (text, entities) = shown("before\n\n> - one\n> \n> > two\n\nafter");

    assert_eq!(text, "before\n\n• one\n\n> two\n\nafter");
    assert_eq!(entities, [(MessageEntityKind::Blockquote, "• one\n\n> two".into())]);
}

#[test]
fn a_narrow_table_is_aligned() {
    let (text, entities) = shown("| Name | Price |\n|:--|--:|\n| Tea | 2 |\n| 咖啡 | 13 |");

    assert_eq!(text, "Name | Price\n-----+------\nTea  |     2\n咖啡 |    13");
    assert_eq!(entities, [pre(None, &text)]);
}

#[test]
fn a_wide_table_becomes_lines_with_keys() {
    let long = "a value that takes the room of a whole line";
    let (text, entities) = shown(&format!("| Key | Value |\n|--|--|\n| one | {long} |\n| two | |"));

    assert_eq!(text, format!("Key: one\nValue: {long}\n\nKey: two"));
    assert_eq!(entities, [bold("Key"), bold("Value"), bold("Key")]);
}

#[test]
fn a_link_in_a_table_keeps_its_address() {
    assert!(plain("| a |\n|---|\n| [b](https://example.org) |").contains("b (https://example.org)"));
}

#[test]
fn what_telegram_does_not_know_is_written_out() {
    assert_eq!(
        plain("a <b>x</b>\n\n<div>\ny\n</div>\n\n---\n\nz[^1]"),
        "a <b>x</b>\n\n<div>\ny\n</div>\n\n──────────\n\nz[^1]"
    );
    assert_eq!(plain("[a]: https://example.org"), "[a]: https://example.org");
    assert_eq!(plain(" \n "), "");
}

/// K7.
#[test]
fn parts_leave_room_for_a_label() {
    assert_eq!(PART_UNITS + LABEL_UNITS, MESSAGE_UNITS);
    let parts = parts(&"🎉".repeat(5000));

    assert_eq!(parts.iter().map(|part| utf16_len(part)).collect::<Vec<_>>(), [4000, 4000, 2000]);
}

/// K7.
#[test]
fn a_caption_leaves_room_for_a_label_and_is_never_too_long() {
    assert!(fits_caption(&"🎉".repeat(464)) && !fits_caption(&"🎉".repeat(465)));
    assert_eq!(CAPTION_UNITS - LABEL_UNITS, 928);
    assert!(fits_caption(&format!("[a]({})", "https://example.org/".repeat(60))), "mark-up is not counted");

    let long = caption(&format!("**{}end**", "word ".repeat(300)));

    assert!(long.text.starts_with("word") && utf16_len(&long.text) <= CAPTION_UNITS);
    assert!(!long.entities.is_empty());
}

/// K6.
#[test]
fn every_part_of_a_long_listing_is_code() {
    let markdown = format!("Look:\n\n```rust\n{}```\n", "    let x = 1;\n".repeat(800));
    let parts = parts(&markdown);

    assert!(parts.len() > 2);
    for part in &parts {
        let (_, entities) = shown(part);
        assert!(matches!(&entities[..], [(MessageEntityKind::Pre { language: Some(rust) }, _)] if rust == "rust"));
    }
}

/// K7.
#[test]
fn a_huge_text_is_split_in_linear_time() {
    for unit in ["x", "word ", "**b** ", "| a | b |\n|---|---|\n", "> ", "[", "\\"] {
        let markdown = unit.repeat(200_000 / unit.len());
        assert!(parts(&markdown).iter().all(|part| utf16_len(&plain(part)) <= PART_UNITS), "{unit:?}");
    }
}

/// Markdown as agents write it, and malformed Markdown; up to a few thousand characters.
fn markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zé你🎉 .!]{1,60}",
        2 => "\\PC{1,40}",
        3 => prop::sample::select(vec![
            "\n", "\n\n", "\n- ", "\n  - ", "\n1. ", "\n- [x] ", "\n> ", "> > ", "\n# ", "**", "_", "~~", "`", "``", "***",
            "\n---\n", "\n===\n", "[", "](https://example.org)", "](x:y)", "![", "\n| a | b |\n|---|--:|\n| c | d |\n", "| e |\n",
            "\n    ", "\t", "\\", "&amp;", "&nbsp;", "<b>", "\n<div>\n", "\r\n", "\u{301}", "👨‍👩‍👧‍👦", "\n\n```\n", "\n```rust\n", "\n~~~\n",
            "\n  ```\n", "\n- ```\n", "\n> ```\n", "\n[a]: b\n", "<https://example.org>", "` a `", "\n> `  a  `\n",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Checks Telegram's rules for entities.
fn assert_valid(markdown: &str) -> Result<(), TestCaseError> {
    let formatted = format(markdown);
    let entities = &formatted.entities;
    for entity in entities {
        let covered = covered(&formatted.text, entity);
        prop_assert!(covered.is_some_and(|text| !text.trim().is_empty()), "{entity:?} in {:?}", formatted.text);
    }
    prop_assert!(entities.is_sorted_by_key(|entity| (entity.offset, std::cmp::Reverse(entity.length))));
    for (index, outer) in entities.iter().enumerate() {
        let end = outer.offset + outer.length;
        for inner in entities[index + 1..].iter().take_while(|inner| inner.offset < end) {
            prop_assert!(inner.offset + inner.length <= end, "{outer:?} and {inner:?} overlap");
            prop_assert_ne!(&inner.kind, &outer.kind);
            let code =
                |kind: &MessageEntityKind| matches!(kind, MessageEntityKind::Code | MessageEntityKind::Pre { .. });
            prop_assert!(!code(&outer.kind), "{inner:?} in {outer:?}");
            prop_assert!(!code(&inner.kind) || outer.kind == MessageEntityKind::Blockquote, "{inner:?} in {outer:?}");
        }
    }
    prop_assert_eq!(formatted.text.trim_end(), formatted.text.as_str());
    prop_assert_eq!(formatted.text.is_empty(), markdown.trim().is_empty());
    Ok(())
}

proptest! {
    /// Nothing that the agent said is lost.
    #[test]
    fn every_word_is_shown(pieces in prop::collection::vec(0..PIECES.len(), 0..400)) {
        let (markdown, words) = sample(&pieces);
        let shown = parts(&markdown).iter().map(|part| plain(part)).collect::<String>();
        for word in words {
            prop_assert!(shown.contains(&word), "{word} is missing of {markdown:?}: {shown}");
        }
    }

    #[test]
    fn entities_are_always_valid(markdown in markdown()) {
        assert_valid(&markdown)?;
    }

    /// K7.
    #[test]
    fn every_part_fits_and_is_valid(markdown in markdown(), copies in 1_usize..12) {
        for part in parts(&markdown.repeat(copies)) {
            prop_assert!(utf16_len(&plain(&part)) <= PART_UNITS);
            assert_valid(&part)?;
        }
    }

    /// K7.
    #[test]
    fn any_text_is_whole(text in "(\\PC|\n){0,200}", copies in 1_usize..60) {
        let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        // A fence's info string is repeated: none here.
        let text = text.repeat(copies).replace("```", "```\n").replace("~~~", "~~~\n");
        let parts = parts(&text);
        prop_assert!(parts.iter().all(|part| utf16_len(&plain(part)) <= PART_UNITS));
        prop_assert_eq!(letters(&parts.concat()), letters(&text));
    }
}
