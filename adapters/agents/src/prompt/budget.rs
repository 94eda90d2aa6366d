//! What a model is told of its agent's budget of the day. No I/O.

use rejoinder_core::{BudgetLeft, Cost};

/// What is left of the budget, if there is one. Servers cache the computation of a prompt as long as it begins the same; with exact
/// amounts they would compute the whole history again in every turn.
pub(super) fn left(budget: Option<BudgetLeft>) -> String {
    let Some(BudgetLeft { tokens, cost }) = budget else { return String::new() };
    let tokens = tokens.map(|tokens| format!("{} tokens", rounded(tokens)));
    let amounts: Vec<_> = tokens.into_iter().chain(cost.map(money)).collect();
    if amounts.is_empty() {
        return String::new();
    }
    format!(" Left of your budget for today: about {}.", amounts.join(" and "))
}

fn money(cost: Cost) -> String {
    let left = Cost { micros: rounded(cost.micros), ..cost };
    format!("{} {}", left.amount(), left.currency)
}

/// The amount, rounded down to its first digit.
fn rounded(amount: u64) -> u64 {
    let unit = 10_u64.pow(amount.checked_ilog10().unwrap_or_default());
    amount / unit * unit
}

#[cfg(test)]
mod tests {
    use rejoinder_core::Currency;
    use rstest::rstest;

    use super::*;

    const fn usd(micros: u64) -> Cost {
        Cost { micros, currency: Currency::USD }
    }

    #[rstest]
    #[case::tokens(Some(480_123), None, " Left of your budget for today: about 400000 tokens.")]
    #[case::money(None, Some(usd(428_000)), " Left of your budget for today: about 0.4 USD.")]
    #[case::both(Some(7), Some(usd(19_000_000)), " Left of your budget for today: about 7 tokens and 10 USD.")]
    #[case::nearly_nothing(Some(0), Some(usd(3)), " Left of your budget for today: about 0 tokens and 0.000003 USD.")]
    #[case::the_most(Some(u64::MAX), None, " Left of your budget for today: about 10000000000000000000 tokens.")]
    #[case::money_without_a_currency(None, None, "")]
    fn what_is_left_is_told_with_one_digit(
        #[case] tokens: Option<u64>,
        #[case] cost: Option<Cost>,
        #[case] expected: &str,
    ) {
        assert_eq!(left(Some(BudgetLeft { tokens, cost })), expected);
    }

    #[test]
    fn without_a_budget_nothing_is_told() {
        assert_eq!(left(None), "");
    }
}
