//! Converts sounds beside the runtime: few at once, within a time, and what goes wrong is an error.

use std::time::Duration;

use bytes::Bytes;
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::decoding::{ConversionError, Source};

/// How long one conversion may take, with the wait for those before it.
const PATIENCE: Duration = Duration::from_mins(1);

/// How many sounds are converted at once: each keeps a core busy.
static PLACES: Semaphore = Semaphore::const_new(2);

/// Has `write` make another file of a sound, which may be `longest` when it is played. Stops when it is dropped.
pub(crate) async fn convert(
    bytes: Bytes,
    longest: Duration,
    write: fn(&Source) -> Result<Vec<u8>, ConversionError>,
) -> Result<Vec<u8>, ConversionError> {
    let stopped = CancellationToken::new();
    let source = Source { bytes, longest, stopped: stopped.clone() };
    let _stops = stopped.drop_guard();
    let conversion = async {
        let _place = PLACES.acquire().await;
        spawn_blocking(move || write(&source)).await
    };
    match timeout(PATIENCE, conversion).await {
        Ok(Ok(converted)) => converted,
        // It panicked.
        Ok(Err(_)) => Err(ConversionError::Failed),
        Err(_) => Err(ConversionError::TooSlow),
    }
}

#[cfg(test)]
mod tests {
    use opus_pure::{Application, OggOpusWriter, OpusEncoder, OpusHead};
    use rstest::rstest;

    use super::*;
    use crate::{ogg_opus, wav};

    const OGG: &[u8] = include_bytes!("../tests/recordings/tone.ogg");
    const WEBM: &[u8] = include_bytes!("../tests/recordings/tone.webm");
    const MP3: &[u8] = include_bytes!("../tests/recordings/tone.mp3");
    const M4A: &[u8] = include_bytes!("../tests/recordings/tone.m4a");
    const AAC: &[u8] = include_bytes!("../tests/recordings/tone.aac");
    const WAV: &[u8] = include_bytes!("../tests/recordings/tone.wav");

    const MINUTE: Duration = Duration::from_mins(1);

    async fn to_wav(sound: &[u8]) -> Result<Vec<u8>, ConversionError> {
        convert(Bytes::copy_from_slice(sound), MINUTE, wav::write).await
    }

