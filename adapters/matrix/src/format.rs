//! Converts Markdown to the HTML subset that Matrix allows. The Markdown itself is the plain text.
//!
//! The subset: <https://spec.matrix.org/latest/client-server-api/#mroommessage-msgtypes>. HTML in an agent's text is
//! shown literally, only links with safe schemes are kept, and pictures become links, so that showing a message loads
//! nothing.

use pulldown_cmark::{Alignment, CowStr, Event, LinkType, Tag, TagEnd, html};
use rejoinder_core::{read_markdown, split_markdown};
use rejoinder_kit::links;

/// The most Markdown in one message, in bytes. Its HTML may be half as large again; both together, encrypted, stay
/// below the 65,536 bytes of an event.
pub(crate) const TEXT_BYTES: usize = 16_000;

const HTML_BYTES: usize = TEXT_BYTES / 2 * 3;

pub(crate) fn parts(markdown: &str) -> Vec<String> {
    split_markdown(markdown, TEXT_BYTES, |part| part.len().max(html(part).len() * 2 / 3))
}

/// The HTML of a text, if the text has any formatting and the HTML fits.
pub(crate) fn formatted(markdown: &str) -> Option<String> {
    let html = html(markdown);
    (html.len() <= HTML_BYTES && html != escaped(markdown.trim())).then_some(html)
}

pub(crate) fn html(markdown: &str) -> String {
    let mut open = Vec::new();
    let events = read_markdown(markdown).into_iter().flat_map(|event| allowed(event, &mut open));
    let mut written = String::with_capacity(markdown.len() * 5 / 4);
    html::push_html(&mut written, events);
    let written = written.trim_end();
    match written.strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>")) {
        Some(only) if !only.contains("<p>") => only.to_owned(),
        _ => written.to_owned(),
    }
}

/// An open link or picture.
struct OpenLink {
    address: String,
    /// Noted for the outermost one only.
    label: String,
    is_kept: bool,
}

/// The allowed form of a Markdown event. `open` are the links around it.
fn allowed<'a>(event: Event<'a>, open: &mut Vec<OpenLink>) -> Vec<Event<'a>> {
    if let Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) = &event
        && let Some(outermost) = open.first_mut()
    {
        outermost.label.push_str(text);
    }
    match event {
        Event::Html(text) | Event::InlineHtml(text) => vec![Event::Text(text)],
        // In a chat a line break is meant as one.
        Event::SoftBreak => vec![Event::HardBreak],
        Event::TaskListMarker(done) => vec![Event::Text(CowStr::Borrowed(if done { "☑ " } else { "☐ " }))],
        Event::Start(Tag::Table(columns)) => {
            vec![Event::Start(Tag::Table(columns.iter().map(|_| Alignment::None).collect()))]
        }
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            let is_kept = leads_somewhere_safe(&dest_url);
            open.push(OpenLink { address: dest_url.to_string(), label: String::new(), is_kept });
            let link = Tag::Link { link_type: LinkType::Inline, dest_url, title: "".into(), id: "".into() };
            if is_kept { vec![Event::Start(link)] } else { Vec::new() }
        }
        Event::End(TagEnd::Link | TagEnd::Image) => match open.pop() {
            Some(link) if link.is_kept => {
                // A picture inside a link leads where the link does.
                let shown = links::destination(&link.label, &link.address).filter(|_| open.is_empty());
                let shown = shown.map(|shown| Event::Text(format!(" ({shown})").into()));
                std::iter::once(Event::End(TagEnd::Link)).chain(shown).collect()
            }
            _ => Vec::new(),
        },
        Event::Start(Tag::HtmlBlock) => vec![Event::Start(Tag::Paragraph)],
        Event::End(TagEnd::HtmlBlock) => vec![Event::End(TagEnd::Paragraph)],
        other => vec![other],
    }
}

fn leads_somewhere_safe(url: &str) -> bool {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https" | "mailto" | "matrix" | "ftp" | "magnet"))
}

