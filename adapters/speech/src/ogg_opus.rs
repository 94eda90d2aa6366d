//! Voice notes: Opus in Ogg, one channel. Pure.

use opus_pure::{Application, Error, MAX_PACKET_BYTES, OggOpusWriter, OpusEncoder, OpusHead, Signal};

use crate::decoding::{ConversionError, Source};

const RATE: u16 = 24_000;
/// What players count in, a second.
const TICKS: usize = 48_000 / RATE as usize;
/// The samples of a packet: 20 ms.
const PACKET: usize = RATE as usize / 50;

pub(crate) fn write(sound: &Source) -> Result<Vec<u8>, ConversionError> {
    let failed = |_: Error| ConversionError::Failed;
    let mut encoder = OpusEncoder::new(RATE.into(), 1, Application::Voip).map_err(failed)?;
    (encoder.bitrate_bps, encoder.complexity, encoder.signal_type) = (32_000, 5, Some(Signal::Voice));
    let head = OpusHead::for_encoder(&encoder, RATE.into());
    let delay = usize::from(head.pre_skip);
    let mut writer = OggOpusWriter::new(Vec::new(), head).map_err(failed)?;
    let (mut packet, mut waiting, mut count) = (vec![0; MAX_PACKET_BYTES], Vec::with_capacity(PACKET), 0);

    sound.samples(RATE.into(), |samples| {
        waiting.extend_from_slice(samples);
        count += samples.len();
        let whole = waiting.len() / PACKET * PACKET;
        for samples in waiting[..whole].chunks_exact(PACKET) {
            let size = encoder.encode(samples, PACKET, &mut packet).map_err(failed)?;
            writer.write_packet(&packet[..size]).map_err(failed)?;
        }
        waiting.drain(..whole);
        Ok(())
    })?;

    // What the encoder still has comes out when silence follows, and the last packet says where the sound ends.
    let end = i64::try_from(delay + count * TICKS).map_err(|_| ConversionError::TooLong(sound.longest))?;
    while let Ok(left @ 1..) = usize::try_from(end - writer.granule()) {
        waiting.resize(PACKET, 0.0);
        let size = encoder.encode(&waiting, PACKET, &mut packet).map_err(failed)?;
        let ticks = u32::try_from(left.min(PACKET * TICKS)).map_err(|_| ConversionError::Failed)?;
        writer.write_packet_with_duration(&packet[..size], ticks).map_err(failed)?;
        waiting.clear();
    }
    writer.finish().map_err(failed)
}
