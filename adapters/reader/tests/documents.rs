//! Documents that are read, and files that must cost nothing.

use std::{
    fmt::Write as _,
    io::Write as _,
    time::{Duration, Instant},
};

use flate2::{Compress, Compression, FlushCompress, write::DeflateEncoder};
use rejoinder_core::{TextReader as _, Unread};
use rejoinder_reader::ChildReader;
use rstest::rstest;

const PDF: &str = "application/pdf";
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const PPTX: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation";
const ODT: &str = "application/vnd.oasis.opendocument.text";

async fn text_of(media_type: &str, bytes: &[u8]) -> Result<String, Unread> {
    ChildReader::new(env!("CARGO_BIN_EXE_rejoinder-reader-program").into()).text(media_type, bytes).await
}

fn little(number: usize) -> [u8; 4] {
    u32::try_from(number).expect("a small number").to_le_bytes()
}

/// A ZIP archive with these parts.
fn zip(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in parts {
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::fast());
        deflate.write_all(content).expect("it is packed");
        let packed = deflate.finish().expect("it is packed");
        let mut header = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        header.extend_from_slice(&little(packed.len()));
        header.extend_from_slice(&little(content.len()));
        header.extend_from_slice(&little(name.len()));
        directory.extend_from_slice(b"PK\x01\x02\x14\0");
        directory.extend_from_slice(&header);
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&little(archive.len()));
        directory.extend_from_slice(name.as_bytes());
        archive.extend_from_slice(b"PK\x03\x04");
        archive.extend_from_slice(&header);
        archive.extend_from_slice(name.as_bytes());
        archive.extend_from_slice(&packed);
    }
    let count = [&little(parts.len())[..2]; 2].concat();
    let end =
        [&b"PK\x05\x06\0\0\0\0"[..], &count[..], &little(directory.len()), &little(archive.len()), &[0; 2]].concat();
    [archive, directory, end].concat()
}

fn docx(body: &str) -> Vec<u8> {
    let document = format!("<?xml version=\"1.0\"?>{body}");
    zip(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", document.as_bytes())])
}

fn stream(keys: &str, content: &[u8]) -> Vec<u8> {
    let begin = format!("<< {keys} /Length {} >>\nstream\n", content.len());
    [begin.as_bytes(), content, b"\nendstream"].concat()
}

/// A PDF of one page, with these contents; the objects from 6 on are `more`.
fn pdf(resources: &str, contents: Vec<u8>, more: &[Vec<u8>]) -> Vec<u8> {
    let page = format!(
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 5 0 R >> {resources} >> /Contents 4 0 R >>"
    );
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        page.into_bytes(),
        contents,
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_vec(),
    ];
    objects.extend_from_slice(more);
    pdf_of(&objects)
}

fn pdf_of(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (index, object) in objects.iter().enumerate() {
        writeln!(table, "{:010} 00000 n ", file.len()).expect("a text");
        file.extend_from_slice(format!("{} 0 obj\n", index + 1).as_bytes());
        file.extend_from_slice(object);
        file.extend_from_slice(b"\nendobj\n");
    }
    let (size, begin) = (objects.len() + 1, file.len());
    let end = format!("{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{begin}\n%%EOF\n");
    file.extend_from_slice(end.as_bytes());
    file
}

fn letter() -> Vec<u8> {
    let contents = b"BT /F1 12 Tf 72 720 Td (Liebe Gr\\374\\337e,) Tj 0 -20 Td (the meeting is on Tuesday.) Tj ET";
    pdf("", stream("", contents), &[])
}

#[tokio::test]
async fn a_pdf_is_its_lines() {
    let text = text_of(PDF, &letter()).await.expect("a text");

    let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, ["Liebe Grüße,", "the meeting is on Tuesday."]);
}

#[tokio::test]
async fn what_a_pdf_says_beside_a_picture_is_read() {
    let picture = stream("/Type /XObject /Subtype /Image /Width 1 /Height 1", b"1 0 0 cm (x) Tj \xff\xd8\xff");
    let contents = b"/Im1 Do BT /F1 12 Tf 72 720 Td (below a picture) Tj ET";
    let with_picture = pdf("/XObject << /Im1 6 0 R >>", stream("", contents), &[picture]);

    assert_eq!(text_of(PDF, &with_picture).await, Ok("below a picture".to_owned()));
}