/// A text as HTML that shows it literally.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\n', "<br />\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rejoinder_core::{
        conformance::markdown::{PIECES, SEEN, UNSEEN, sample},
        is_blank, shows_anything,
    };
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("**bold** and `code`", "<strong>bold</strong> and <code>code</code>")]
    #[case("one\ntwo", "one<br />\ntwo")]
    #[case("one\n\ntwo", "<p>one</p>\n<p>two</p>")]
    #[case(
        "~~no~~ [here](https://example.org)",
        "<del>no</del> <a href=\"https://example.org\">here</a> (example.org)"
    )]
    #[case("<https://example.org/a>", "<a href=\"https://example.org/a\">https://example.org/a</a>")]
    #[case("- [x] done\n- [ ] not", "<ul>\n<li>☑ done</li>\n<li>☐ not</li>\n</ul>")]
    #[case("```rust\nlet x;\n```", "<pre><code class=\"language-rust\">let x;\n</code></pre>")]
    fn markdown_becomes_html(#[case] markdown: &str, #[case] expected: &str) {
        assert_eq!(html(markdown), expected);
    }

    /// The text that a person reads.
    fn visible_text(html: &str) -> String {
        let text: String = html.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text)).collect();
        text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    }

    /// A7.
    #[test]
    fn what_shows_something_is_shown() {
        for (markdown, seen) in SEEN {
            assert!(visible_text(&html(markdown)).contains(seen), "{markdown:?}: {:?}", html(markdown));
        }
        for markdown in UNSEEN {
            assert!(!shows_anything(markdown), "{markdown:?}");
            assert!(
                visible_text(&html(markdown)).chars().all(|c| is_blank(&c.to_string())),
                "{markdown:?}: {:?}",
                html(markdown)
            );
        }
    }

    proptest! {
        /// Nothing that the agent said is lost.
        #[test]
        fn every_word_is_shown(pieces in prop::collection::vec(0..PIECES.len(), 0..400)) {
            let (markdown, words) = sample(&pieces);
            let shown = parts(&markdown).iter().map(|part| visible_text(&html(part))).collect::<String>();
            for word in words {
                prop_assert!(shown.contains(&word), "{word} is missing of {markdown:?}: {shown}");
            }
        }
    }

    #[rstest]
    #[case("<script>alert(1)</script>")]
    #[case("hello <img src=x onerror=alert(1)>")]
    #[case("[click](javascript:alert(1))")]
    #[case("![spy](data:image/png;base64,AAAA)")]
    #[case("<b onclick=\"x\">bold</b>")]
    fn nothing_dangerous_is_shown(#[case] markdown: &str) {
        let html = html(markdown);

        for tag in ["<script", "<img", "<b ", "<a "] {
            assert!(!html.contains(tag), "{html}");
        }
    }

    #[test]
    fn a_picture_is_a_link() {
        assert_eq!(
            html("![a cat](https://example.org/cat.png)"),
            "<a href=\"https://example.org/cat.png\">a cat</a> (example.org)"
        );
    }

    #[test]
    fn a_table_has_no_styles() {
        let html = html("| a | b |\n|:-:|--:|\n| 1 | 2 |");

        assert!(html.contains("<table>") && !html.contains("style"), "{html}");
    }

    #[rstest]
    #[case("Good morning.", false)]
    #[case("1 < 2 & \"so\"", false)]
    #[case("one\ntwo", false)]
    #[case("**bold**", true)]
    #[case("one\n\ntwo", true)]
    fn only_what_has_formatting_is_formatted(#[case] markdown: &str, #[case] is_formatted: bool) {
        assert_eq!(formatted(markdown).is_some(), is_formatted, "{:?}", html(markdown));
    }

    #[test]
    fn a_long_text_comes_in_parts_that_fit() {
        let text = format!("{}\n\n", "word & <word> ".repeat(60)).repeat(60);

        let parts = parts(&text);

        assert!(parts.len() > 3, "{}", parts.len());
        for part in &parts {
            assert!(part.len() <= TEXT_BYTES && html(part).len() <= HTML_BYTES, "{}", part.len());
        }
    }
}
