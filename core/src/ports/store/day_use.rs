//! What was used of a day.

/// What somebody, or an agent, has used of a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayUse {
    /// The turns that agents were to answer; of an agent, its runs.
    pub turns: u64,
    /// The tokens that were used for them.
    pub tokens: u64,
    /// How many of these are estimated, because an agent did not report them.
    pub estimated: u64,
    /// What it cost, in millionths of the currency of the agents' prices.
    pub micros: u64,
}

impl DayUse {
    /// The sum, of two identities of one person.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_add(other.turns),
            tokens: self.tokens.saturating_add(other.tokens),
            estimated: self.estimated.saturating_add(other.estimated),
            micros: self.micros.saturating_add(other.micros),
        }
    }
}
