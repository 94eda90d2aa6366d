//! The text of a lease: its number, and its secret. No I/O.

use std::{fmt, sync::Arc};

/// The text of a lease, which a worker sends back.
pub(super) type Lease = Arc<str>;

/// How many digits of a lease's secret the log has: too few to use the lease.
const LOGGED: usize = 7;

/// The beginning of a lease, for the log. What has another form may be a secret that was sent by mistake.
pub(super) fn logged(lease: &str) -> &str {
    match secret(lease) {
        Some(secret) => &lease[..lease.len() - secret.len() + LOGGED],
        None => "no lease",
    }
}

/// The secret of what has the form of a lease: the mark of the process that gave it in eight digits, and 24 more.
pub(super) fn secret(lease: &str) -> Option<&str> {
    parts(lease).map(|(_, secret)| secret)
}

/// The number and the secret of what has the form of a lease.
fn parts(lease: &str) -> Option<(LeaseNumber, &str)> {
    let is_number = |part: &str| (1..=10).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_secret = |part: &str| part.len() == 32 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    match *lease.splitn(4, '.').collect::<Vec<_>>() {
        [attempt, grant, secret] if is_number(attempt) && is_number(grant) && is_secret(secret) => {
            Some((LeaseNumber { attempt: attempt.parse().ok()?, grant: grant.parse().ok()? }, secret))
        }
        _ => None,
    }
}

/// The fencing number of a lease: a later lease of the same turn has a higher one, unless another agent had the turn in between, or an
/// operator has begun it anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LeaseNumber {
    /// Which run of the turn it is for, as the agent counts them. A restart begins another one.
    pub(super) attempt: u32,
    /// Which lease of the run it is, from 1 on.
    pub(super) grant: u32,
}

impl LeaseNumber {
    /// That of a text that has the form of a lease.
    pub(super) fn of(lease: &str) -> Option<Self> {
        parts(lease).map(|(number, _)| number)
    }
}

impl fmt::Display for LeaseNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.attempt, self.grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_too_little_of_a_lease_to_use_it() {
        assert_eq!(logged("12.3.0123456789abcdef0123456789abcdef"), "12.3.0123456");
    }

    #[test]
    fn the_log_has_nothing_of_what_is_no_lease() {
        let secret = "0123456789abcdef0123456789abcdef";
        let others = ["1.", "1.x.", "1.1.0", "1.1.1."].map(|numbers| format!("{numbers}{secret}"));
        for other in others.iter().map(String::as_str).chain(["wt-3fA9xR2kQ7", "1.1.0", "äöüäöüä", ""]) {
            assert_eq!(logged(other), "no lease", "{other}");
        }
    }
}
