//! Finds the formulas in Markdown: `$…$` and `$$…$$`, and as LaTeX writes them, `\(…\)` and `\[…\]`. Pure.
//!
//! A mark stands in the source in place of each formula, so that nothing in it is taken for Markdown. What cannot be read as a formula
//! stays what it was.

use std::{borrow::Cow, ops::Range, thread};

use pulldown_cmark::{Event, Parser, Tag};

use super::mathml;

/// Stands around the number of a formula, in its place. For private use: no text has it that has a meaning elsewhere.
pub(super) const MARK: char = '\u{f0000}';

/// The longest formula, in bytes.
const MAX_LATEX: usize = 4 * 1024;

/// How much MathML an answer may have, in bytes. Further formulas stay text.
const MAX_MATHML: usize = 512 * 1024;

/// The reader of LaTeX calls itself for each command in a formula, in the worst case. Only what is used of it costs memory.
const STACK: usize = 64 << 20;

/// A formula with what it is shown as.
pub(super) struct Formula {
    /// As it stands in the source.
    pub(super) written: String,
    pub(super) mathml: String,
    /// Whether it stands on a line of its own.
    pub(super) is_display: bool,
}

/// The source with a mark in place of each formula, and the formulas.
pub(super) fn take_formulas(markdown: &str) -> (Cow<'_, str>, Vec<Formula>) {
    let is_candidate = !markdown.contains(MARK) && DELIMITERS.iter().any(|kind| markdown.contains(kind.opens));
    let candidates = if is_candidate { candidates(markdown) } else { Vec::new() };
    if candidates.is_empty() {
        return (Cow::Borrowed(markdown), Vec::new());
    }
    let read = || {
        let mut room = MAX_MATHML;
        let mathml = |found: &Candidate| {
            let mathml = mathml::of(&found.latex, found.is_display)?;
            room = room.checked_sub(mathml.len())?;
            Some(mathml)
        };
        candidates.iter().map(mathml).collect::<Vec<_>>()
    };
    // On a thread of its own, a formula that breaks its reader breaks nothing else.
    let read = thread::scope(|scope| {
        let thread = thread::Builder::new().name("formulas".to_owned()).stack_size(STACK).spawn_scoped(scope, read);
        thread.ok()?.join().ok()
    });
    let (mut source, mut formulas, mut copied) = (String::with_capacity(markdown.len()), Vec::new(), 0);
    for (Candidate { range, is_display, .. }, mathml) in candidates.iter().zip(read.unwrap_or_default()) {
        let Some(mathml) = mathml else { continue };
        source.push_str(&markdown[copied..range.start]);
        source.extend([MARK.to_string(), formulas.len().to_string(), MARK.to_string()]);
        copied = range.end;
        formulas.push(Formula { written: markdown[range.clone()].to_owned(), mathml, is_display: *is_display });
    }
    source.push_str(&markdown[copied..]);
    (Cow::Owned(source), formulas)
}

struct Delimiters {
    opens: &'static str,
    closes: &'static str,
    is_display: bool,
}

/// A longer mark stands before one that it begins with.
const DELIMITERS: [Delimiters; 4] = [
    Delimiters { opens: "$$", closes: "$$", is_display: true },
    Delimiters { opens: "$", closes: "$", is_display: false },
    Delimiters { opens: "\\[", closes: "\\]", is_display: true },
    Delimiters { opens: "\\(", closes: "\\)", is_display: false },
];

/// What may be a formula.
struct Candidate {
    range: Range<usize>,
    latex: String,
    is_display: bool,
}

