//! The result of a run as Markdown.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::Serialize;

use crate::{
    alerts,
    judge::Verdict,
    machine::Machine,
    process::{Sample, Treatment},
};

/// How often each platform failed, by kind of failure.
pub(crate) type Faults = BTreeMap<&'static str, BTreeMap<&'static str, u32>>;

/// A run and its result.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    #[serde(flatten)]
    pub(crate) machine: Machine,
    pub(crate) minutes: f64,
    pub(crate) seed: u64,
    pub(crate) flood: usize,
    /// Seconds from the end of all failures until nothing was owed; `None` if that did not happen.
    pub(crate) settled_after: Option<f64>,
    /// Messages that no platform had accepted at the end.
    pub(crate) not_accepted: usize,
    /// Failures of each platform, by kind.
    pub(crate) faults: Faults,
    pub(crate) treatment: Treatment,
    pub(crate) alerts: alerts::Verdict,
    pub(crate) verdict: Verdict,
}

impl Summary {
    /// What must be 0, with names for the table.
    fn failures(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let others = [
            ("not accepted at the end", self.not_accepted),
            ("ended by itself, or not when asked", (self.treatment.crashes + self.treatment.stuck) as usize),
            ("alerts that were wrong, missing or repeated", self.alerts.problems.len()),
        ];
        self.verdict.failures().into_iter().chain(others)
    }

    /// Whether everything that must be 0 is 0, and somebody wrote.
    pub(crate) fn is_good(&self) -> bool {
        self.failures().all(|(_, count)| count == 0) && self.verdict.total().said > 0
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing to a string succeeds");
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let (total, treatment) = (self.verdict.total(), &self.treatment);
        writeln!(
            out,
            "{}, {:.0} minutes, seed {}, {} cores, {:.0} GiB of memory.\n",
            self.machine.date, self.minutes, self.seed, self.machine.cores, self.machine.memory_gib
        )?;
        writeln!(out, "| Result | |\n| --- | ---: |\n| messages, and turns for them | {} |", total.said)?;
        for (name, count) in self.failures() {
            writeln!(out, "| **{name}** | **{count}** |")?;
        }
        let settled = self.settled_after.map_or("never".to_owned(), |after| format!("{after:.1} s"));
        writeln!(out, "| copies with a label | {} |\n| dead letters | {} |", total.labelled, total.dead_letters)?;
        writeln!(out, "| leftovers (unfinished answers, extra deferrals) | {} |", total.leftovers)?;
        let alerts::Verdict { told, over, lasting, .. } = &self.alerts;
        writeln!(out, "| troubles told, and told to be over | {told}, {over} |")?;
        writeln!(out, "| troubles of at least 10 s in one life of the process | {lasting} |")?;
        writeln!(out, "| nothing owed after the last failure ended | {settled} |\n")?;

        writeln!(
            out,
            "| Signals | answers | reactions | ladder, commands | deferrals | cancelled by /stop | labelled | median wait | longest wait |"
        )?;
        writeln!(out, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")?;
        for (platform, it) in self.verdict.platforms.iter().map(|(name, it)| (*name, it)).chain([("all", &total)]) {
            writeln!(
                out,
                "| {platform} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                it.said,
                it.answers,
                it.reactions,
                it.texts,
                it.deferrals,
                it.cancelled,
                it.labelled,
                if platform == "all" { String::new() } else { seconds(it.wait.median) },
                seconds(it.wait.longest)
            )?;
        }
        writeln!(out, "\nA wait is the time from intake to the first signal, a deferral included.\n")?;

        writeln!(out, "| Over time | start | median | maximum | end |\n| --- | ---: | ---: | ---: | ---: |")?;
        self.series(out, "memory (RSS), MiB", |it| it.memory_mib)?;
        self.series(out, "database, MiB", |it| it.database_mib)?;
        self.series(out, "write-ahead log, MiB", |it| it.wal_mib)?;

        writeln!(out, "\n| Trouble | |\n| --- | ---: |")?;
        writeln!(out, "| `kill -9` | {} |\n| `SIGTERM` and start | {} |", treatment.kills, treatment.restarts)?;
        writeln!(out, "| floods of {} messages in about a second | 1 |", self.flood)?;
        let disk = match treatment.full_disk {
            Some(full) => u32::from(full).to_string(),
            None => "not possible here: `prlimit` is missing".to_owned(),
        };
        writeln!(out, "| full disk, for 5 s | {disk} |")?;
        writeln!(out, "\n| Failures of | |\n| --- | --- |")?;
        for (platform, faults) in &self.faults {
            let faults: Vec<_> = faults.iter().map(|(what, times)| format!("{what}: {times}")).collect();
            writeln!(out, "| {platform} | {} |", faults.join(", "))?;
        }
        Ok(())
    }

    fn series(&self, out: &mut String, name: &str, figure: impl Fn(&Sample) -> f64) -> std::fmt::Result {
        let figures: Vec<f64> = self.treatment.samples.iter().map(figure).collect();
        let mut sorted = figures.clone();
        sorted.sort_by(f64::total_cmp);
        let [start, end] = [figures.first(), figures.last()].map(|it| it.copied().unwrap_or_default());
        let [median, most] = [sorted.get(sorted.len() / 2), sorted.last()].map(|it| it.copied().unwrap_or_default());
        writeln!(out, "| {name} | {start:.1} | {median:.1} | {most:.1} | {end:.1} |")
    }
}

#[expect(clippy::cast_precision_loss, reason = "waits are shorter than 2^52 ms")]
fn seconds(millis: i64) -> String {
    format!("{:.2} s", millis as f64 / 1000.0)
}
