use proptest::{prelude::*, sample::Index};

use super::*;

fn streamed<'a>(chunks: impl IntoIterator<Item = &'a str>) -> (String, Option<String>) {
    let mut shim = Shim::default();
    let mut shown = String::new();
    for chunk in chunks {
        let before = shim.retractions();
        let more = shim.push(chunk);
        if shim.retractions() > before {
            shown.clear();
        }
        shown.push_str(&more);
    }
    let (rest, silence) = shim.finish();
    shown.push_str(&rest);
    (shown, silence.map(|silence| silence.marker))
}

fn text(text: &str) -> Normal {
    Normal::Text(text.to_owned())
}

fn marker(name: &str) -> Normal {
    Normal::Marker(name.to_owned())
}

/// C1, A20.
#[test]
fn every_known_marker_alone_is_silence() {
    for name in MARKERS {
        assert_eq!(normalise(name), marker(name));
        assert_eq!(normalise(&name.to_ascii_lowercase()), marker(name));
        assert_eq!(normalise(&format!("\n\u{feff} {name} \u{200b}\n")), marker(name));
    }
}

/// C1.
#[test]
fn a_marker_is_found_across_any_two_chunks() {
    for name in MARKERS {
        for cut in 1..name.len() {
            assert_eq!(streamed([&name[..cut], &name[cut..]]), (String::new(), Some(name.to_owned())));
        }
    }
}

/// C1.
#[test]
fn a_marker_before_or_after_an_answer_is_taken_out() {
    assert_eq!(normalise("NO_REPLY Here it is."), text("Here it is."));
    assert_eq!(normalise("Here it is. NO_REPLY"), text("Here it is."));
    assert_eq!(normalise("Here it is.\n\nno_reply\n"), text("Here it is."));
    assert_eq!(normalise("HEARTBEAT_OK\nHere it is.\n[SILENT] NO_REPLY"), text("Here it is."));
}

/// C1.
#[test]
fn a_marker_alone_on_a_line_is_taken_out_with_its_line() {
    assert_eq!(normalise("one\nNO_REPLY\ntwo"), text("one\ntwo"));
    assert_eq!(normalise("one\n\n[SILENT]\n\ntwo"), text("one\n\ntwo"));
    assert_eq!(normalise("one\n\n[SILENT]\n    two"), text("one\n\n    two"));
    assert_eq!(normalise("one\n[SILENT]\n\n    two"), text("one\n\n    two"));
}

#[test]
fn a_marker_alone_on_a_line_may_wear_markup() {
    for worn in ["`NO_REPLY`", "**NO_REPLY**", "NO_REPLY.", "\"no_reply\"!", "“NO_REPLY”"] {
        assert_eq!(normalise(worn), marker("NO_REPLY"), "{worn}");
        assert_eq!(normalise(&format!("one\n{worn}\ntwo")), text("one\ntwo"), "{worn}");
    }
}

/// C1.
#[test]
fn a_marker_said_again_without_a_space_is_silence() {
    let loops = "NO_REPLY".repeat(1000);
    for said in ["NO_REPLYNO_REPLY", "no_replyNO_REPLYNo_Reply", "`NO_REPLY`NO_REPLY.", "NO_REPLY<no-reply/>", &loops] {
        assert_eq!(normalise(said), marker("NO_REPLY"), "{said}");
        assert_eq!(normalise(&format!("Here it is.\n{said}\n")), text("Here it is."), "{said}");
    }
    assert_eq!(normalise("Here it is. NO_REPLYNO_REPLY"), text("Here it is."));
    assert_eq!(normalise("[SILENT]HEARTBEAT_OK"), marker("[SILENT]"));
    for word in ["NO_REPLYNO_REPL", "NO_REPLY<no-reply/>x", "see NO_REPLYNO_REPLY here"] {
        assert_eq!(normalise(word), text(word));
    }
}

