//! HTML: what a person sees of a page.

use crate::{
    markup::{Markup, Piece, decoded},
    output::Output,
    plain,
};

/// Elements of which nothing is seen.
const UNSEEN: [&str; 4] = ["noscript", "script", "style", "template"];

/// Elements that begin a line and end one.
const BLOCKS: [&str; 37] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "caption",
    "dd",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "option",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tbody",
    "title",
    "tr",
    "ul",
];

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|other| other.eq_ignore_ascii_case(name))
}

pub(crate) fn read(bytes: &[u8], output: &mut Output) {
    let source = plain::decoded_page(bytes);
    let mut markup = Markup::new(&source);
    let mut is_preformatted = false;
    while let Some(piece) = markup.next() {
        if output.is_full() {
            return;
        }
        match piece {
            Piece::Open { name, is_empty, .. } => {
                if is_one_of(&UNSEEN, name) && !is_empty {
                    markup.skip_to_close(name);
                } else if is_one_of(&BLOCKS, name) {
                    output.end_line();
                }
                if name.eq_ignore_ascii_case("li") {
                    output.push("- ");
                }
                is_preformatted |= name.eq_ignore_ascii_case("pre");
            }
            Piece::Close(name) => {
                if is_one_of(&BLOCKS, name) {
                    output.end_line();
                } else if is_one_of(&["td", "th"], name) {
                    output.end_cell();
                }
                is_preformatted &= !name.eq_ignore_ascii_case("pre");
            }
            Piece::Text(text) if is_preformatted => output.push(&decoded(text)),
            Piece::Text(text) => output.flow(&decoded(text)),
            Piece::Verbatim(text) => output.flow(text),
        }
    }
}