#[tokio::test]
async fn a_docx_is_its_paragraphs_and_tables() {
    let body = "<w:document><w:body>\n\
        <w:p><w:pPr><w:tabs><w:tab w:pos=\"9\"/></w:tabs></w:pPr><w:r><w:t>Tea &amp; </w:t></w:r><w:r>\
        <w:t xml:space=\"preserve\">coffee</w:t><w:tab/><w:t>2 &#8364;</w:t><w:br/><w:t>each</w:t></w:r></w:p><w:p/>\
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>\
        <w:p><w:r><w:delText>gone</w:delText><w:instrText>PAGE</w:instrText><w:t>Yours</w:t></w:r></w:p>\
        <mc:AlternateContent><mc:Choice><w:t>new</w:t></mc:Choice><mc:Fallback><w:t>old</w:t></mc:Fallback></mc:AlternateContent>\
        </w:body></w:document>";

    let text = text_of(DOCX, &docx(body)).await;

    assert_eq!(text, Ok("Tea & coffee\t2 €\neach\na\tb\nYours\nnew".to_owned()));
    // A program that does not know the type sends it as an archive.
    assert_eq!(text_of("application/zip", &docx(body)).await, text);
}

#[tokio::test]
async fn a_workbook_is_its_rows() {
    let shared = b"<sst><si><t>Tea</t></si><si><r><t>Cof</t></r><r><t>fee</t></r><rPh><t>x</t></rPh></si></sst>";
    let first = b"<worksheet><sheetData><row><c r=\"A1\" t=\"s\"><v>1</v></c><c r=\"D1\"><f>1+1</f><v>2</v></c></row>\
        <row><c t=\"inlineStr\"><is><t>3 cups</t></is></c><c t=\"s\"><v>0</v></c></row></sheetData></worksheet>";
    let tenth = b"<worksheet><row><c><v>10</v></c></row></worksheet>";
    let second = b"<worksheet><row><c><v>9</v></c></row></worksheet>";
    let book = zip(&[
        ("xl/workbook.xml", b"<workbook/>"),
        ("xl/sharedStrings.xml", shared),
        ("xl/worksheets/sheet10.xml", tenth),
        ("xl/worksheets/sheet2.xml", second),
        ("xl/worksheets/sheet1.xml", first),
    ]);

    assert_eq!(text_of(XLSX, &book).await, Ok("Coffee\t\t\t2\n3 cups\tTea\n9\n10".to_owned()));
}

#[tokio::test]
async fn slides_and_open_documents_are_read() {
    let slide = |text: &str| format!("<p:sld><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>");
    let (first, second) = (slide("One"), slide("Two"));
    let show = zip(&[
        ("ppt/presentation.xml", b"<p:presentation/>"),
        ("ppt/slides/slide2.xml", second.as_bytes()),
        ("ppt/slides/slide1.xml", first.as_bytes()),
    ]);
    let content = "<office:text><text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:h>Title</text:h>\
        <text:p>two<text:s text:c=\"2\"/>spaces<text:line-break/><text:span>and a line</text:span></text:p></office:text>";
    let text = zip(&[("mimetype", b"x"), ("content.xml", content.as_bytes())]);

    assert_eq!(text_of(PPTX, &show).await, Ok("One\nTwo".to_owned()));
    assert_eq!(text_of(ODT, &text).await, Ok("Title\ntwo  spaces\nand a line".to_owned()));
}

#[tokio::test]
async fn a_page_is_what_is_seen_of_it() {
    let page = "<!DOCTYPE html><html><head><title>Menu</title><style>p { color: red }</style>\
        <script>if (1 < 2) document.write(\"<p>no\")</script></head><body><h1>Today</h1>\n<p>Tea &amp;\n  <b>cof</b>fee</p>\
        <ul><li>one</li><li>two</li></ul><pre>a\n  b</pre><table><tr><td>x</td><td>y</td></tr></table><!-- no --></body>";

    let text = text_of("text/html", page.as_bytes()).await;

    assert_eq!(text, Ok("Menu\nToday\nTea & coffee\n- one\n- two\na\n  b\nx\ty".to_owned()));
}

