//! Converts a formula of LaTeX to MathML that is safe to insert into the page. Pure.
//!
//! Safe by construction: of what `pulldown-latex` writes, only a closed set of elements and attributes is kept, and all text is escaped.

use std::convert::Infallible;

use pulldown_latex::{Parser, RenderConfig, Storage, config::DisplayMode, push_mathml};
use rejoinder_core::is_blank;
use rejoinder_kit::push_escaped;

/// How deep braces and elements may be nested.
const MAX_DEPTH: usize = 64;

/// What defines commands: an agent could have a short formula become a long one.
const DEFINING: [&str; 9] = [
    "\\def",
    "\\gdef",
    "\\edef",
    "\\xdef",
    "\\let",
    "\\futurelet",
    "\\newcommand",
    "\\renewcommand",
    "\\providecommand",
];

/// The elements in which text stands.
const TOKENS: [&str; 4] = ["mi", "mn", "mo", "mtext"];

const ELEMENTS: [&str; 19] = [
    "math",
    "mi",
    "mn",
    "mo",
    "mtext",
    "mspace",
    "mrow",
    "mfrac",
    "msqrt",
    "mroot",
    "msub",
    "msup",
    "msubsup",
    "munder",
    "mover",
    "munderover",
    "mtable",
    "mtr",
    "mtd",
];

/// A formula as MathML; `None` if it cannot be read, or shows nothing.
pub(super) fn of(latex: &str, is_display: bool) -> Option<String> {
    if depth(latex) > MAX_DEPTH || DEFINING.iter().any(|command| latex.contains(command)) {
        return None;
    }
    let storage = Storage::new();
    let events = Parser::new(latex, &storage).collect::<Result<Vec<_>, _>>().ok()?;
    let display_mode = if is_display { DisplayMode::Block } else { DisplayMode::Inline };
    let config = RenderConfig { display_mode, ..RenderConfig::default() };
    let mut raw = String::new();
    push_mathml(&mut raw, events.into_iter().map(Ok::<_, Infallible>), config).ok()?;
    sanitised(&raw)
}

