//! Another number of samples a second, by a sinc with a window. Pure.

use std::f32::consts::PI;

/// Half the width of the filter, in samples of the lower rate.
const HALF: u16 = 16;

/// The most filters there are: the place of an output sample between two of the input is rounded to one of so many.
const MOST_FILTERS: usize = 1024;

pub(crate) struct Resampler {
    /// One for each place of an output sample between two of the input.
    filters: Vec<Vec<f32>>,
    /// An output sample is `from / to` input samples after the one before it.
    from: usize,
    to: usize,
    /// What the next output sample is made of, and what comes after that.
    input: Vec<f32>,
    /// How far the next output sample is behind an input sample, in `1 / to`.
    behind: usize,
}

impl Resampler {
    /// `from` is at most a hundred times `to`.
    pub(crate) fn new(from: u32, to: u32) -> Self {
        let divisor = greatest_common_divisor(from, to);
        let (from, to) = ((from / divisor) as usize, (to / divisor) as usize);
        let half = (usize::from(HALF) * from).div_ceil(to).max(usize::from(HALF));
        let half = u16::try_from(half).unwrap_or(100 * HALF);
        let places = u16::try_from(to.min(MOST_FILTERS)).unwrap_or(1);
        let filters = (0..places).map(|place| filter(half, f32::from(place) / f32::from(places))).collect();
        // Before the first sample there is silence.
        Self { filters, from, to, input: vec![0.0; usize::from(half) - 1], behind: 0 }
    }

    /// Adds input, and the output that it completes.
    pub(crate) fn push(&mut self, samples: &[f32], output: &mut Vec<f32>) {
        self.input.extend_from_slice(samples);
        let width = self.width();
        let mut at = 0;
        while let Some(samples) = self.input.get(at..at + width) {
            let filter = &self.filters[self.behind * self.filters.len() / self.to];
            output.push(samples.iter().zip(filter).map(|(sample, weight)| sample * weight).sum());
            let next = self.behind + self.from;
            at += next / self.to;
            self.behind = next % self.to;
        }
        self.input.drain(..at);
    }

    /// Adds the output that silence after the last sample completes.
    pub(crate) fn finish(&mut self, output: &mut Vec<f32>) {
        let silence = vec![0.0; self.width() / 2];
        self.push(&silence, output);
    }

    fn width(&self) -> usize {
        self.filters[0].len()
    }
}

/// The weights of `half` input samples until an output sample, which is `behind` the last of these, and of `half` after it.
fn filter(half: u16, behind: f32) -> Vec<f32> {
    let half_width = f32::from(half);
    let cutoff = f32::from(HALF) / half_width;
    let weight = |place: u16| {
        let distance = f32::from(place) + 1.0 - half_width - behind;
        let window = f32::midpoint(1.0, (PI * distance / half_width).cos());
        sinc(PI * cutoff * distance) * window
    };
    let weights: Vec<f32> = (0..2 * half).map(weight).collect();
    let sum: f32 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

fn sinc(angle: f32) -> f32 {
    if angle.abs() < 1e-6 { 1.0 } else { angle.sin() / angle }
}

fn greatest_common_divisor(mut one: u32, mut other: u32) -> u32 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A second of a tone.
    fn tone(rate: u16, frequency: u32) -> Vec<f32> {
        let part = |at: u16| u16::try_from(u32::from(at) * frequency % u32::from(rate)).expect("below the rate");
        (0..rate).map(|at| (2.0 * PI * f32::from(part(at)) / f32::from(rate)).sin()).collect()
    }

    /// In blocks of different sizes, as decoders give them.
    fn resampled(samples: &[f32], from: u16, to: u16) -> Vec<f32> {
        let (mut resampler, mut output) = (Resampler::new(from.into(), to.into()), Vec::new());
        let (first, rest) = samples.split_at(1);
        for block in [first].into_iter().chain(rest.chunks(777)) {
            resampler.push(block, &mut output);
        }
        resampler.finish(&mut output);
        output
    }

    #[rstest]
    #[case(16_000, 16_000)]
    #[case(48_000, 16_000)]
    #[case(44_100, 16_000)]
    #[case(22_050, 24_000)]
    #[case(8_000, 16_000)]
    #[case(11_025, 16_000)]
    #[case::odd_rates(44_101, 16_000)]
    fn a_tone_is_the_same_tone(#[case] from: u16, #[case] to: u16) {
        let output = resampled(&tone(from, 440), from, to);

        assert_eq!(output.len(), usize::from(to));
        // Its ends are beside silence.
        let edge = usize::from(to) / 100;
        let same = output.iter().zip(tone(to, 440)).map(|(one, other)| (one - other).abs());
        let worst = same.skip(edge).take(usize::from(to) - 2 * edge).fold(0.0, f32::max);
        assert!(worst < 0.01, "{worst}");
    }

    /// Otherwise it would be heard as a lower tone.
    #[test]
    fn a_tone_that_the_lower_rate_cannot_have_is_not_heard() {
        let output = resampled(&tone(48_000, 12_000), 48_000, 16_000);

        let middle = &output[160..output.len() - 160];
        assert!(middle.iter().all(|sample| sample.abs() < 0.01));
    }
}