/// C1.
#[test]
fn the_tag_may_hold_white_space() {
    for tag in ["<no-reply />", "< no-reply/ >", "<NO-REPLY\n/>", "<no-reply\u{a0} />"] {
        assert_eq!(normalise(tag), marker("<no-reply/>"), "{tag:?}");
        assert_eq!(normalise(&format!("Done.{tag}")), text("Done."), "{tag:?}");
        assert_eq!(normalise(&format!("{tag}Done.")), text("Done."), "{tag:?}");
    }
    assert_eq!(normalise("NO_REPLY<no-reply />"), marker("NO_REPLY"));
    for word in ["<no-reply", "<no-reply /", "a < b", "a <no-reply b", "< no", "x <no-reply  / y", "`< /x>`"] {
        assert_eq!(normalise(word), text(word));
    }
    assert_eq!(normalise("<no-reply NO_REPLY"), text("<no-reply"));
    assert_eq!(normalise("<no-reply / "), text("<no-reply /"));
}

#[test]
fn a_marker_inside_a_sentence_is_a_word() {
    for sentence in [
        "What does NO_REPLY mean?",
        "It means `NO_REPLY`.",
        "`NO_REPLY` means silence.",
        "one\nNO_REPLY and two\nthree",
        "Use <no-reply/> or [SILENT] for that.",
        "NO_REPLYING is not a word",
        "[silent](https://example.org)",
    ] {
        assert_eq!(normalise(sentence), text(sentence));
    }
}

#[test]
fn the_tag_needs_no_space_around_it() {
    assert_eq!(normalise("Done.<no-reply/>"), text("Done."));
    assert_eq!(normalise("<no-reply/>Done."), text("Done."));
    assert_eq!(normalise("<no-reply/><NO-REPLY/>"), marker("<no-reply/>"));
    assert_eq!(normalise("a<no-reply/>b"), text("a<no-reply/>b"));
    assert_eq!(normalise("a<<no-reply/>"), text("a<"));
}

/// A7.
#[test]
fn leading_reasoning_is_not_a_reply() {
    assert_eq!(normalise("<think>hm</think>"), Normal::Empty);
    assert_eq!(normalise("<think>hm, no end"), Normal::Empty);
    assert_eq!(normalise(" <THINKING>a < b <</thinking>\n\nYes."), text("Yes."));
    assert_eq!(normalise("<think>a</think><thinking>b</thinking>Yes."), text("Yes."));
    assert_eq!(normalise("<think>a</think>NO_REPLY"), marker("NO_REPLY"));
    assert_eq!(normalise("NO_REPLY\n<think>a</think>"), marker("NO_REPLY"));
    assert_eq!(normalise("<think>NO_REPLY</think>"), Normal::Empty);
}

/// A7: the output of the chat templates of DeepSeek and Qwen when the server removes no reasoning.
#[test]
fn a_thought_without_a_beginning_is_not_shown() {
    for said in [
        "I think so </think> Yes.",
        "hm\n</think>\n\nYes.",
        "hm</THINK>Yes.",
        "</think>\nYes.",
        "</thinking>Yes.",
        "NO_REPLY perhaps?\nN</think>Yes.",
        "I say \"hello\"</think>Yes.",
        "They <think> so too</think> or not</think>Yes.",
        "<think>one</think> two</think>Yes.",
        "one</think>two</thinking>Yes.",
        "The tag is `</think>`. Well.</think>Yes.",
    ] {
        assert_eq!(normalise(said), text("Yes."), "{said}");
        let characters: Vec<&str> = said.split_inclusive(|_| true).collect();
        assert_eq!(streamed(characters), ("Yes.".to_owned(), None), "{said}");
    }
    assert_eq!(normalise("hm </think>"), Normal::Empty);
    assert_eq!(normalise("NO_REPLY</think>"), Normal::Empty);
    assert_eq!(normalise("hm</think>\nNO_REPLY"), marker("NO_REPLY"));
}

#[test]
fn talk_about_reasoning_is_a_reply() {
    for talk in [
        "I <think> so",
        "<thin",
        "<thinker>",
        "</thinker> </",
        "a <think>b</think>",
        "End it with `</think>`.",
        "End it with \"</think>\", or with “</thinking>”.",
        "`</think>` ends it.",
        "text.split('</think>')[-1]",
    ] {
        assert_eq!(normalise(talk), text(talk));
    }
}