/// How deep braces are nested.
fn depth(latex: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in latex.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// What of `raw` is known. `None` if an element is not closed, text stands where none may, or nothing is to be seen.
fn sanitised(raw: &str) -> Option<String> {
    let (mut html, mut open, mut shows) = (String::with_capacity(raw.len()), Vec::new(), false);
    let mut rest = raw;
    while let Some(first) = rest.chars().next() {
        if let Some((tag, after)) = Tag::at(rest) {
            match tag {
                Tag::End(name) if open.pop() == Some(name) => html.extend(["</", name, ">"]),
                Tag::End(_) => return None,
                Tag::Start { name, attributes, is_empty } => {
                    html.extend(["<", name]);
                    push_attributes(&mut html, attributes)?;
                    html.push('>');
                    if is_empty {
                        html.extend(["</", name, ">"]);
                    } else {
                        open.push(name);
                    }
                }
            }
            if open.len() > 2 * MAX_DEPTH {
                return None;
            }
            rest = after;
            continue;
        }
        // A < that begins no tag is text, as it is in a browser.
        let end = rest[first.len_utf8()..].find('<').map_or(rest.len(), |at| first.len_utf8() + at);
        let text = decoded(&rest[..end]);
        if !is_blank(&text) {
            open.last().filter(|name| TOKENS.contains(name))?;
            shows = true;
        }
        push_escaped(&mut html, &text);
        rest = &rest[end..];
    }
    (open.is_empty() && shows).then_some(html)
}

enum Tag<'a> {
    Start { name: &'static str, attributes: &'a str, is_empty: bool },
    End(&'static str),
}

impl<'a> Tag<'a> {
    /// The tag of a known element that `html` begins with, and what comes after it.
    fn at(html: &'a str) -> Option<(Self, &'a str)> {
        let (tag, after) = html.strip_prefix('<')?.split_once('>')?;
        let known = |name: &str| ELEMENTS.into_iter().find(|known| *known == name);
        if let Some(name) = tag.strip_prefix('/') {
            return Some((Self::End(known(name)?), after));
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        Some((Self::Start { name: known(name)?, attributes, is_empty }, after))
    }
}

/// Writes the attributes that are known. `None` if it is no list of attributes.
fn push_attributes(html: &mut String, mut attributes: &str) -> Option<()> {
    loop {
        attributes = attributes.trim_start();
        if attributes.is_empty() {
            return Some(());
        }
        let (name, rest) = attributes.split_once("=\"")?;
        let (value, rest) = rest.split_once('"')?;
        attributes = rest;
        let value = match name {
            "display" => ["block", "inline"].contains(&value).then(|| value.to_owned()),
            "displaystyle" | "stretchy" | "symmetric" | "largeop" | "movablelimits" => {
                ["true", "false"].contains(&value).then(|| value.to_owned())
            }
            "scriptlevel" => ["0", "1", "2"].contains(&value).then(|| value.to_owned()),
            "mathvariant" => (value == "normal").then(|| value.to_owned()),
            "width" | "height" | "depth" | "linethickness" | "minsize" | "maxsize" => length(value),
            "class" => class(value),
            _ => None,
        };
        if let Some(value) = value {
            html.extend([" ", name, "=\"", value.as_str(), "\""]);
        }
    }
}

/// A length as in CSS that is not too long to be meant.
fn length(value: &str) -> Option<String> {
    let unit = value.trim_start_matches(['-', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    let number: f32 = value[..value.len() - unit.len()].parse().ok()?;
    let (unit, most) = match unit {
        // A mu is written as the share of an em that it is.
        "em" | "mu" => ("em", 20.0),
        "ex" => ("ex", 40.0),
        "cm" => ("cm", 8.0),
        "mm" | "pt" => (unit, 80.0),
        _ => return None,
    };
    (number.abs() <= most).then(|| format!("{number}{unit}"))
}

/// The names of classes that the page knows: those of tables, and two more.
fn class(value: &str) -> Option<String> {
    let is_name = |name: &&str| {
        ["small", "mop-negated"].contains(name)
            || (["menv-", "cell-"].iter().any(|prefix| name.starts_with(prefix))
                && name.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase()))
    };
    let names: Vec<&str> = value.split(' ').filter(is_name).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// Text without the entities that the crate writes.
fn decoded(text: &str) -> String {
    text.replace("&nbsp;", "\u{a0}").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_formula_becomes_mathml() {
        let mathml = of("x^2 \\le \\frac{1}{2}", false).expect("it can be read");

        assert!(mathml.starts_with("<math display=\"inline\">") && mathml.ends_with("</math>"), "{mathml}");
        for part in ["<msup>", "<mi>x</mi>", "<mn>2</mn>", "≤", "<mfrac>"] {
            assert!(mathml.contains(part), "{part} is missing: {mathml}");
        }
        assert!(of("x", true).expect("it can be read").starts_with("<math display=\"block\">"));
    }

    #[rstest]
    #[case("\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}", "<mtable class=\"menv-arraylike\">")]
    #[case("\\begin{aligned} a &= b \\\\ &= c \\end{aligned}", "<mtable class=\"menv-alignlike menv-align\">")]
    #[case("\\begin{cases} a & x < 0 \\\\ b & x > 0 \\end{cases}", "&lt;")]
    #[case("\\sum_{i=0}^{n} i", "<munderover>")]
    #[case("\\text{if } x \\& y", "if\u{a0}")]
    #[case("\\left( \\frac{a}{b} \\right)", "stretchy=\"true\"")]
    #[case("\\color{red} x", "<mi>x</mi>")]
    #[case("a \\, b \\mkern3mu c", "<mspace width=\"0.16")]
    fn common_formulas_are_read(#[case] latex: &str, #[case] part: &str) {
        let mathml = of(latex, true).unwrap_or_else(|| panic!("{latex} cannot be read"));

        assert!(mathml.contains(part) && !mathml.contains("style="), "{mathml}");
    }

    #[rstest]
    #[case("")]
    #[case("\\,")]
    #[case("\\frac{1")]
    #[case("x_")]
    #[case("\\nosuchcommand")]
    #[case("\\begin{matrix} a")]
    #[case("\\def\\x{y} \\x")]
    fn what_cannot_be_read_is_none(#[case] latex: &str) {
        assert_eq!(of(latex, false), None);
    }

    #[rstest]
    #[case("\\operatorname{<img src=x onerror=alert(1)>}")]
    #[case("\\operatorname{</mi></math>}")]
    #[case("\\operatorname{<script>alert(1)</script>}")]
    #[case("\\operatorname{<mi onclick=\"alert(1)\">x</mi>}")]
    #[case("\\text{<script>alert(1)</script>} \\& <b>")]
    #[case("\\text{&lt;script&gt;}")]
    #[case("\\href{javascript:alert(1)}{x}")]
    #[case("\\kern 99999em x \\rule{1em}{99999em}")]
    #[case("\\unicode{x3c}script\\unicode{x3e}")]
    fn nothing_runs(#[case] latex: &str) {
        let mathml = of(latex, false).unwrap_or_default();

        for piece in mathml.split('<').skip(1) {
            let name = piece.trim_start_matches('/').split([' ', '>']).next().unwrap_or_default();
            assert!(ELEMENTS.contains(&name), "{mathml}");
        }
        assert!(!mathml.contains("onclick") && !mathml.contains("javascript") && !mathml.contains("99999"), "{mathml}");
    }

    #[test]
    fn what_is_nested_too_deep_is_not_read() {
        let nested = |depth| format!("{}x{}", "{".repeat(depth), "}".repeat(depth));

        assert!(of(&nested(MAX_DEPTH), false).is_some());
        assert_eq!(of(&nested(MAX_DEPTH + 1), false), None);
    }
}
