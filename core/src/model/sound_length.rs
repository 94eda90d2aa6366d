//! How long a sound is, as its own headers say. Pure. What they say may be wrong.

use std::time::Duration;

/// How many bytes a second of a sound has at most: one without compression has 176,400.
const MOST_A_SECOND: usize = 200_000;

/// How many whole seconds a sound lasts at least, as far as its headers and its size say.
pub(crate) fn least_seconds(sound: &[u8]) -> u64 {
    let by_size = u64::try_from(sound.len() / MOST_A_SECOND).unwrap_or(u64::MAX);
    let by_header = length(sound).map_or(0, |length| length.as_secs() + u64::from(length.subsec_nanos() > 0));
    by_size.max(by_header)
}

/// The length of a sound in Ogg, WAV, MP4, FLAC or MP3, if its headers have it.
fn length(sound: &[u8]) -> Option<Duration> {
    let begins = |at: usize, with: &[u8]| sound.get(at..).is_some_and(|rest| rest.starts_with(with));
    match sound {
        _ if begins(0, b"OggS") => ogg(sound),
        _ if begins(0, b"RIFF") && begins(8, b"WAVE") => wav(sound),
        _ if begins(4, b"ftyp") => mp4(sound),
        _ if begins(0, b"fLaC") => flac(sound),
        _ if begins(0, b"ID3") => mp3(sound.get(10 + syncsafe(sound.get(6..10)?)..)?),
        _ => mp3(sound),
    }
}

fn of(units: u64, a_second: u64) -> Option<Duration> {
    // What is unknown is often a zero, or all ones.
    if a_second == 0 || units == 0 || units > i64::MAX.unsigned_abs() {
        return None;
    }
    let millis = (u128::from(units) * 1000).div_ceil(u128::from(a_second));
    u64::try_from(millis).ok().map(Duration::from_millis)
}

/// `width` bytes as a number.
fn number(sound: &[u8], at: usize, width: usize, is_big: bool) -> Option<u64> {
    let bytes = sound.get(at..at.checked_add(width)?)?;
    let add = |number: u64, byte: &u8| (number << 8) | u64::from(*byte);
    Some(if is_big { bytes.iter().fold(0, add) } else { bytes.iter().rfold(0, add) })
}

fn little(sound: &[u8], at: usize, width: usize) -> Option<u64> {
    number(sound, at, width, false)
}

fn big(sound: &[u8], at: usize, width: usize) -> Option<u64> {
    number(sound, at, width, true)
}

/// Seven bits of each byte.
fn syncsafe(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |size, byte| (size << 7) | usize::from(byte & 0x7f))
}

/// The position at the end of the last page, in samples (RFC 3533; Opus always counts 48,000 a second, RFC 7845).
fn ogg(sound: &[u8]) -> Option<Duration> {
    let first = sound.get(27 + usize::from(*sound.get(26)?)..)?;
    let rate = match first {
        _ if first.starts_with(b"OpusHead") => 48_000,
        _ if first.starts_with(b"\x01vorbis") => little(first, 12, 4)?,
        _ if first.starts_with(b"Speex   ") => little(first, 36, 4)?,
        _ => return None,
    };
    let last = sound.windows(4).rposition(|page| page == b"OggS")?;
    of(little(sound, last + 6, 8)?, rate)
}

/// The bytes of its samples, and how many of them a second has.
fn wav(sound: &[u8]) -> Option<Duration> {
    let (mut at, mut rate) = (12, None);
    loop {
        let (name, size) = (sound.get(at..at + 4)?, usize::try_from(little(sound, at + 4, 4)?).ok()?);
        let content = at + 8;
        match name {
            b"fmt " => rate = little(sound, content + 8, 4),
            // A program that writes while it records may not know the size.
            b"data" => return of(u64::try_from(size.min(sound.len() - content)).ok()?, rate?),
            _ => {}
        }
        at = content.checked_add(size)?.checked_add(size % 2)?;
    }
}

/// The length in the header of the movie (ISO/IEC 14496-12, `mvhd`).
fn mp4(sound: &[u8]) -> Option<Duration> {
    let header = sound.windows(4).position(|name| name == b"mvhd")? + 4;
    let is_long = *sound.get(header)? == 1;
    let (scale, units, width) = if is_long { (header + 20, header + 24, 8) } else { (header + 12, header + 16, 4) };
    let unknown = if is_long { u64::MAX } else { u64::from(u32::MAX) };
    of(big(sound, units, width).filter(|units| *units != unknown)?, big(sound, scale, 4)?)
}

/// The samples that the first block counts (RFC 9639).
fn flac(sound: &[u8]) -> Option<Duration> {
    let block = big(sound, 18, 8)?;
    of(block & 0xf_ffff_ffff, block >> 44)
}

