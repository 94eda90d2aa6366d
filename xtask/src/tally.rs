//! Counts the results of the test runners: cargo-nextest, and `cargo test` for documentation tests.

use std::fmt;

/// The sum of all results, read line by line, and the names of the failed tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    names: Vec<String>,
    has_summary: bool,
    is_binary_running: bool,
}

impl Tally {
    /// Reads a line of cargo-nextest's output. The names of failures count only after the summary, because the output of a
    /// failed test may look like them.
    pub(crate) fn read_nextest(&mut self, line: &str) {
        if let Some((run, passed)) = summary(line) {
            self.passed += passed;
            self.failed += run.saturating_sub(passed);
            self.has_summary = true;
        } else if self.has_summary {
            self.names.extend(listed_as_failed(line).map(str::to_owned));
        }
    }

    /// Reads a line of `cargo test --doc`.
    ///
    /// A binary that crashes announces its tests and prints no result. It counts as one failure.
    pub(crate) fn read_documentation(&mut self, line: &str) {
        if is_start(line) {
            self.end();
            self.is_binary_running = true;
        } else if let Some((passed, failed)) = result(line) {
            self.passed += passed;
            self.failed += failed;
            self.is_binary_running = false;
        } else {
            self.names.extend(failed_in_documentation(line).map(str::to_owned));
        }
    }

    /// Must be called at the end of the output of `cargo test`: counts a binary without a result.
    pub(crate) fn end(&mut self) {
        self.failed += u64::from(std::mem::take(&mut self.is_binary_running));
    }

    pub(crate) const fn test_count(&self) -> u64 {
        self.passed + self.failed
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in &self.names {
            writeln!(f, "failed: {name}")?;
        }
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Parses `     Summary [  12.345s] 50 tests run: 48 passed (1 slow), 1 failed, 1 timed out, 3 skipped`: how many ran,
/// and how many passed. A run that was stopped prints `12/50 tests run`.
fn summary(line: &str) -> Option<(u64, u64)> {
    let (_, counts) = line.trim_start().strip_prefix("Summary [")?.split_once("] ")?;
    let (run, results) = counts.split_once(" run: ")?;
    let run = run.split([' ', '/']).next()?.parse().ok()?;
    let (passed, _) = results.split_once(" passed")?;
    Some((run, passed.trim().parse().ok()?))
}

/// Parses `        FAIL [   0.003s] (1/2) the-package::binary the_test`, or `TIMEOUT`, `SIGABRT` and the like.
fn listed_as_failed(line: &str) -> Option<&str> {
    let (verdict, rest) = line.trim_start().split_once(" [")?;
    let is_failure = verdict.chars().all(|letter| letter.is_ascii_uppercase() || letter == ' ')
        && !matches!(verdict, "PASS" | "SLOW" | "LEAK" | "SKIP");
    let (_, name) = rest.split_once("] ")?;
    let name = name.trim_start();
    let name = if name.starts_with('(') { name.split_once(") ").map_or(name, |(_, name)| name) } else { name };
    (is_failure && name.contains(' ')).then_some(name.trim())
}

/// Whether the line is like `running 12 tests`.
fn is_start(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("running")
        && words.next().is_some_and(|count| count.parse::<u64>().is_ok())
        && matches!((words.next(), words.next()), (Some("test" | "tests"), None))
}

/// Parses `test result: FAILED. 3 passed; 1 failed; 0 ignored; …`.
fn result(line: &str) -> Option<(u64, u64)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |name| counts.split("; ").find_map(|part| part.strip_suffix(name)?.trim().parse().ok());
    Some((count("passed")?, count("failed")?))
}

/// Parses `test src/lib.rs - thing (line 3) ... FAILED`.
fn failed_in_documentation(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(read: fn(&mut Tally, &str), output: &str) -> String {
        let mut tally = Tally::default();
        output.lines().for_each(|line| read(&mut tally, line));
        tally.end();
        tally.to_string()
    }

    #[test]
    fn results_of_all_binaries_are_summed() {
        let output = "
running 2 tests
test a ... ok
test b ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

running 1 test
test c ... FAILED

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.01s
";
        assert_eq!(tally(Tally::read_documentation, output), "failed: c\n2 passed, 1 failed");
    }

    #[test]
    fn a_binary_that_dies_is_a_failure() {
        let output = "
running 2 tests
test a ... ok

running 0 tests

test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

running 3 tests
";
        assert_eq!(tally(Tally::read_documentation, output), "0 passed, 2 failed");
    }

    #[test]
    fn whatever_nextest_does_not_call_passed_has_failed() {
        let output = "
        FAIL [   0.010s] (2/5) a-package::binary seen::while_it_runs
running 1 test
test one::fails ... FAILED
────────────
     Summary [   1.500s] 5 tests run: 2 passed (1 slow), 1 failed, 1 timed out, 1 exec failed, 7 skipped
        FAIL [   0.010s] (2/5) a-package::binary one::fails
     SIGABRT [   0.004s] (3/5) a-package::binary two
     TIMEOUT [  60.010s] (4/5) a-package three
        SLOW [  60.010s] (5/5) a-package four
";
        let expected = "failed: a-package::binary one::fails\nfailed: a-package::binary two\nfailed: a-package three\n\
                    2 passed, 3 failed";
        assert_eq!(tally(Tally::read_nextest, output), expected);
    }

    #[test]
    fn a_run_that_was_stopped_counts_what_ran() {
        let output = "  Summary [   1.5s] 3/9 tests run: 2 passed, 1 failed, 0 skipped";
        assert_eq!(tally(Tally::read_nextest, output), "2 passed, 1 failed");
    }

    #[test]
    fn other_lines_count_nothing() {
        let output = "running late\ntest result: who knows. maybe\nrunning 3 tests at once\nSummary [ of it";
        assert_eq!(tally(Tally::read_documentation, output), "0 passed, 0 failed");
        assert_eq!(tally(Tally::read_nextest, output), "0 passed, 0 failed");
    }
}
