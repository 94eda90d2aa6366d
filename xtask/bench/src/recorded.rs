//! Compares measured figures with those that were recorded at an earlier commit.

use std::{fmt, fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::figures::{Figures, Unit};

/// A figure falls short if it is worse than this share of the recorded median.
const LEAST: f64 = 0.9;

/// How often what falls short is measured, of which the best counts: another program may have used the machine.
const TRIES: u32 = 3;

/// The results of an earlier run.
#[derive(Deserialize)]
pub(crate) struct Recorded {
    commit: String,
    date: String,
    cores: usize,
    cpu: String,
    figures: Vec<RecordedFigure>,
}

#[derive(Deserialize)]
struct RecordedFigure {
    name: String,
    unit: Unit,
    median: f64,
}

/// A figure beside the recorded one.
#[derive(Clone, Debug, PartialEq)]
struct Comparison {
    name: String,
    unit: Unit,
    recorded: f64,
    measured: f64,
}

impl Comparison {
    /// Whether it may fail. Throughput and times depend on the machine and are only shown.
    fn counts(&self) -> bool {
        matches!(self.unit, Unit::Ratio | Unit::Kibibytes | Unit::Mebibytes)
    }

    /// 1 if nothing changed, less if it became worse.
    fn share(&self) -> f64 {
        if self.unit.less_is_better() { self.recorded / self.measured } else { self.measured / self.recorded }
    }

    /// The better one of two measurements of the figure.
    fn better(self, other: &Self) -> Self {
        if other.share() > self.share() { other.clone() } else { self }
    }

    fn falls_short(&self) -> bool {
        let share = self.share();
        self.counts() && (share.is_nan() || share < LEAST)
    }

    fn verdict(&self) -> &'static str {
        match (self.counts(), self.falls_short()) {
            (true, true) => "WORSE",
            (true, false) => "ok",
            (false, _) => "",
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, unit, recorded, measured } = self;
        let times = measured / recorded;
        write!(f, "{name}: {}, recorded {} ({times:.2} of it", unit.show(*measured), unit.show(*recorded))?;
        match (self.falls_short(), unit.less_is_better()) {
            (true, true) => write!(f, ", at most {:.2} is allowed)", 1.0 / LEAST),
            (true, false) => write!(f, ", at least {LEAST} is expected)"),
            (false, _) => write!(f, ")"),
        }
    }
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "recorded at commit {} on {} ({}, {} cores used)", self.commit, self.date, self.cpu, self.cores)
    }
}

