//! Measured figures and their targets.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use crate::{disk, machine::Machine};

/// The value of one figure in one round.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    name: String,
    unit: Unit,
    target: Option<Target>,
    value: f64,
}

impl Sample {
    /// A figure without a target.
    pub(crate) fn untargeted(name: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self { name: name.into(), unit, target: None, value }
    }

    /// A figure with a target.
    pub(crate) fn with_target(name: impl Into<String>, value: f64, unit: Unit, target: Target) -> Self {
        Self { name: name.into(), unit, target: Some(target), value }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    Ratio,
    PerSecond,
    Milliseconds,
    Kibibytes,
    Mebibytes,
}

impl Unit {
    /// A value with its unit.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Ratio => format!("{value:.2}"),
            Self::PerSecond => format!("{value:.0}/s"),
            Self::Milliseconds if value.abs() < 100.0 => format!("{value:.2} ms"),
            Self::Milliseconds => format!("{value:.0} ms"),
            Self::Kibibytes => format!("{value:.1} KiB"),
            Self::Mebibytes => format!("{value:.1} MiB"),
        }
    }

    /// Whether a smaller value is better.
    pub(crate) const fn less_is_better(self) -> bool {
        match self {
            Self::Ratio | Self::PerSecond => false,
            Self::Milliseconds | Self::Kibibytes | Self::Mebibytes => true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }

    fn show(self, unit: Unit) -> String {
        match self {
            Self::AtLeast(least) => format!("≥ {}", unit.show(least)),
            Self::AtMost(most) => format!("≤ {}", unit.show(most)),
        }
    }
}

/// The values of one figure in all rounds.
#[derive(Debug, Serialize)]
struct Figure {
    name: String,
    unit: Unit,
    target: Option<Target>,
    rounds: Vec<f64>,
}

/// All figures, in the order they were first measured.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<Figure>);

/// Whether a figure meets its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Pass,
    Miss,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::Miss => "miss",
        })
    }
}

/// The content of the results file.
#[derive(Serialize)]
pub(crate) struct Report<'a> {
    #[serde(flatten)]
    machine: &'a Machine,
    figures: Vec<FigureLine<'a>>,
}

#[derive(Serialize)]
struct FigureLine<'a> {
    #[serde(flatten)]
    figure: &'a Figure,
    median: f64,
    verdict: Option<Verdict>,
}

impl Figure {
    /// With an even number of rounds, the mean of the middle two.
    fn median(&self) -> f64 {
        let mut rounds = self.rounds.clone();
        rounds.sort_by(f64::total_cmp);
        let middle = rounds.len() / 2;
        if rounds.len().is_multiple_of(2) { f64::midpoint(rounds[middle - 1], rounds[middle]) } else { rounds[middle] }
    }

    fn verdict(&self) -> Option<Verdict> {
        self.target.map(|target| if target.is_met(self.median()) { Verdict::Pass } else { Verdict::Miss })
    }
}

impl Figures {
    /// Adds one round's samples.
    pub(crate) fn add(&mut self, samples: Vec<Sample>) {
        for Sample { name, unit, target, value } in samples {
            match self.0.iter_mut().find(|figure| figure.name == name) {
                Some(figure) => figure.rounds.push(value),
                None => self.0.push(Figure { name, unit, target, rounds: vec![value] }),
            }
        }
    }

