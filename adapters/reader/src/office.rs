//! Documents of office programs: Office Open XML (DOCX, XLSX, PPTX) and OpenDocument. Both are XML in a ZIP archive.

use rejoinder_core::Unread;

use crate::{
    archive::Archive,
    markup::{Markup, Piece, attribute, decoded, local},
    output::Output,
};

/// How a file of the older office programs begins, and a document that one of them has encrypted.
const COMPOUND_FILE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// How many cells may be missing in a row before those that follow are moved to the left.
const MOST_MISSING: usize = 64;

/// How far into a part a definition of entities stands. Such documents have none.
const DEFINED_WITHIN: usize = 1024;

/// How many spaces stand in one place at most.
const MOST_SPACES: usize = 32;

/// In which elements the texts of a format stand.
#[derive(Clone, Copy)]
struct Format {
    texts: &'static [&'static str],
    /// Elements of which nothing is shown.
    unseen: &'static [&'static str],
}

/// A tab in `pPr` is the place of one. What is in `Fallback` was said before, for newer programs.
const OPEN_XML: Format = Format { texts: &["t"], unseen: &["pPr", "Fallback"] };

const OPEN_DOCUMENT: Format = Format { texts: &["p", "h"], unseen: &["tracked-changes", "annotation"] };

pub(crate) fn read(bytes: &[u8], output: &mut Output) -> Result<(), Unread> {
    if bytes.starts_with(COMPOUND_FILE) {
        return Err(Unread::Protected);
    }
    let archive = Archive::read(bytes).ok_or(Unread::Broken)?;
    if let Some(document) = archive.part("word/document.xml") {
        flow(&document, OPEN_XML, output)
    } else if archive.part("xl/workbook.xml").is_some() {
        sheets(&archive, output)
    } else if archive.part("ppt/presentation.xml").is_some() {
        for slide in archive.names("ppt/slides/slide", ".xml") {
            flow(&archive.part(slide).ok_or(Unread::Broken)?, OPEN_XML, output)?;
        }
        Ok(())
    } else if let Some(content) = archive.part("content.xml") {
        if archive.part("META-INF/manifest.xml").is_some_and(|manifest| manifest.contains("encryption-data")) {
            return Err(Unread::Protected);
        }
        flow(&content, OPEN_DOCUMENT, output)
    } else {
        Err(Unread::Empty)
    }
}

fn check(xml: &str) -> Result<(), Unread> {
    let beginning = &xml[..xml.floor_char_boundary(DEFINED_WITHIN)];
    if beginning.contains("<!DOCTYPE") { Err(Unread::Broken) } else { Ok(()) }
}

/// The paragraphs and tables of a document.
fn flow(xml: &str, format: Format, output: &mut Output) -> Result<(), Unread> {
    check(xml)?;
    let (mut texts, mut cells, mut unseen) = (0_usize, 0_usize, None::<&str>);
    for piece in Markup::new(xml) {
        if output.is_full() {
            break;
        }
        match piece {
            Piece::Close(name) if unseen.is_some() => unseen = unseen.filter(|unseen| *unseen != local(name)),
            _ if unseen.is_some() => {}
            Piece::Open { name, attributes, is_empty } => match local(name) {
                name if format.unseen.contains(&name) => unseen = (!is_empty).then_some(name),
                "tab" => output.push("\t"),
                "br" | "cr" | "line-break" => output.push("\n"),
                "s" => {
                    let count = attribute(attributes, "c").and_then(|count| count.parse().ok()).unwrap_or(1_usize);
                    output.push(&" ".repeat(count.min(MOST_SPACES)));
                }
                name if !is_empty => {
                    texts += usize::from(format.texts.contains(&name));
                    cells += usize::from(matches!(name, "tc" | "table-cell"));
                }
                _ => {}
            },
            Piece::Close(name) => {
                let name = local(name);
                if format.texts.contains(&name) {
                    texts = texts.saturating_sub(1);
                }
                match name {
                    "p" | "h" if cells > 0 => output.space(),
                    "p" | "h" | "tr" | "table-row" => output.end_line(),
                    "tc" | "table-cell" => {
                        cells = cells.saturating_sub(1);
                        output.end_cell();
                    }
                    _ => {}
                }
            }
            Piece::Text(text) if texts > 0 => output.push(&decoded(text)),
            Piece::Verbatim(text) if texts > 0 => output.push(text),
            Piece::Text(_) | Piece::Verbatim(_) => {}
        }
    }
    output.end_line();
    Ok(())
}