#[tokio::test]
async fn a_table_in_an_old_encoding_is_read() {
    let text = text_of("text/csv", b"Stadt;Gr\xf6\xdfe\r\nK\xf6ln;1\r\n").await;

    assert_eq!(text, Ok("Stadt;Größe\nKöln;1".to_owned()));
}

/// Zeros of many times the size of this.
fn packed_zeros() -> Vec<u8> {
    const PIECE: usize = 1 << 16;
    let mut deflate = Compress::new(Compression::fast(), false);
    let mut pack = || {
        let mut packed = Vec::with_capacity(PIECE);
        deflate.compress_vec(&vec![0; PIECE], &mut packed, FlushCompress::Full).expect("it is packed");
        packed
    };
    let (first, again) = (pack(), pack());
    [b"\x78\x01".to_vec(), first, again.repeat(1 << 13)].concat()
}

fn pdf_that_draws_itself() -> Vec<u8> {
    let form = stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 1 1] /Resources << /XObject << /F 6 0 R >> >>",
        b"/F Do /F Do",
    );
    pdf("/XObject << /F 6 0 R >>", stream("", b"/F Do"), &[form])
}

fn pdf_of_pages_in_a_circle() -> Vec<u8> {
    pdf_of(&[
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Parent 2 0 R /Count 9 >>".to_vec(),
    ])
}

fn entities() -> Vec<u8> {
    let mut definitions = "<!ENTITY a0 \"ha\">".to_owned();
    for number in 1..30 {
        let last = format!("&a{};", number - 1);
        write!(definitions, "<!ENTITY a{number} \"{}\">", last.repeat(10)).expect("a text");
    }
    docx(&format!("<!DOCTYPE w [{definitions}]><w:p><w:t>&a29;</w:t></w:p>"))
}

fn packed_spaces() -> Vec<u8> {
    docx(&format!("<w:t>{}</w:t>", " ".repeat(64 << 20)))
}

fn half(mut file: Vec<u8>) -> Vec<u8> {
    file.truncate(file.len() / 2);
    file
}

/// Each of them has no text, and soon.
#[rstest]
#[case::a_bomb_in_a_pdf(PDF, pdf("", stream("/Filter /FlateDecode", &packed_zeros()), &[]), &[Unread::TooMuch])]
#[case::a_pdf_that_draws_itself(PDF, pdf_that_draws_itself(), &[Unread::TooMuch])]
#[case::a_pdf_of_pages_in_a_circle(PDF, pdf_of_pages_in_a_circle(), &[Unread::Broken])]
#[case::a_pdf_without_words(PDF, pdf("", stream("", b"0 0 m 9 9 l S"), &[]), &[Unread::Empty])]
#[case::the_beginning_of_a_pdf(PDF, letter()[..40].to_vec(), &[Unread::Broken])]
#[case::a_bomb_in_a_docx(DOCX, packed_spaces(), &[Unread::Empty])]
#[case::entities(DOCX, entities(), &[Unread::Broken])]
#[case::half_a_docx(DOCX, half(docx("<w:t>x</w:t>")), &[Unread::Broken])]
#[case::an_archive(DOCX, zip(&[("a.txt", b"x")]), &[Unread::Empty])]
#[case::an_encrypted_docx(DOCX, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0".to_vec(), &[Unread::Protected])]
#[case::zeros_as_a_pdf(PDF, vec![0; 25 << 20], &[Unread::Broken])]
#[case::zeros_as_a_docx(DOCX, vec![0; 50_000_000], &[Unread::TooMuch])]
#[case::zeros_as_a_page("text/html", vec![0; 25 << 20], &[Unread::Empty])]
#[case::nothing(PDF, Vec::new(), &[Unread::Broken])]
#[tokio::test]
async fn a_file_that_cannot_be_read_costs_little(
    #[case] media_type: &str,
    #[case] file: Vec<u8>,
    #[case] reasons: &[Unread],
) {
    let begun = Instant::now();

    let why = text_of(media_type, &file).await.expect_err("it has no text");

    let took = begun.elapsed();
    assert!(reasons.contains(&why) && took < Duration::from_secs(11), "{why:?} after {took:?}");
}