fn candidates(markdown: &str) -> Vec<Candidate> {
    let mut code = code_in(markdown).into_iter().peekable();
    let mut found = Vec::new();
    // Up to where no closing delimiter of each kind stands.
    let mut unclosed = [0; DELIMITERS.len()];
    let mut at = 0;
    while let Some(start) = markdown[at..].find(['\\', '$']).map(|ahead| at + ahead) {
        while code.next_if(|range| range.end <= start).is_some() {}
        let next_code = code.peek().cloned().unwrap_or(markdown.len()..markdown.len());
        if next_code.start <= start && start < next_code.end {
            at = next_code.end;
            continue;
        }
        let rest = &markdown[start..];
        let Some((index, kind)) = DELIMITERS.iter().enumerate().find(|(_, kind)| rest.starts_with(kind.opens)) else {
            // An escaped character opens nothing.
            at = start + 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
            continue;
        };
        let from = start + kind.opens.len();
        at = from;
        if start < unclosed[index] {
            continue;
        }
        match end_of(markdown, from, kind) {
            Ok(end) if end <= next_code.start => {
                let range = start..end + kind.closes.len();
                if let Some(latex) = latex(markdown, &range, kind) {
                    at = range.end;
                    found.push(Candidate { range, latex, is_display: kind.is_display });
                }
            }
            Ok(_) => {}
            Err(until) => unclosed[index] = until,
        }
    }
    found
}

/// Where code stands, in order.
fn code_in(markdown: &str) -> Vec<Range<usize>> {
    let events = Parser::new(markdown).into_offset_iter();
    events
        .filter(|(event, _)| matches!(event, Event::Code(_) | Event::Start(Tag::CodeBlock(_))))
        .map(|(_, range)| range)
        .collect()
}

/// Where the closing delimiter of a formula stands whose content begins at `from`. Else up to where there is none: a formula ends with its
/// paragraph at the latest.
fn end_of(markdown: &str, from: usize, kind: &Delimiters) -> Result<usize, usize> {
    let bytes = markdown.as_bytes();
    let last = bytes.len().min(from + MAX_LATEX);
    let mut at = from;
    while at < last {
        let rest = &bytes[at..];
        if rest.starts_with(kind.closes.as_bytes()) {
            return Ok(at);
        }
        match rest {
            [b'$', ..] => return Err(at),
            [b'\\', ..] => at += 2,
            [b'\n', line @ ..] => {
                let is_blank = |byte: &&u8| matches!(**byte, b' ' | b'\t' | b'\r' | b'>');
                match line.iter().find(|byte| !is_blank(byte)) {
                    Some(b'\n') | None => return Err(at),
                    Some(_) => at += 1,
                }
            }
            _ => at += 1,
        }
    }
    Err(last)
}

/// The LaTeX of what stands between delimiters, on one line; `None` if it is rather something else: a price, or escaped brackets.
fn latex(markdown: &str, range: &Range<usize>, kind: &Delimiters) -> Option<String> {
    let (before, after) = (&markdown[..range.start], &markdown[range.end..]);
    let within = &markdown[range.start + kind.opens.len()..range.end - kind.closes.len()];
    let has_lines = within.contains('\n');
    // Else a line of many formulas would be read again for each.
    let line = if has_lines { before.rsplit('\n').next().unwrap_or_default() } else { "" };
    let line_after = if has_lines { after.split('\n').next().unwrap_or_default() } else { "" };
    let is_quoted = line.trim_start().starts_with('>');
    let unquoted =
        |line: &str| if is_quoted { line.trim_start_matches([' ', '\t', '>']) } else { line }.trim().to_owned();
    let lines: Vec<String> = within.lines().map(unquoted).filter(|line| !line.is_empty()).collect();
    let latex = lines.join(" ");
    let is_letter = |character: Option<char>| character.is_some_and(|it| it.is_alphanumeric() || it == '$');
    let is_inside_a_word = is_letter(before.chars().next_back()) || is_letter(after.chars().next());
    let is_tight = !within.starts_with(char::is_whitespace) && !within.ends_with(char::is_whitespace);
    let stands_alone = line.trim_matches([' ', '\t', '>', '-', '*', '+']).is_empty()
        && line_after.trim_matches([' ', '\t', '\r', '.', ',', ';']).is_empty();
    let is_formula = match kind.opens {
        "$" => is_tight && !is_inside_a_word && is_mathematical(&latex),
        "$$" => true,
        // `\[x\] done` is an item of a list whose brackets are escaped, and `\[a\](b)` an escaped link.
        "\\[" => has_signs(&latex) || (has_lines && stands_alone),
        _ => is_mathematical(&latex),
    };
    // What follows a % is a comment, and would not be shown.
    let has_comment = latex.match_indices('%').any(|(at, _)| !latex[..at].ends_with('\\'));
    (is_formula && !latex.is_empty() && !has_comment && !after.starts_with('(')).then_some(latex)
}

