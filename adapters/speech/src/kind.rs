//! The kind of a sound by its first bytes: the media type that others give may be wrong. Pure.

/// The media type, and the ending of the file name by which servers tell the kind. `None` if the kind is unknown.
pub(crate) fn kind_of(sound: &[u8]) -> Option<(&'static str, &'static str)> {
    let begins = |at: usize, with: &[u8]| sound.get(at..).is_some_and(|rest| rest.starts_with(with));
    match sound {
        _ if begins(0, b"OggS") => Some(("audio/ogg", "ogg")),
        _ if begins(0, b"ID3") => Some(("audio/mpeg", "mp3")),
        _ if begins(0, b"RIFF") && begins(8, b"WAVE") => Some(("audio/wav", "wav")),
        _ if begins(0, b"fLaC") => Some(("audio/flac", "flac")),
        _ if begins(4, b"ftyp") => Some(("audio/mp4", "m4a")),
        // The header of EBML, which Matroska has as well.
        _ if begins(0, &[0x1a, 0x45, 0xdf, 0xa3]) => Some(("audio/webm", "webm")),
        // Both begin with eleven or twelve ones; then AAC has a layer of 0, which MP3 has not.
        [0xff, second, ..] if second & 0xf6 == 0xf0 => Some(("audio/aac", "aac")),
        [0xff, second, ..] if second & 0xe0 == 0xe0 && second & 0x06 != 0 => Some(("audio/mpeg", "mp3")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(b"OggS\0\x02", Some("ogg"))]
    #[case(b"ID3\x04\0", Some("mp3"))]
    #[case(b"\xff\xfb\x90\x64", Some("mp3"))]
    #[case(b"\xff\xf3\x44\xc4", Some("mp3"))]
    #[case(b"\xff\xf1\x50\x80", Some("aac"))]
    #[case(b"RIFF\x24\0\0\0WAVEfmt ", Some("wav"))]
    #[case(b"RIFF\x24\0\0\0AVI LIST", None)]
    #[case(b"\0\0\0\x20ftypM4A ", Some("m4a"))]
    #[case(b"\x1a\x45\xdf\xa3\x01", Some("webm"))]
    #[case(b"fLaC\0", Some("flac"))]
    #[case(b"{\"error\":\"no\"}", None)]
    #[case(b"\xff", None)]
    #[case(b"", None)]
    fn a_sound_is_known_by_its_first_bytes(#[case] sound: &[u8], #[case] ending: Option<&str>) {
        assert_eq!(kind_of(sound).map(|(_, ending)| ending), ending);
    }
}
