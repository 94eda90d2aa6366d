use proptest::prelude::*;

use super::split_markdown;
use crate::{
    base::verbatim::code_block,
    conformance::growth::{OPENERS, assert_linear},
    shows_anything,
};

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn split(text: &str, max: usize) -> Vec<String> {
    split_markdown(text, max, chars)
}

/// Text without its white space.
fn visible(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The letters and digits, in order: they are kept however the marks around them are read.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

fn words(count: usize) -> String {
    (0..count).map(|number| format!("word{number}")).collect::<Vec<_>>().join(" ")
}

/// Whether every fence of `part` is closed in it.
fn is_balanced(part: &str) -> bool {
    let open = part.lines().fold(None, |open: Option<&str>, line| {
        let content = line.trim_start_matches(['>', ' ']);
        match open {
            None if content.starts_with("```") || content.starts_with("~~~") => Some(&content[..3]),
            Some(marker) if content.trim_end() == marker => None,
            open => open,
        }
    });
    open.is_none()
}

/// K7.
#[test]
fn text_that_fits_is_left_alone() {
    assert_eq!(split("  a\r\n\n b  ", 32), ["  a\r\n\n b  "]);
    assert_eq!(split("", 32), [""]);
    let blank = " \n".repeat(100);
    assert_eq!(split(&blank, 32), [blank]);
}

#[test]
fn parts_end_between_blocks_where_they_can() {
    let text = format!("{}\n\n{}\n\n# Heading\n\n{}", words(4), words(4), words(6));

    assert_eq!(split(&text, 80), [format!("{0}\n\n{0}", words(4)), format!("# Heading\n\n{}", words(6))]);
}

#[test]
fn a_long_paragraph_is_cut_between_sentences() {
    let parts = split("The first sentence is here. The second one is longer. And a third follows.", 60);

    assert_eq!(parts, ["The first sentence is here. The second one is longer.", "And a third follows."]);
}

#[test]
fn a_cut_between_words_makes_no_list_or_heading() {
    let parts = split("What we pay for it is aaaaaaaaaa - 5 or # 7 or > 9 or 10. and so on.", 33);

    assert_eq!(
        visible(&parts.concat()),
        visible("What we pay for it is aaaaaaaaaa - 5 or # 7 or > 9 or 10. and so on.")
    );
    assert!(parts.iter().all(|part| !part.starts_with(['-', '#', '>', '1'])), "{parts:?}");
}

/// K6.
#[test]
fn a_cut_fence_is_closed_and_opened_again() {
    let text = format!("Look:\n\n~~~~rust title\n{}~~~~\n\ndone", "let x = 1;\n\n".repeat(8));
    let parts = split(&text, 64);

    assert!(parts.len() > 2);
    assert!(parts.iter().all(|part| part.matches("~~~~").count() % 2 == 0), "{parts:#?}");
    assert!(parts[1].starts_with("~~~~rust title\nlet x"), "{parts:#?}");
    assert_eq!(parts.concat().matches("let x = 1;").count(), 8);
}

/// K6.
#[test]
fn a_fence_that_never_ends_is_closed_in_every_part() {
    let parts = split(&format!("```\n{}", "code code\n".repeat(20)), 64);

    assert!(parts.iter().all(|part| is_balanced(part)), "{parts:#?}");
}

/// K6.
#[test]
fn a_fence_in_a_list_and_a_quote_keeps_its_lines() {
    let text = format!("> 1. step\n>\n>    ```sh\n{}>    ```\n>    more", ">    echo 1\n".repeat(12));
    let parts = split(&text, 80);

    assert_eq!(parts[1].lines().take(2).collect::<Vec<_>>(), ["> ```sh", "> echo 1"]);
    assert!(parts[0].ends_with(">    echo 1\n>    ```") || parts[0].ends_with("echo 1\n>    ```"), "{parts:#?}");
    assert_eq!(parts.concat().matches("echo 1").count(), 12);
    assert!(parts.last().is_some_and(|part| part.ends_with("> ```\n> more")), "{parts:#?}");
}

#[test]
fn a_nested_list_continues_at_the_margin() {
    let text = "- one is here\n  - two is here\n  - three is here\n    - four is here\n- five is here";
    let parts = split(text, 35);

    assert_eq!(parts, ["- one is here\n  - two is here", "- three is here\n  - four is here", "- five is here"]);
}

#[test]
fn a_cut_table_repeats_its_heading() {
    let text = format!("| a | b |\n|---|---|\n{}", "| one | two |\n".repeat(6));
    let parts = split(&text, 64);

    assert!(parts.len() > 1);
    assert!(parts.iter().all(|part| part.starts_with("| a | b |\n|---|---|\n| one | two |")), "{parts:#?}");
    assert_eq!(parts.concat().matches("| one | two |").count(), 6);
}

#[test]
fn links_and_inline_code_stay_whole() {
    let text = "Some words before it and [a link with words](https://example.org/a) and `some code here` after it all.";
    let parts = split(text, 48);

    assert!(parts.iter().any(|part| part.contains("[a link with words](https://example.org/a)")), "{parts:#?}");
    assert!(parts.iter().any(|part| part.contains("`some code here`")), "{parts:#?}");
}

#[test]
fn a_link_is_measured_by_what_is_shown_of_it() {
    let url = "u".repeat(500);
    let text = format!("{} [link](https://{url}) {}", words(5), words(5));
    let shown = |part: &str| chars(&part.replace(&format!("](https://{url})"), "]"));
    let parts = split_markdown(&text, 50, shown);

    assert_eq!(parts.len(), 2, "{parts:#?}");
    assert_eq!(parts.concat().matches(&url).count(), 1);
}

#[test]
fn cut_emphasis_is_closed_and_opened_again() {
    let parts = split(&format!("**{}**", words(12)), 40);

    assert!(parts.iter().all(|part| part.starts_with("**word") && part.ends_with("**")), "{parts:#?}");
    assert_eq!(visible(&parts.concat().replace("**", "")), visible(&words(12)));
}

#[test]
fn families_and_accents_stay_whole() {
    let family = "👨‍👩‍👧‍👦";
    assert!(split(&family.repeat(40), 32).iter().all(|part| part.replace(family, "").is_empty()));
    let accented = "e\u{301}";
    assert!(split(&accented.repeat(100), 33).iter().all(|part| part.starts_with('e')));
}

/// K7.
#[test]
fn a_character_longer_than_a_part_is_a_part() {
    let parts = split_markdown("abc", 32, |part| part.len() * 40);

    assert_eq!(parts, ["a", "b", "c"]);
}

#[test]
fn a_megabyte_without_spaces_takes_linear_time() {
    for unit in ["x", "é\u{301}", "🇩🇪", "`", "*", "[", "> ", "](", "&", "```\n", "|-|\n", "- \n", "\\"] {
        let text = unit.repeat(1_000_000 / unit.len());
        let parts = split_markdown(&text, 4000, str::len);

        assert!(parts.iter().all(|part| part.len() <= 4000), "{unit:?}");
    }
}

/// Markdown as agents write it, with odd combinations.
fn markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zé你🎉 .!]{1,30}",
        1 => "\\PC{1,12}",
        2 => prop::sample::select(vec![
            "\n", "\n\n", "\n- ", "\n  - ", "\n1. ", "\n> ", "> > ", "\n# ", "**", "_", "~~", "`", "``", "\n---\n", "\n===\n",
            "[", "](https://example.org)", "![", "\n| a | b |\n|---|---|\n| c | d |\n", "| e | f |\n", "\n    ", "\t", "\\", "&amp;",
            "<b>", "\r\n", "\u{301}", "👨‍👩‍👧‍👦", "\n\n```\n", "\n```\n", "\n~~~~\n", "\n  ```\n", "\n- ```\n", "\n> ```\n", "\n[a]: b\n",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

#[test]
fn a_long_text_costs_what_its_length_asks_for() {
    assert_linear(&OPENERS, |text| {
        drop(split(text, 2000));
        let _ = shows_anything(text);
    });
}

#[test]
fn what_looks_like_a_number_of_a_list_after_a_cut_is_text() {
    let words = "a".repeat(31);

    assert_eq!(split(&format!("{words} 15) b"), 32), [words.as_str(), "15\\) b"]);
    assert_eq!(split(&format!("{words} - b"), 32), [words.as_str(), "\\- b"]);
}

/// No part of what an approver reads shows anything outside its block.
#[test]
fn a_block_of_any_text_stays_one_in_every_part() {
    let block = code_block(&format!("{}\n{}\n# Approved\n{}", "`".repeat(2000), "```\n".repeat(300), "x".repeat(3000)));

    let fence = &block[..block.find('\n').expect("a line")];
    for part in split(&block, 300) {
        assert!(part.starts_with(fence) && part.ends_with(fence), "{part}");
        assert_eq!(part.matches(fence).count(), 2, "{part}");
    }
}

proptest! {
    /// K7.
    #[test]
    fn any_text_fits_and_is_whole(text in "(\\PC|[\n ]){0,600}", max in 32_usize..200) {
        // A fence's info string is repeated: none here.
        let text = text.replace("```", "```\n").replace("~~~", "~~~\n");
        for (max, measure) in [(max, chars as fn(&str) -> usize), (max, str::len), (max, |s| s.encode_utf16().count())] {
            let parts = split_markdown(&text, max, measure);
            prop_assert!(parts.iter().all(|part| measure(part) <= max), "{parts:#?}");
            prop_assert_eq!(letters(&parts.concat()), letters(&text));
        }
    }

    /// Plain text is unchanged.
    #[test]
    fn words_are_kept(text in "[a-z0-9é你,;:?. \n]{0,800}", max in 32_usize..120) {
        let parts = split(&text, max);
        prop_assert_eq!(visible(&parts.concat()).replace('\\', ""), visible(&text));
    }

    /// K6, K7.
    #[test]
    fn any_markdown_fits_and_keeps_its_letters(text in markdown(), max in 64_usize..300) {
        // Only a table's heading and a fence's info string are repeated: none here.
        let text = text.replace("|---", "|x").replace("```", "```\n").replace("~~~", "~~~\n");
        let parts = split(&text, max);
        prop_assert!(parts.iter().all(|part| chars(part) <= max), "{parts:#?}");
        prop_assert_eq!(letters(&parts.concat()), letters(&text));
    }

    /// Parts fit with tables as well.
    #[test]
    fn any_markdown_with_tables_fits(text in markdown(), max in 32_usize..300) {
        let parts = split(&text, max);
        prop_assert!(parts.iter().all(|part| chars(part) <= max), "{parts:#?}");
    }

    /// K6.
    #[test]
    fn fences_are_balanced_in_every_part(
        blocks in prop::collection::vec(("[a-z ]{0,80}", "[a-z \n]{0,200}", any::<bool>()), 1..6),
        max in 32_usize..200,
    ) {
        let text = blocks
            .iter()
            .map(|(words, code, tilde)| {
                let marker = if *tilde { "~~~" } else { "```" };
                format!("{words}\n{marker}\n{code}\n{marker}\n")
            })
            .collect::<Vec<_>>()
            .concat();
        let parts = split(&text, max);
        prop_assert!(parts.iter().all(|part| is_balanced(part)), "{parts:#?}");
        prop_assert_eq!(letters(&parts.concat()), letters(&text));
    }
}
