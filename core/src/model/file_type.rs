//! Media types: checks the type that a sender claims against the bytes of the file. No I/O.

/// The type of bytes of which nothing is known.
const UNKNOWN: &str = "application/octet-stream";

/// How far into a file its header may begin: some programs write a few lines before that of a PDF.
const HEADER_WITHIN: usize = 1024;

/// A kind of file that its bytes show.
struct Kind {
    /// Its media types, the usual one first. Other names of the same type are left out: they become the usual one.
    types: &'static [&'static str],
    /// Whether files of kinds that are not listed here begin in the same way: their claims are believed.
    is_container: bool,
    is_shown_by: fn(&[u8]) -> bool,
}

impl Kind {
    const fn of(types: &'static [&'static str], is_shown_by: fn(&[u8]) -> bool) -> Self {
        Self { types, is_container: false, is_shown_by }
    }

    const fn container(types: &'static [&'static str], is_shown_by: fn(&[u8]) -> bool) -> Self {
        Self { types, is_container: true, is_shown_by }
    }
}

/// The kinds whose type decides how a platform shows a file, or whether a model takes it. If bytes match several, the first one counts.
static KINDS: [Kind; 20] = [
    Kind::of(&["image/png", "image/apng"], |bytes| bytes.starts_with(b"\x89PNG\r\n\x1a\n")),
    Kind::of(&["image/jpeg"], |bytes| bytes.starts_with(b"\xff\xd8\xff")),
    Kind::of(&["image/gif"], |bytes| bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a")),
    Kind::of(&["image/webp"], |bytes| is_riff(bytes, *b"WEBP")),
    Kind::of(&["image/avif"], |bytes| has_brand(bytes, &[b"avif", b"avis"])),
    // The general brands are used for AVIF as well.
    Kind::of(&["image/heic", "image/heif", "image/heic-sequence", "image/heif-sequence", "image/avif"], |bytes| {
        has_brand(bytes, &[b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1"])
    }),
    Kind::of(&["audio/mp4"], |bytes| has_brand(bytes, &[b"M4A ", b"M4B "])),
    // Files from before MP4 have no brand.
    Kind::of(&["video/quicktime"], |bytes| {
        has_brand(bytes, &[b"qt  "])
            || [b"moov", b"mdat", b"wide", b"free"].iter().any(|kind| begins_box(bytes, **kind))
    }),
    Kind::container(
        &["video/mp4", "audio/mp4", "audio/m4a", "audio/x-m4a", "video/x-m4v", "video/3gpp", "audio/3gpp"],
        |bytes| begins_box(bytes, *b"ftyp"),
    ),
    Kind::of(&["video/webm", "audio/webm"], |bytes| {
        is_matroska(bytes) && contains(&bytes[..bytes.len().min(64)], b"webm")
    }),
    Kind::of(&["video/x-matroska", "video/matroska", "audio/x-matroska", "audio/matroska"], is_matroska),
    Kind::of(&["audio/ogg", "video/ogg", "application/ogg", "audio/opus"], |bytes| bytes.starts_with(b"OggS")),
    Kind::of(&["audio/wav"], |bytes| is_riff(bytes, *b"WAVE")),
    Kind::of(&["audio/flac"], |bytes| bytes.starts_with(b"fLaC")),
    Kind::of(&["audio/mpeg"], is_mp3),
    Kind::of(&["audio/aac"], |bytes| matches!(bytes, [0xff, second, ..] if second & 0xf6 == 0xf0)),
    Kind::of(&["audio/amr", "audio/amr-wb"], |bytes| bytes.starts_with(b"#!AMR")),
    Kind::of(&["application/pdf"], |bytes| contains(&bytes[..bytes.len().min(HEADER_WITHIN)], b"%PDF-")),
    // Documents of office programs, books, packages.
    Kind::container(&["application/zip"], |bytes| bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")),
    Kind::container(&["application/gzip"], |bytes| bytes.starts_with(b"\x1f\x8b\x08")),
];

/// The media type of a file with these bytes: what is `claimed` as far as they do not contradict it, else what they show.
pub(crate) fn sniffed(bytes: &[u8], claimed: &str) -> String {
    let essence = claimed.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = claims_text(&essence);
    if is_text && shows_text(bytes) {
        return claimed.to_owned();
    }
    let has_claim = |kind: &Kind| kind.types.contains(&&*essence);
    let is_listed = KINDS.iter().any(has_claim);
    let is_nothing = matches!(&*essence, "" | UNKNOWN | "binary/octet-stream");
    let mut shown = KINDS.iter().filter(|kind| (kind.is_shown_by)(bytes)).peekable();
    match shown.peek() {
        Some(kind) if kind.is_container && !is_listed && !is_text && !is_nothing => claimed.to_owned(),
        Some(kind) => {
            let usual = kind.types[0];
            if shown.any(has_claim) { claimed.to_owned() } else { usual.to_owned() }
        }
        None if is_listed || (is_text && bytes.contains(&0)) => UNKNOWN.to_owned(),
        None => claimed.to_owned(),
    }
}

/// Whether a type is one of texts. A picture may be one: SVG.
fn claims_text(essence: &str) -> bool {
    essence.starts_with("text/") || ["/json", "+json", "/xml", "+xml"].iter().any(|end| essence.ends_with(end))
}

/// Whether bytes are certainly a text. One in an old encoding is not told from other bytes.
fn shows_text(bytes: &[u8]) -> bool {
    let is_utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    is_utf16 || (!bytes.contains(&0) && std::str::from_utf8(bytes).is_ok())
}

/// The four bytes at an offset; zeros if there are not so many.
fn at(bytes: &[u8], offset: usize) -> [u8; 4] {
    bytes.get(offset..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn is_riff(bytes: &[u8], form: [u8; 4]) -> bool {
    at(bytes, 0) == *b"RIFF" && at(bytes, 8) == form
}

/// Whether it begins with such a box of the ISO base media format: a size of less than 16 MiB, and its kind.
fn begins_box(bytes: &[u8], kind: [u8; 4]) -> bool {
    bytes.first() == Some(&0) && at(bytes, 4) == kind
}

/// Whether it is a file of that format with one of these major brands.
fn has_brand(bytes: &[u8], brands: &[&[u8; 4]]) -> bool {
    begins_box(bytes, *b"ftyp") && brands.contains(&&at(bytes, 8))
}

fn is_matroska(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x1a\x45\xdf\xa3")
}

/// Whether it begins with a tag, or with the header of a frame of layer II or III.
fn is_mp3(bytes: &[u8]) -> bool {
    let is_frame = |second: u8, third: u8| {
        let (layer, bitrate, rate) = ((second >> 1) & 3, third >> 4, (third >> 2) & 3);
        second >= 0xe0 && matches!(layer, 1 | 2) && bitrate != 15 && rate != 3
    };
    bytes.starts_with(b"ID3") || matches!(bytes, [0xff, second, third, ..] if is_frame(*second, *third))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    const MP4: &[u8] = b"\0\0\0\x20ftypisom\0\0\x02\0";
    const M4A: &[u8] = b"\0\0\0\x20ftypM4A \0\0\0\0";
    const WEBM: &[u8] = b"\x1a\x45\xdf\xa3\x9f\x42\x82\x84webm";
    const ZIP: &[u8] = b"PK\x03\x04\x14\0";
    const HTML: &[u8] = b"<script>alert(1)</script>";

    #[rstest]
    #[case::a_true_claim(PNG, "image/png", "image/png")]
    #[case::a_false_claim(PNG, "image/jpeg", "image/png")]
    #[case::no_claim(PNG, "", "image/png")]
    #[case::a_claim_that_says_nothing(PNG, "application/octet-stream", "image/png")]
    #[case::another_spelling(b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpg", "image/jpeg")]
    #[case::gif(b"GIF89a\x01\0", "image/png", "image/gif")]
    #[case::webp(b"RIFF\x24\0\0\0WEBPVP8 ", "image/png", "image/webp")]
    #[case::wav(b"RIFF\x24\0\0\0WAVEfmt ", "", "audio/wav")]
    #[case::avif(b"\0\0\0\x20ftypavif\0\0\0\0", "", "image/avif")]
    #[case::heic(b"\0\0\0\x18ftypheic\0\0\0\0", "", "image/heic")]
    #[case::avif_with_a_general_brand(b"\0\0\0\x1cftypmif1\0\0\0\0", "image/avif", "image/avif")]
    #[case::video(MP4, "", "video/mp4")]
    #[case::sound_in_the_container_of_video(MP4, "audio/mp4", "audio/mp4")]
    #[case::sound(M4A, "", "audio/mp4")]
    #[case::sound_by_another_name(M4A, "audio/x-m4a", "audio/x-m4a")]
    #[case::a_raw_photo(b"\0\0\0\x18ftypcrx \0\0\0\x01", "image/x-canon-cr3", "image/x-canon-cr3")]
    #[case::quicktime(b"\0\0\0\x14ftypqt  \0\0\0\0", "", "video/quicktime")]
    #[case::an_old_film(b"\0\0\x10\0moov\0\0\0\x6c", "video/quicktime", "video/quicktime")]
    #[case::a_recording_of_a_browser(WEBM, "audio/webm;codecs=opus", "audio/webm;codecs=opus")]
    #[case::webm(WEBM, "", "video/webm")]
    #[case::matroska(b"\x1a\x45\xdf\xa3\xa3\x42\x82\x88matroska", "", "video/x-matroska")]
    #[case::a_voice_note(b"OggS\0\x02", "audio/ogg; codecs=opus", "audio/ogg; codecs=opus")]
    #[case::tagged_mp3(b"ID3\x04\0\0", "", "audio/mpeg")]
    #[case::mp3(b"\xff\xfb\x90\x64", "audio/mp3", "audio/mpeg")]
    #[case::aac(b"\xff\xf1\x50\x80", "", "audio/aac")]
    #[case::pdf(b"%PDF-1.7\n%\xe2\xe3", "image/png", "application/pdf")]
    #[case::pdf_after_other_lines(b"\x1b%-12345X@PJL\r\n%PDF-1.4\n\0", "", "application/pdf")]
    #[case::zip(ZIP, "", "application/zip")]
    #[case::a_document(ZIP, "application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text")]
    #[case::a_zip_that_is_no_picture(ZIP, "image/png", "application/zip")]
    #[case::a_zip_that_is_no_text(ZIP, "text/html", "application/zip")]
    #[case::a_packed_archive(b"\x1f\x8b\x08\0", "application/x-tgz", "application/x-tgz")]
    fn a_type_is_what_the_bytes_show(#[case] bytes: &[u8], #[case] claimed: &str, #[case] expected: &str) {
        assert_eq!(sniffed(bytes, claimed), expected);
    }

    #[rstest]
    #[case::a_page_as_a_picture(HTML, "image/png", UNKNOWN)]
    #[case::a_page_as_a_film(HTML, "video/mp4", UNKNOWN)]
    #[case::a_page(HTML, "text/html", "text/html")]
    #[case::a_drawing(b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "image/svg+xml", "image/svg+xml")]
    #[case::a_picture_as_a_drawing(PNG, "image/svg+xml", "image/png")]
    #[case::a_picture_as_a_text(PNG, "text/plain", "image/png")]
    #[case::a_text_about_a_format(b"%PDF- is how a PDF begins", "text/plain", "text/plain")]
    #[case::a_text_that_is_no_film(b"The free film", "application/octet-stream", "application/octet-stream")]
    #[case::a_text_of_two_letters(b"BM", "text/plain; charset=utf-8", "text/plain; charset=utf-8")]
    #[case::an_old_encoding(b"Gr\xfc\xdfe", "text/plain", "text/plain")]
    #[case::utf16(b"\xff\xfeH\0i\0", "text/csv", "text/csv")]
    #[case::bytes_as_a_text(b"\x7fELF\x02\x01\0", "text/plain", UNKNOWN)]
    #[case::bytes_as_json(b"\0\x01\x02", "application/json", UNKNOWN)]
    #[case::what_is_not_listed(b"\x7fELF\x02\x01\0", "application/x-executable", "application/x-executable")]
    #[case::nothing(b"", "image/png", UNKNOWN)]
    #[case::too_short(b"\xff", "audio/mpeg", UNKNOWN)]
    fn a_claim_is_believed_as_far_as_nothing_contradicts_it(
        #[case] bytes: &[u8],
        #[case] claimed: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(sniffed(bytes, claimed), expected);
    }
}