/// As if all frames were like the first one: one layer III frame after the other.
fn mp3(sound: &[u8]) -> Option<Duration> {
    const KILOBITS: [[u64; 15]; 2] = [
        [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
        [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    ];
    let (first, second, third) = (*sound.first()?, *sound.get(1)?, *sound.get(2)?);
    if first != 0xff || second & 0xe6 != 0xe2 {
        return None;
    }
    let is_first_version = second & 0x18 == 0x18;
    let kilobits = KILOBITS[usize::from(!is_first_version)].get(usize::from(third >> 4))?;
    of(u64::try_from(sound.len()).ok()? * 8, kilobits * 1000)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A page of Ogg with this position at its end.
    fn page(position: u64, content: &[u8]) -> Vec<u8> {
        let mut page = [&b"OggS\0\0"[..], &position.to_le_bytes(), &[0; 12], &[1, 0]].concat();
        page[27] = u8::try_from(content.len()).expect("it is short");
        [&page[..], content].concat()
    }

    fn opus(samples: u64) -> Vec<u8> {
        [page(0, b"OpusHead\x01\x01\x38\x01\x80\xbb\0\0\0\0\0"), page(samples, b"sound")].concat()
    }

    fn vorbis(samples: u64) -> Vec<u8> {
        [page(0, b"\x01vorbis\0\0\0\0\x01\x44\xac\0\0"), page(samples, b"sound")].concat()
    }

    fn wav_of(size: u32, samples: usize) -> Vec<u8> {
        let format =
            [&b"fmt \x10\0\0\0"[..], &[1, 0, 1, 0], &16_000u32.to_le_bytes(), &32_000u32.to_le_bytes(), &[2, 0, 16, 0]];
        [
            &b"RIFF\0\0\0\0WAVELIST\x03\0\0\0abc\0"[..],
            &format.concat()[..],
            b"data",
            &size.to_le_bytes(),
            &vec![0; samples][..],
        ]
        .concat()
    }

    fn mp4_of(units: u32) -> Vec<u8> {
        let header = [&b"\0\0\0\x6cmvhd\0\0\0\0"[..], &[0; 8], &1000u32.to_be_bytes(), &units.to_be_bytes()];
        [&b"\0\0\0\x14ftypM4A \0\0\0\0mdatsound"[..], &header.concat()[..]].concat()
    }

    fn flac_of(samples: u64) -> Vec<u8> {
        let block = (44_100 << 44) | samples;
        [&b"fLaC\0\0\0\x22"[..], &[0; 10], &u64::to_be_bytes(block), &[0; 16]].concat()
    }

    #[rstest]
    #[case::opus(opus(3 * 48_000), Some(3000))]
    #[case::opus_that_was_cut(opus(u64::MAX), None)]
    #[case::vorbis(vorbis(44_100 / 2), Some(500))]
    #[case::another_ogg(page(7, b"theora"), None)]
    #[case::wav(wav_of(64_000, 64_000), Some(2000))]
    #[case::wav_of_unknown_size(wav_of(u32::MAX, 32_000), Some(1000))]
    #[case::mp4(mp4_of(2500), Some(2500))]
    #[case::mp4_of_fragments(mp4_of(0), None)]
    #[case::mp4_of_unknown_length(mp4_of(u32::MAX), None)]
    #[case::flac(flac_of(88_200), Some(2000))]
    #[case::mp3([&b"\xff\xfb\x90\x64"[..], &b"\0".repeat(31_996)].concat(), Some(2000))]
    #[case::mp3_with_tags([&b"ID3\x04\0\0\0\0\x01\x00"[..], &[0; 128], b"\xff\xf3\x40\xc4", &[0; 3996]].concat(), Some(1000))]
    #[case::aac(b"\xff\xf1\x50\x80 and more".to_vec(), None)]
    #[case::no_sound(b"<html>".to_vec(), None)]
    #[case::nothing(Vec::new(), None)]
    fn a_length_is_read_from_the_headers(#[case] sound: Vec<u8>, #[case] millis: Option<u64>) {
        assert_eq!(length(&sound), millis.map(Duration::from_millis));
    }

    /// Whatever is cut off.
    #[test]
    fn no_header_breaks_it() {
        for sound in [opus(5), vorbis(5), wav_of(9, 9), mp4_of(5), flac_of(5), b"ID3\x04\0\0\x7f\x7f\x7f\x7f".to_vec()]
        {
            for end in 0..sound.len() {
                let _ = length(&sound[..end]);
            }
        }
    }

    #[test]
    fn a_second_is_one_that_has_begun_or_that_the_bytes_need() {
        let seconds = [opus(1), opus(48_001), vec![0; MOST_A_SECOND * 3]].map(|sound| least_seconds(&sound));

        assert_eq!(seconds, [1, 2, 3]);
    }
}