/// Whether words are rather a formula than a part of a sentence.
fn is_mathematical(latex: &str) -> bool {
    let is_short = |word: &str| word.chars().nth(1).is_none() || word.chars().all(|it| it.is_numeric() || it == '.');
    !latex.contains(char::is_whitespace) || has_signs(latex) || latex.split_whitespace().all(is_short)
}

fn has_signs(latex: &str) -> bool {
    latex.contains(['\\', '^', '_', '=', '+', '<', '>', '{'])
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The formulas that are found, with `!` before those on lines of their own.
    fn found(markdown: &str) -> Vec<String> {
        let named = |found: Candidate| format!("{}{}", if found.is_display { "!" } else { "" }, found.latex);
        candidates(markdown).into_iter().map(named).collect()
    }

    #[rstest]
    #[case("It is $x$, and $a + b$.", &["x", "a + b"])]
    #[case("($x^2$) **$y$**", &["x^2", "y"])]
    #[case("$$E = mc^2$$", &["!E = mc^2"])]
    #[case("So \\(x\\) and \\( \\alpha \\) hold.", &["x", "\\alpha"])]
    #[case("\\[\n  x\n  + y\n\\]", &["!x + y"])]
    #[case("\\[\nx\n\\]", &["!x"])]
    #[case("$$\n\\begin{pmatrix} a & b \\\\\n c & d \\end{pmatrix}\n$$", &["!\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}"])]
    #[case("> $$\n> x\n> $$", &["!x"])]
    #[case("1. a\n\n   \\[\n   x = 1\n   \\]", &["!x = 1"])]
    #[case("| $a$ | \\(b\\) |", &["a", "b"])]
    #[case("\\\\(x\\\\) \\\\\\(y\\)", &["y"])]
    #[case("é$x$ $y$é $z$", &["z"])]
    fn formulas_are_found(#[case] markdown: &str, #[case] formulas: &[&str]) {
        assert_eq!(found(markdown), formulas);
    }

    #[rstest]
    #[case("It costs $5, or $6 with tea.")]
    #[case("From $5 to 10$ and more.")]
    #[case("10$ and 20$")]
    #[case("US$5 and US$6")]
    #[case("$HOME/bin:$PATH")]
    #[case("$PATH and $HOME")]
    #[case("\\$x\\$")]
    #[case("`$x$` and ``\\(x\\)``")]
    #[case("```\n$$x$$\n```")]
    #[case("    $$x$$")]
    #[case("$a `b$` c")]
    #[case("$x\n\ny$")]
    #[case("$$")]
    #[case("$ $")]
    #[case("- \\[x\\] done\n- \\[ \\] not done")]
    #[case("\\[a\\](https://example.org/b_c)")]
    #[case("\\(see below\\)")]
    #[case("$x % y$")]
    #[case("\u{f0000} $x$")]
    fn what_is_no_formula_stays_text(#[case] markdown: &str) {
        let (source, formulas) = take_formulas(markdown);

        assert_eq!((source, formulas.len()), (Cow::Borrowed(markdown), 0));
    }

    #[test]
    fn a_formula_that_cannot_be_read_stays_text() {
        let (source, formulas) = take_formulas("$\\unknown{x}$ and $x$ and $a}b$");

        assert_eq!(source, "$\\unknown{x}$ and \u{f0000}0\u{f0000} and $a}b$");
        assert_eq!((formulas.len(), &*formulas[0].written, formulas[0].is_display), (1, "$x$", false));
    }

    #[test]
    fn what_is_nested_too_deep_stays_text() {
        let formula = format!("${}x$", "\\sqrt ".repeat(500));

        assert_eq!(take_formulas(&formula).0, formula);
    }

    #[test]
    fn formulas_take_no_more_than_their_room() {
        let answer = format!("$${}$$\n\n", "x + ".repeat(900)).repeat(100);

        let (source, formulas) = take_formulas(&answer);

        assert!(formulas.iter().map(|formula| formula.mathml.len()).sum::<usize>() <= MAX_MATHML);
        assert!(!formulas.is_empty() && source.contains("$$x + "), "{}", formulas.len());
    }
}