#[test]
fn a_thought_that_was_shown_is_taken_back_when_its_end_comes() {
    let mut shim = Shim::default();
    assert_eq!((shim.push("Let me see.</thi"), shim.retractions()), ("Let me see.".to_owned(), 0));
    assert!(!shim.has_ended_reasoning());
    assert_eq!((shim.push("nk>Yes"), shim.retractions()), ("Yes".to_owned(), 1));
    assert!(shim.has_ended_reasoning());
    let mut opened = Shim::default();
    assert_eq!((opened.push("<think>hm</think>Yes"), opened.retractions()), ("Yes".to_owned(), 0));
    assert!(opened.has_ended_reasoning());
}

/// A1, A7.
#[test]
fn invisible_text_is_empty() {
    for blank in [
        "",
        " \t\r\n",
        "\u{a0}\u{202f}\u{3000}",
        "\u{feff}\u{200b}\u{200d}\u{2060}",
        "\u{ad}\u{0}\u{200f}",
        "\u{fe0f}",
        "\u{e0020}",
        "\u{e0001}\u{e0062} \u{e007f}",
        "\u{180b}\u{e0100}",
        "\u{1d173}\u{fff9}",
    ] {
        assert_eq!(normalise(blank), Normal::Empty, "{blank:?}");
        assert!(is_blank(blank), "{blank:?}");
    }
}

#[test]
fn what_is_seen_keeps_its_inner_space() {
    assert_eq!(
        normalise(" \n می\u{200c}خواهم  👨\u{200d}👩\u{200d}👧 \n"),
        text("می\u{200c}خواهم  👨\u{200d}👩\u{200d}👧")
    );
    for whole in
        ["❤\u{fe0f}", "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", "1\u{fe0f}\u{20e3}", "葛\u{e0100}"]
    {
        assert_eq!(normalise(&format!("{whole} \u{fe0f}")), text(whole));
        assert!(!is_blank(whole));
    }
}

#[test]
fn plain_text_is_not_held_back() {
    let mut shim = Shim::default();
    assert_eq!(shim.push("Hello"), "Hello");
    assert_eq!(shim.push(" wor"), " wor");
    assert_eq!(shim.push("ld, no"), "ld,");
    assert_eq!(shim.push("t yet "), " not yet");
}

#[test]
fn a_long_text_is_filtered_in_linear_time() {
    let markers = "\n\n\n\n".repeat(20_000) + &"\nNO_REPLY".repeat(20_000);
    assert_eq!(normalise(&format!("a{markers}")), text("a"));
    let dots = ".".repeat(1_000_000);
    assert_eq!(normalise(&dots), text(&dots));
    for unit in ["<", "< ", "<no-reply ", "`<", "NO_REPLY<", "</think", "\"<no-reply / ", "NO_REPLY.NO_REPL<"] {
        let tags = unit.repeat(1_000_000 / unit.len());
        assert_eq!(normalise(&tags), text(tags.trim_end()), "{unit}");
    }
    assert_eq!(normalise(&format!("<{}x", " ".repeat(1_000_000))), text(&format!("<{}x", " ".repeat(1_000_000))));
    assert_eq!(normalise(&"a</think>".repeat(100_000)), Normal::Empty);
}

/// The same rules on whole words instead of characters. Inputs must have white space around `<no-reply/>`.
fn by_words(whole: &str) -> String {
    struct Word<'a> {
        gap: &'a str,
        text: &'a str,
    }
    fn is_marker(word: &str) -> bool {
        let again = |name: &str| name.repeat(word.len() / name.len()).eq_ignore_ascii_case(word);
        !word.is_empty() && MARKERS.into_iter().any(again)
    }
    fn is_wrapped_marker(word: &str) -> bool {
        is_marker(word.trim_matches(is_wrapping))
    }

    let mut words = Vec::new();
    let mut rest = whole;
    while let Some(start) = rest.find(|c| !is_invisible(c)) {
        let (gap, tail) = rest.split_at(start);
        let (text, tail) = tail.split_at(tail.find(is_invisible).unwrap_or(tail.len()));
        words.push(Word { gap, text });
        rest = tail;
    }
    let ends_line = |at: usize| words.get(at + 1).is_none_or(|next: &Word<'_>| next.gap.contains('\n'));
    let is_first = |at: usize| is_marker(words[at].text) || (is_wrapped_marker(words[at].text) && ends_line(at));
    let first = (0..words.len()).find(|at| !is_first(*at)).unwrap_or(words.len());
    let begins_line = |at: usize| at == first || words[at].gap.contains('\n');
    let is_last = |at: usize| is_marker(words[at].text) || (is_wrapped_marker(words[at].text) && begins_line(at));
    let Some(last) = (first..words.len()).rfind(|at| !is_last(*at)) else { return String::new() };
    let alone: Vec<bool> =
        (0..words.len()).map(|at| is_wrapped_marker(words[at].text) && begins_line(at) && ends_line(at)).collect();
    let mut shown = words[first].text.to_owned();
    let mut dropped = String::new();
    for at in first + 1..=last {
        let lines = |gap: &str| gap.matches('\n').count();
        let after_line = |gap: &str| gap.rfind('\n').map_or(0, |end| end + 1);
        let gap = words[at].gap;
        let gap = if lines(&dropped) > lines(gap) {
            format!("{}{}", &dropped[..after_line(&dropped)], &gap[after_line(gap)..])
        } else {
            gap.to_owned()
        };
        if alone[at] {
            dropped = gap;
        } else {
            dropped.clear();
            shown += &gap;
            shown += words[at].text;
        }
    }
    shown
}

