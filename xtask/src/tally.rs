//! Counting what `cargo test` reports.

use std::fmt;

/// Sums the results of all test binaries, read line by line.
///
/// A binary that dies (an abort, a signal) prints how many tests it runs and then no result: it
/// counts as one failure, so that it cannot pass for none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    in_a_binary: bool,
}

impl Tally {
    /// Takes one line of output.
    pub(crate) fn read(&mut self, line: &str) {
        if is_start(line) {
            self.end();
            self.in_a_binary = true;
        } else if let Some((passed, failed)) = result(line) {
            self.passed += passed;
            self.failed += failed;
            self.in_a_binary = false;
        }
    }

    /// The output is over.
    pub(crate) fn end(&mut self) {
        self.failed += u64::from(std::mem::take(&mut self.in_a_binary));
    }

    /// How many tests ran.
    pub(crate) const fn ran(&self) -> u64 {
        self.passed + self.failed
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// `running 12 tests`
fn is_start(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("running")
        && words.next().is_some_and(|count| count.parse::<u64>().is_ok())
        && matches!((words.next(), words.next()), (Some("test" | "tests"), None))
}

/// `test result: FAILED. 3 passed; 1 failed; 0 ignored; …`
fn result(line: &str) -> Option<(u64, u64)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |name| counts.split("; ").find_map(|part| part.strip_suffix(name)?.trim().parse().ok());
    Some((count("passed")?, count("failed")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(output: &str) -> String {
        let mut tally = Tally::default();
        output.lines().for_each(|line| tally.read(line));
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
        assert_eq!(tally(output), "2 passed, 1 failed");
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
        assert_eq!(tally(output), "0 passed, 2 failed");
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(tally("running late\ntest result: who knows. maybe\nrunning 3 tests at once"), "0 passed, 0 failed");
    }
}