    /// The median of a figure, if it was measured.
    pub(crate) fn median_of(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|figure| figure.name == name).map(Figure::median)
    }

    /// Name, unit and median of all figures.
    pub(crate) fn medians(&self) -> impl Iterator<Item = (&str, Unit, f64)> {
        self.0.iter().map(|figure| (&*figure.name, figure.unit, figure.median()))
    }

    /// Name, median, target and verdict of all figures; those with a target first.
    fn rows(&self) -> Vec<[String; 4]> {
        let (targeted, untargeted): (Vec<_>, Vec<_>) = self.0.iter().partition(|figure| figure.target.is_some());
        let row = |figure: &Figure| {
            [
                figure.name.clone(),
                figure.unit.show(figure.median()),
                figure.target.map(|target| target.show(figure.unit)).unwrap_or_default(),
                figure.verdict().map(|verdict| verdict.to_string()).unwrap_or_default(),
            ]
        };
        targeted.into_iter().chain(untargeted).map(row).collect()
    }

    /// A table for people.
    pub(crate) fn table(&self) -> String {
        let rows = self.rows();
        let width = |column: usize, title: &str| {
            rows.iter().map(|row| row[column].chars().count()).chain([title.len()]).max().unwrap_or_default()
        };
        let [name, measured, target] =
            [(0, "figure"), (1, "measured"), (2, "target")].map(|(column, title)| width(column, title));
        let mut table = String::new();
        let mut line = |row: [&str; 4]| {
            let line = format!("{:name$}  {:>measured$}  {:>target$}  {}", row[0], row[1], row[2], row[3]);
            writeln!(table, "{}", line.trim_end()).expect("writing to a String cannot fail");
        };
        line(["figure", "measured", "target", ""]);
        for row in &rows {
            line(row.each_ref().map(String::as_str));
        }
        table
    }

    /// The machine, a table of the figures with a target and one of the others, as Markdown.
    pub(crate) fn markdown(&self, machine: &Machine, rounds: u32) -> String {
        let (others, targeted): (Vec<_>, Vec<_>) =
            self.rows().into_iter().partition(|[_, _, target, _]| target.is_empty());
        let lines = |rows: Vec<[String; 4]>, columns: usize| {
            rows.iter().map(|row| format!("| {} |", row[..columns].join(" | "))).collect::<Vec<_>>().join("\n")
        };
        let (targeted, others) = (lines(targeted, 4), lines(others, 2));
        let flush = self.median_of(disk::FLUSH).map(|ms| Unit::Milliseconds.show(ms));
        let flush = flush.map(|time| format!(", {time} for a flush to the disk")).unwrap_or_default();
        format!(
            "{machine}{flush}; medians of {rounds} rounds.\n\n\
             | Figure | measured | target | |\n| --- | ---: | ---: | --- |\n{targeted}\n\n\
             | What they are made of, and the rest | measured |\n| --- | ---: |\n{others}\n"
        )
    }

    /// The results for programs.
    pub(crate) fn report<'a>(&'a self, machine: &'a Machine) -> Report<'a> {
        let line = |figure| FigureLine { figure, median: Figure::median(figure), verdict: Figure::verdict(figure) };
        Report { machine, figures: self.0.iter().map(line).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_medians_beside_their_targets() {
        let mut figures = Figures::default();
        for (ratio, memory) in [(0.4, 10.0), (0.9, 200.0), (0.6, 151.0)] {
            figures.add(vec![
                Sample::untargeted("echo", 12_345.6, Unit::PerSecond),
                Sample::with_target("throughput", ratio, Unit::Ratio, Target::AtLeast(0.5)),
                Sample::with_target("memory", memory, Unit::Mebibytes, Target::AtMost(150.0)),
            ]);
        }
        let table = "\
figure       measured       target
throughput       0.60       ≥ 0.50  pass
memory      151.0 MiB  ≤ 150.0 MiB  miss
echo          12346/s
";
        assert_eq!(figures.table(), table);
    }

    #[test]
    fn figures_without_a_target_have_a_table_of_their_own_in_markdown() {
        let mut figures = Figures::default();
        figures.add(vec![
            Sample::untargeted("echo", 12_345.6, Unit::PerSecond),
            Sample::with_target("throughput", 0.6, Unit::Ratio, Target::AtLeast(0.5)),
        ]);
        let table = "\
; medians of 3 rounds.

| Figure | measured | target | |
| --- | ---: | ---: | --- |
| throughput | 0.60 | ≥ 0.50 | pass |

| What they are made of, and the rest | measured |
| --- | ---: |
| echo | 12346/s |
";
        let markdown = figures.markdown(&Machine::this(2), 3);
        assert!(markdown.ends_with(table), "{markdown}");
    }

    #[test]
    fn less_memory_and_fewer_bytes_are_better() {
        assert_eq!(Unit::Kibibytes.show(12.34), "12.3 KiB");
        assert!(Unit::Kibibytes.less_is_better() && Unit::Mebibytes.less_is_better());
        assert!(!Unit::Ratio.less_is_better() && !Unit::PerSecond.less_is_better());
    }

    #[test]
    fn results_keep_every_round() {
        let mut figures = Figures::default();
        for value in [3.0, 1.0] {
            figures.add(vec![Sample::with_target("start", value, Unit::Milliseconds, Target::AtMost(2.5))]);
        }
        let machine = Machine::this(2);
        let report = serde_json::to_value(figures.report(&machine)).expect("the report is valid JSON");
        let line = serde_json::json!({
            "name": "start", "unit": "milliseconds", "target": { "at_most": 2.5 },
            "rounds": [3.0, 1.0], "median": 2.0, "verdict": "pass",
        });
        assert_eq!(report["cores"], 2);
        assert_eq!(report["figures"], serde_json::json!([line]));
    }
}