fn worded() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        3 => prop::sample::select(vec!["NO_REPLY", "no_reply", "[Silent]", "HEARTBEAT_OK", "<no-reply/>", "NO_REPLYno_reply"]),
        1 => prop::sample::select(vec!["`NO_REPLY`", "[SILENT].", "**heartbeat_ok**"]),
        2 => prop::sample::select(vec!["Hello", "no", "NO_REPLY,", "...", "é", "(see"]),
    ];
    let gap = prop::sample::select(vec![" ", "  ", "\n", "\n\n", "\n  ", " \n\n", "\u{200b}"]);
    prop::collection::vec((gap, word), 0..10)
        .prop_map(|words| words.into_iter().flat_map(|(gap, word)| [gap, word]).collect())
}

fn glued() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "NO_REPLY", "no_rep", "LY", "[SILENT]", "HEARTBEAT_OK", "<no-reply/>", "<no-", "reply/>", "<think>", "</think>",
            "<thinking>", "</thinking>", "<", ">", "`", "**", ".", " ", "\n", "\u{200b}", "\u{a0}", "word", "é", "<no-reply", "/>",
            "(", "\"", "\u{fe0f}", "</",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

fn cut<'a>(whole: &'a str, cuts: &[Index]) -> Vec<&'a str> {
    let mut at: Vec<usize> = cuts
        .iter()
        .map(|cut| cut.index(whole.len() + 1))
        .filter(|at| whole.is_char_boundary(*at))
        .chain([0, whole.len()])
        .collect();
    at.sort_unstable();
    at.windows(2).map(|pair| &whole[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn chunks_do_not_matter(whole in glued(), cuts in prop::collection::vec(any::<Index>(), 0..12)) {
        let (shown, silence) = streamed(cut(&whole, &cuts));
        let expected = match normalise(&whole) {
            Normal::Text(text) => (text, None),
            Normal::Empty => (String::new(), None),
            Normal::Marker(marker) => (String::new(), Some(marker)),
        };
        prop_assert_eq!((shown, silence), expected);
    }

    #[test]
    fn words_are_judged_by_the_rules(whole in worded()) {
        prop_assert_eq!(streamed([whole.as_str()]).0, by_words(&whole));
    }

    #[test]
    fn what_was_let_through_is_let_through_again(whole in worded()) {
        if let Normal::Text(shown) = normalise(&whole) {
            prop_assert_eq!(normalise(&shown), Normal::Text(shown));
        }
    }

    #[test]
    fn a_text_is_never_blank(whole in glued()) {
        if let Normal::Text(shown) = normalise(&whole) {
            prop_assert!(!is_blank(&shown));
            prop_assert_eq!(shown.trim_matches(is_invisible), shown.as_str());
        }
    }

    /// A closing tag in quotes or after an opening tag is ordinary text.
    #[test]
    fn no_end_of_a_thought_is_left(whole in glued()) {
        if let Normal::Text(shown) = normalise(&whole) {
            let shown = shown.to_ascii_lowercase();
            for end in ["</think>", "</thinking>"] {
                let talk = shown.split(end).next().unwrap_or_default();
                prop_assert!(talk.len() == shown.len() || talk.contains("<think") || talk.ends_with(is_quote), "{shown}");
            }
        }
    }
}