    /// The samples of a WAV file as this crate writes it.
    fn samples(file: &[u8]) -> Vec<i16> {
        let (header, samples) = file.split_at(44);
        let size = u32::try_from(samples.len()).expect("a short one");
        assert_eq!(header[..4], *b"RIFF");
        assert_eq!(header[4..8], (size + 36).to_le_bytes());
        assert_eq!(header[8..36], *b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0");
        assert_eq!(header[36..40], *b"data");
        assert_eq!(header[40..], size.to_le_bytes());
        samples.chunks_exact(2).map(|sample| i16::from_le_bytes([sample[0], sample[1]])).collect()
    }

    /// How often a tone goes up.
    fn waves(samples: &[i16]) -> usize {
        let mut is_up = false;
        let rises = samples.iter().filter(|sample| {
            let was_up = is_up;
            is_up = if was_up { **sample > -1000 } else { **sample > 1000 };
            is_up && !was_up
        });
        rises.count()
    }

    /// Half a second of 440 Hz, made by other encoders. Some add silence before and after it.
    #[rstest]
    #[case(OGG)]
    #[case(WEBM)]
    #[case(MP3)]
    #[case(M4A)]
    #[case(AAC)]
    #[case::two_channels_of_eight_bits(WAV)]
    #[tokio::test]
    async fn a_recording_becomes_what_every_server_takes(#[case] recording: &[u8]) {
        let samples = samples(&to_wav(recording).await.expect("a sound"));

        assert!((7_900..9_600).contains(&samples.len()), "{} samples", samples.len());
        // The first ones of Opus may be too quiet to be counted.
        assert!((218..=221).contains(&waves(&samples)), "{} waves", waves(&samples));
    }

    #[rstest]
    #[case(WAV)]
    #[case(MP3)]
    #[tokio::test]
    async fn what_is_spoken_becomes_a_voice_note_of_the_same_length(#[case] spoken: &'static [u8]) {
        let note = convert(Bytes::from_static(spoken), MINUTE, ogg_opus::write).await.expect("a sound");

        assert!(note.starts_with(b"OggS"));
        // Where the sound ends, as the last page says: 48,000 a second, after 6.5 ms that players leave out.
        let last = note.windows(4).rposition(|bytes| bytes == b"OggS").expect("a page");
        let end = u64::from_le_bytes(note[last + 6..last + 14].try_into().expect("eight bytes"));
        assert!((24_312..27_000).contains(&end), "{end}");
        assert!((219..=221).contains(&waves(&samples(&to_wav(&note).await.expect("it is played")))));
    }

    /// Of packets that are played for 120 ms.
    fn silence(length: Duration) -> Bytes {
        let mut encoder = OpusEncoder::new(8_000, 1, Application::Voip).expect("an encoder");
        let mut packet = vec![0; 1000];
        let size = encoder.encode(&[0.0; 960], 960, &mut packet).expect("a packet");
        let mut file = OggOpusWriter::new(Vec::new(), OpusHead::for_encoder(&encoder, 8_000)).expect("a file");
        for _ in 0..length.as_millis() / 120 {
            file.write_packet(&packet[..size]).expect("it is written");
        }
        file.finish().expect("a file").into()
    }

    #[tokio::test]
    async fn an_hour_of_silence_costs_no_more_than_what_may_be_heard() {
        let hour = silence(Duration::from_hours(1));
        assert!(hour.len() < 4 << 20, "{} bytes", hour.len());

        let heard = convert(hour.clone(), MINUTE, wav::write).await;
        let spoken = convert(hour, MINUTE, ogg_opus::write).await;

        assert_eq!(heard, Err(ConversionError::TooLong(MINUTE)));
        assert_eq!(spoken, Err(ConversionError::TooLong(MINUTE)));
    }

    /// A platform says 60 s of a recording of 60.9 s.
    #[tokio::test]
    async fn a_length_that_was_rounded_down_is_no_reason_to_refuse_it() {
        let heard = convert(silence(MINUTE + Duration::from_millis(960)), MINUTE, wav::write).await;

        assert_eq!(heard.map(|file| file.len()), Ok(44 + 2 * 16 * 60_960));
    }

    #[rstest]
    #[case::nothing(b"", ConversionError::Unknown)]
    #[case::a_text(b"Sorry, that is no sound.", ConversionError::Unknown)]
    #[case::a_page_of_html(b"<!DOCTYPE html><title>502</title>", ConversionError::Unknown)]
    #[case::a_wav_without_samples(&WAV[..44], ConversionError::Empty)]
    #[tokio::test]
    async fn what_is_no_sound_is_refused(#[case] rubbish: &[u8], #[case] why: ConversionError) {
        assert_eq!(to_wav(rubbish).await, Err(why));
    }

    /// Numbers that look random, and are the same in each run.
    fn noise(seed: u32) -> impl Iterator<Item = u8> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
    }

    /// Whatever comes of it: it ends, and it is short.
    async fn is_harmless(sound: &[u8]) {
        if let Ok(file) = to_wav(sound).await {
            assert!(file.len() <= 44 + 2 * 16_000 * 61, "{} bytes", file.len());
        }
    }

    #[rstest]
    #[tokio::test]
    async fn rubbish_is_harmless(#[values(OGG, WEBM, MP3, M4A, AAC, WAV)] recording: &[u8]) {
        for part in 0..20 {
            is_harmless(&recording[..recording.len() * part / 20]).await;
        }
        // A known beginning, and then anything.
        for (seed, kept) in (0..).zip([4, 16, 40, 64, 200]) {
            let mut sound = recording[..kept].to_vec();
            sound.extend(noise(seed).take(20_000));
            is_harmless(&sound).await;
        }
        // Bytes that are wrong here and there.
        for seed in 0..40 {
            let mut sound = recording.to_vec();
            let mut noise = noise(seed);
            for byte in &mut sound {
                if noise.next().is_some_and(|number| number < 4) {
                    *byte = noise.next().unwrap_or_default();
                }
            }
            is_harmless(&sound).await;
        }
    }

    /// A decoder that panics costs its own sound.
    #[tokio::test]
    async fn a_panic_is_an_error() {
        let converted = convert(Bytes::new(), MINUTE, |_| panic!("a packet of no length")).await;

        assert_eq!(converted, Err(ConversionError::Failed));
    }
}