impl Recorded {
    /// Reads the results of an earlier run.
    ///
    /// # Errors
    ///
    /// When there are none, or the file was written by another version.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let read = || anyhow::Ok(serde_json::from_slice(&fs::read(path)?)?);
        read().with_context(|| {
            format!("no recorded figures in {}; `cargo xtask bench --record` writes them", path.display())
        })
    }

    /// Measures, and compares with the recorded figures. What falls short is measured again.
    ///
    /// # Errors
    ///
    /// When a figure falls short every time, or cannot be measured or compared.
    pub(crate) async fn check(&self, mut measure: impl AsyncFnMut() -> Result<Figures>) -> Result<()> {
        println!("{self}");
        let mut still_short: Option<Vec<Comparison>> = None;
        for attempt in 1..=TRIES {
            let measured = measure().await?;
            let compared = self.compare(&measured)?;
            for comparison in &compared {
                println!("{:5} {comparison}", comparison.verdict());
            }
            for line in self.not_recorded(&measured) {
                println!("      {line}");
            }
            let mut short: Vec<_> = compared.into_iter().filter(Comparison::falls_short).collect();
            if let Some(before) = &still_short {
                let best = |now: Comparison| {
                    let earlier = before.iter().find(|earlier| earlier.name == now.name)?;
                    Some(now.better(earlier))
                };
                short = short.into_iter().filter_map(best).collect();
            }
            if short.is_empty() {
                if attempt > 1 {
                    println!("every figure was good enough at least once: what fell short was noise");
                }
                return Ok(());
            }
            if attempt < TRIES {
                println!("measuring again ({} of {TRIES}), as it may be noise", attempt + 1);
            }
            still_short = Some(short);
        }
        let short = still_short.unwrap_or_default();
        let lines: Vec<_> = short.iter().map(|comparison| format!("\n  {comparison}")).collect();
        bail!("fell short in {TRIES} of {TRIES} measurements; {self}:{}", lines.concat())
    }

    /// Compares with all recorded figures.
    fn compare(&self, measured: &Figures) -> Result<Vec<Comparison>> {
        let comparisons = self.figures.iter().map(|figure| {
            let RecordedFigure { name, unit, median } = figure;
            let measured = measured.median_of(name).with_context(|| {
                format!("`{name}` was recorded and is not measured any more; run `cargo xtask bench --record`")
            })?;
            ensure!(median.is_finite() && *median > 0.0, "the recorded value of `{name}` is {median}");
            Ok(Comparison { name: name.clone(), unit: *unit, recorded: *median, measured })
        });
        let comparisons: Vec<_> = comparisons.collect::<Result<_>>()?;
        ensure!(comparisons.iter().any(Comparison::counts), "no ratio is recorded; run `cargo xtask bench --record`");
        Ok(comparisons)
    }

    /// The measured figures that are newer than the recorded ones, for people.
    fn not_recorded(&self, measured: &Figures) -> Vec<String> {
        let is_new = |name: &str| !self.figures.iter().any(|figure| figure.name == name);
        let new = measured.medians().filter(|(name, ..)| is_new(name));
        new.map(|(name, unit, value)| format!("{name}: {}, not recorded", unit.show(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Sample;

    fn recorded() -> Recorded {
        let figure = |name: &str, unit, median| RecordedFigure { name: name.to_owned(), unit, median };
        Recorded {
            commit: "0123456789".to_owned(),
            date: "2026-01-31".to_owned(),
            cores: 2,
            cpu: "a CPU".to_owned(),
            figures: vec![
                figure("16 callers", Unit::Ratio, 0.30),
                figure("64 callers", Unit::Ratio, 0.50),
                figure("idle", Unit::Mebibytes, 20.0),
                figure("gateway", Unit::PerSecond, 5000.0),
            ],
        }
    }

    fn measured([few, many, idle]: [f64; 3]) -> Figures {
        let mut figures = Figures::default();
        figures.add(vec![
            Sample::untargeted("16 callers", few, Unit::Ratio),
            Sample::untargeted("64 callers", many, Unit::Ratio),
            Sample::untargeted("idle", idle, Unit::Mebibytes),
            Sample::untargeted("gateway", 1.0, Unit::PerSecond),
        ]);
        figures
    }

    /// The names that fall short.
    fn short(values: [f64; 3]) -> Vec<String> {
        let compared = recorded().compare(&measured(values)).expect("everything is measured");
        compared.into_iter().filter(Comparison::falls_short).map(|it| it.name).collect()
    }

    /// Checks against one result after the other. Returns the outcome and how many were measured.
    async fn check(results: &[[f64; 3]]) -> (Result<()>, usize) {
        let mut left = results.iter();
        let outcome = recorded().check(async || Ok(measured(*left.next().context("measured too often")?))).await;
        (outcome, results.len() - left.len())
    }

    #[test]
    fn a_figure_may_lose_a_tenth() {
        assert_eq!(short([0.30, 0.50, 20.0]), [""; 0]);
        assert_eq!(short([0.28, 0.46, 22.1]), [""; 0]);
        assert_eq!(short([0.90, 1.50, 2.0]), [""; 0]);
        assert_eq!(short([0.26, 0.50, 20.0]), ["16 callers"]);
        assert_eq!(short([0.30, 0.44, 22.3]), ["64 callers", "idle"]);
        assert_eq!(short([f64::NAN, 0.50, 20.0]), ["16 callers"]);
    }

    #[test]
    fn a_figure_that_is_not_measured_is_an_error() {
        let error = recorded().compare(&Figures::default()).expect_err("nothing is measured");
        assert!(error.to_string().contains("`16 callers` was recorded and is not measured"), "{error}");
    }

    #[test]
    fn a_figure_that_is_not_recorded_is_shown_and_does_not_fail() {
        let mut figures = measured([0.30, 0.50, 20.0]);
        figures.add(vec![Sample::untargeted("written", 99.0, Unit::Kibibytes)]);

        let compared = recorded().compare(&figures).expect("everything recorded is measured");

        assert!(!compared.iter().any(Comparison::falls_short), "{compared:?}");
        assert_eq!(recorded().not_recorded(&figures), ["written: 99.0 KiB, not recorded"]);
    }

    #[test]
    fn more_written_bytes_fall_short() {
        let written =
            |measured| Comparison { name: "written".to_owned(), unit: Unit::Kibibytes, recorded: 10.0, measured };
        assert!(written(11.2).falls_short() && !written(11.1).falls_short());
    }

    #[tokio::test]
    async fn good_figures_are_measured_once() {
        let (outcome, count) = check(&[[0.30, 0.50, 20.0], [0.0, 0.0, 0.0]]).await;
        assert!(outcome.is_ok() && count == 1, "{outcome:?}");
    }

    #[tokio::test]
    async fn a_figure_that_falls_short_once_is_noise() {
        let (outcome, count) = check(&[[0.10, 0.50, 20.0], [0.30, 0.10, 20.0], [0.0, 0.0, 0.0]]).await;
        assert!(outcome.is_ok() && count == 2, "{outcome:?}");
    }

    #[tokio::test]
    async fn a_figure_that_always_falls_short_fails() {
        let (outcome, count) = check(&[[0.10, 0.10, 20.0], [0.30, 0.35, 20.0], [0.30, 0.20, 40.0]]).await;
        let error = outcome.expect_err("64 callers were always short").to_string();
        assert_eq!(count, 3);
        assert!(error.contains("64 callers: 0.35, recorded 0.50 (0.70 of it, at least 0.9 is expected)"), "{error}");
        assert!(!error.contains("16 callers") && !error.contains("idle"), "{error}");
    }

    #[tokio::test]
    async fn more_memory_falls_short() {
        let (outcome, _) = check(&[[0.30, 0.50, 30.0]; 3]).await;
        let error = outcome.expect_err("more memory").to_string();
        assert!(error.contains("idle: 30.0 MiB, recorded 20.0 MiB (1.50 of it, at most 1.11 is allowed)"), "{error}");
    }
}
