//! What is heard in a sound of one of the usual formats, as samples of one channel. Pure.

use std::{io::Cursor, ops::RangeInclusive, time::Duration};

use bytes::Bytes;
use opus_pure::{MAX_PACKET_SAMPLES, OpusDecoder};
use symphonia::{
    core::{
        codecs::{
            CodecParameters,
            audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions, well_known::CODEC_ID_OPUS},
        },
        formats::{FormatOptions, TrackType, probe::Hint},
        io::{MediaSourceStream, MediaSourceStreamOptions},
        meta::MetadataOptions,
        packet::Packet,
    },
    default::{get_codecs, get_probe},
};
use tokio_util::sync::CancellationToken;

use crate::resampling::Resampler;

/// The samples a second of what is converted.
const RATES: RangeInclusive<u32> = 4_000..=192_000;

/// What platforms tell of a length is rounded down.
const ROUNDING: Duration = Duration::from_secs(1);

/// Behind so many packets that cannot be decoded, none is tried any more.
const MOST_BROKEN: usize = 1000;

/// Why a sound is not converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConversionError {
    #[error("it is no sound of a kind that can be converted")]
    Unknown,
    #[error("nothing in it can be played")]
    Empty,
    #[error("it is longer than {0:?}")]
    TooLong(Duration),
    #[error("converting it takes too long")]
    TooSlow,
    /// A decoder or the encoder panicked, or the encoder refused what no encoder refuses.
    #[error("converting it fails")]
    Failed,
}

/// A sound that is to be converted, and the limits for that.
pub(crate) struct Source {
    pub(crate) bytes: Bytes,
    /// How long it may be when it is played.
    pub(crate) longest: Duration,
    /// Cancelled when nobody waits for it any more.
    pub(crate) stopped: CancellationToken,
}

impl Source {
    /// Passes its samples to `take`, from -1 to 1, `rate` of them a second. What is cut off ends there, and what is broken in its middle is
    /// left out.
    pub(crate) fn samples(
        &self,
        rate: u32,
        mut take: impl FnMut(&[f32]) -> Result<(), ConversionError>,
    ) -> Result<(), ConversionError> {
        let file = Box::new(Cursor::new(self.bytes.clone()));
        let stream = MediaSourceStream::new(file, MediaSourceStreamOptions::default());
        let probed = get_probe().probe(&Hint::new(), stream, FormatOptions::default(), MetadataOptions::default());
        let mut format = probed.map_err(|_| ConversionError::Unknown)?;
        let track = format.default_track(TrackType::Audio).ok_or(ConversionError::Unknown)?;
        let parameters = track.codec_params.as_ref().and_then(CodecParameters::audio);
        let mut decoder = Decoder::new(parameters.ok_or(ConversionError::Unknown)?, rate)?;
        let track = track.id;

        let mut left = u128::from(rate) * (self.longest + ROUNDING).as_millis() / 1000;
        let mut take = |samples: &[f32]| {
            let too_long = ConversionError::TooLong(self.longest);
            left = left.checked_sub(samples.len() as u128).ok_or(too_long)?;
            take(samples)
        };
        let (mut resampler, mut broken) = (None::<(u32, Resampler)>, 0);
        let (mut block, mut samples) = (Vec::new(), Vec::new());
        while broken < MOST_BROKEN
            && let Ok(Some(packet)) = format.next_packet()
        {
            if self.stopped.is_cancelled() {
                return Err(ConversionError::TooSlow);
            }
            if packet.track_id != track {
                continue;
            }
            let Some(its_rate) = decoder.decode(&packet, &mut block).filter(|rate| RATES.contains(rate)) else {
                broken += 1;
                continue;
            };
            if resampler.as_ref().is_none_or(|(from, _)| *from != its_rate) {
                resampler = Some((its_rate, Resampler::new(its_rate, rate)));
            }
            if let Some((_, resampler)) = &mut resampler {
                samples.clear();
                resampler.push(&block, &mut samples);
                take(&samples)?;
            }
        }
        let (_, mut resampler) = resampler.ok_or(ConversionError::Empty)?;
        samples.clear();
        resampler.finish(&mut samples);
        take(&samples)
    }
}

enum Decoder {
    Opus(Box<OpusDecoder>),
    Other(Box<dyn AudioDecoder>),
}

impl Decoder {
    /// Opus is decoded at any of its rates: `rate` is the one that is wanted.
    fn new(parameters: &AudioCodecParameters, rate: u32) -> Result<Self, ConversionError> {
        let decoder = if parameters.codec == CODEC_ID_OPUS {
            let rate = i32::try_from(rate).unwrap_or_default();
            OpusDecoder::new(rate, 1).ok().map(|decoder| Self::Opus(Box::new(decoder)))
        } else {
            get_codecs().make_audio_decoder(parameters, &AudioDecoderOptions::default()).ok().map(Self::Other)
        };
        decoder.ok_or(ConversionError::Unknown)
    }

    /// Replaces `block` by the samples of a packet, of one channel, and gives their rate. `None` if the packet is broken.
    fn decode(&mut self, packet: &Packet, block: &mut Vec<f32>) -> Option<u32> {
        let rate = match self {
            // Of an empty packet it would make something up.
            Self::Opus(_) if packet.data.is_empty() => return None,
            Self::Opus(decoder) => {
                block.resize(MAX_PACKET_SAMPLES, 0.0);
                let count = decoder.decode(&packet.data, MAX_PACKET_SAMPLES, block).ok()?;
                block.truncate(count);
                u32::try_from(decoder.sample_rate()).ok()?
            }
            Self::Other(decoder) => {
                let buffer = decoder.decode(packet).ok()?;
                buffer.copy_to_vec_interleaved(block);
                mix(block, buffer.spec().channels().count())?;
                buffer.spec().rate()
            }
        };
        for sample in block {
            *sample = if sample.is_finite() { sample.clamp(-1.0, 1.0) } else { 0.0 };
        }
        Some(rate)
    }
}

/// Makes one channel of several, whose samples alternate.
fn mix(block: &mut Vec<f32>, channels: usize) -> Option<()> {
    let share = f32::from(u16::try_from(channels).ok().filter(|channels| *channels > 0)?);
    let frames = block.len() / channels;
    for frame in 0..frames {
        let sum: f32 = block[frame * channels..(frame + 1) * channels].iter().sum();
        block[frame] = sum / share;
    }
    block.truncate(frames);
    Some(())
}