/// The sheets of a workbook, a line for each row.
fn sheets(archive: &Archive<'_>, output: &mut Output) -> Result<(), Unread> {
    let shared = match archive.part("xl/sharedStrings.xml") {
        Some(xml) => shared_texts(&xml)?,
        None => Vec::new(),
    };
    for sheet in archive.names("xl/worksheets/sheet", ".xml") {
        sheet_rows(&archive.part(sheet).ok_or(Unread::Broken)?, &shared, output)?;
        if output.is_full() {
            break;
        }
    }
    Ok(())
}

/// The texts that cells refer to by their numbers.
fn shared_texts(xml: &str) -> Result<Vec<String>, Unread> {
    check(xml)?;
    let (mut texts, mut is_text, mut is_reading_aid) = (Vec::<String>::new(), false, false);
    for piece in Markup::new(xml) {
        match piece {
            Piece::Open { name, is_empty, .. } => match local(name) {
                "si" => texts.push(String::new()),
                "t" => is_text = !is_empty,
                "rPh" => is_reading_aid = !is_empty,
                _ => {}
            },
            Piece::Close(name) => match local(name) {
                "t" => is_text = false,
                "rPh" => is_reading_aid = false,
                _ => {}
            },
            Piece::Text(text) | Piece::Verbatim(text) if is_text && !is_reading_aid => {
                if let Some(last) = texts.last_mut() {
                    last.push_str(&decoded(text));
                }
            }
            Piece::Text(_) | Piece::Verbatim(_) => {}
        }
    }
    Ok(texts)
}

fn sheet_rows(xml: &str, shared: &[String], output: &mut Output) -> Result<(), Unread> {
    check(xml)?;
    let (mut column, mut next, mut is_value, mut is_shared) = (0, 0, false, false);
    for piece in Markup::new(xml) {
        if output.is_full() {
            break;
        }
        match piece {
            Piece::Open { name, attributes, is_empty } => match local(name) {
                "row" => (column, next) = (0, 0),
                "c" => {
                    let at = attribute(attributes, "r").map_or(next, column_of);
                    for _ in column..at.min(column + MOST_MISSING) {
                        output.end_cell();
                    }
                    column = at.max(column);
                    next = column + 1;
                    is_shared = attribute(attributes, "t") == Some("s");
                }
                "v" | "t" => is_value = !is_empty,
                _ => {}
            },
            Piece::Close(name) => match local(name) {
                "v" | "t" => is_value = false,
                "row" => output.end_line(),
                _ => {}
            },
            Piece::Text(text) | Piece::Verbatim(text) if is_value => match text.trim().parse::<usize>() {
                Ok(index) if is_shared => output.push(shared.get(index).map_or("", String::as_str)),
                _ => output.push(&decoded(text)),
            },
            Piece::Text(_) | Piece::Verbatim(_) => {}
        }
    }
    output.end_line();
    Ok(())
}

/// The column of a cell, which is named as `B7` is: 1.
fn column_of(cell: &str) -> usize {
    let letters = cell.bytes().take_while(u8::is_ascii_alphabetic).take(3);
    letters
        .fold(0_usize, |column, letter| column * 26 + usize::from(letter.to_ascii_uppercase() - b'@'))
        .saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_names() {
        assert_eq!(["A1", "B7", "Z1", "AA1", "XFD9", "7", ""].map(column_of), [0, 1, 25, 26, 16_383, 0, 0]);
    }
}
