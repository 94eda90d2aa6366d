//! WAV files that every server for recordings takes: one channel, 16,000 samples a second, of 16 bits. Pure.

use crate::decoding::{ConversionError, Source};

const RATE: u32 = 16_000;

pub(crate) fn write(sound: &Source) -> Result<Vec<u8>, ConversionError> {
    let mut file = header(0);
    let start = file.len();
    sound.samples(RATE, |samples| {
        file.extend(samples.iter().flat_map(|sample| sixteen_bits(*sample).to_le_bytes()));
        Ok(())
    })?;
    let size = u32::try_from(file.len() - start).map_err(|_| ConversionError::TooLong(sound.longest))?;
    file[..start].copy_from_slice(&header(size));
    Ok(file)
}

/// What stands before so many bytes of samples.
fn header(size: u32) -> Vec<u8> {
    let (one, sixteen, bytes) = (1u16.to_le_bytes(), 16u16.to_le_bytes(), 2u16.to_le_bytes());
    let parts: [&[u8]; 12] = [
        b"RIFF",
        &size.saturating_add(36).to_le_bytes(),
        b"WAVEfmt ",
        &16u32.to_le_bytes(),
        // Samples without compression, in one channel.
        &one,
        &one,
        &RATE.to_le_bytes(),
        &(RATE * 2).to_le_bytes(),
        &bytes,
        &sixteen,
        b"data",
        &size.to_le_bytes(),
    ];
    parts.concat()
}

#[expect(clippy::cast_possible_truncation, reason = "the sample is from -1 to 1")]
fn sixteen_bits(sample: f32) -> i16 {
    (sample * f32::from(i16::MAX)).round() as i16
}
