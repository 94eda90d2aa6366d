//! Ids as operators type them: whole, or their first characters.

use anyhow::anyhow;
use uuid::Uuid;

use super::records::{Page, Records};
use crate::{
    console::failure::Failure,
    view::{DeadLetterItem, TurnItem},
};

/// The whole id of the turn with this id, or of the only one whose id begins so.
pub(super) async fn turn_id(records: &Records<'_>, id: &str) -> Result<String, Failure> {
    let (first, last) = range(id)?;
    let found: Page<TurnItem> = records.list("turns", &[("ids", Some(format!("{first}..{last}")))], None, 2).await?;
    Ok(only(found.items, "turn", id, "`rejoinder turns list` lists the turns")?.turn_id)
}

/// The dead letter with this id, or with the id of its turn, or the only one whose id or whose turn's begins so.
pub(super) async fn dead_letter(records: &Records<'_>, id: &str) -> Result<DeadLetterItem, Failure> {
    let (first, last) = range(id)?;
    let mut letters: Vec<DeadLetterItem> = records.list("dead-letters", &[], None, u32::MAX).await?.items;
    let is_meant = |id: &str| id.parse::<Uuid>().is_ok_and(|id| (first..=last).contains(&id));
    letters.retain(|letter| is_meant(&letter.id) || is_meant(&letter.turn_id));
    only(letters, "dead letter", id, "`rejoinder dead-letters list` lists them")
}

fn only<T>(mut found: Vec<T>, what: &str, id: &str, hint: &str) -> Result<T, Failure> {
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (None, _) => Err(anyhow!("there is no {what} {id}; {hint}").into()),
        _ => Err(anyhow!("several {what}s begin with {id}: give more of the id").into()),
    }
}

/// The smallest and the largest id that begin so.
fn range(prefix: &str) -> Result<(Uuid, Uuid), Failure> {
    let digits = prefix.replace('-', "");
    let value = u128::from_str_radix(&digits, 16).ok().filter(|_| (6..=32).contains(&digits.len()));
    let value = value.filter(|_| digits.chars().all(|digit| digit.is_ascii_hexdigit())).ok_or_else(|| {
        // Six of them are the same for hours.
        let hint = "an id looks like 0199a1c2-7d3e-7aaa-8bbb-0123456789ab; its first twelve characters are enough";
        Failure::Usage(format!("{prefix} is no id: {hint}"))
    })?;
    let rest = 4 * (32 - digits.len());
    let missing = (1_u128 << rest).wrapping_sub(1);
    Ok((Uuid::from_u128(value << rest), Uuid::from_u128(value << rest | missing)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_range_of_ids() {
        let ids = |prefix| range(prefix).map(|(first, last)| (first.to_string(), last.to_string())).unwrap();

        let expected = ("0199a1c2-7000-0000-0000-000000000000", "0199a1c2-7fff-ffff-ffff-ffffffffffff");
        assert_eq!(ids("0199a1c2-7"), (expected.0.to_owned(), expected.1.to_owned()));
        let whole = "0199a1c2-7d3e-7aaa-8bbb-0123456789ab".to_owned();
        assert_eq!(ids(&whole), (whole.clone(), whole.clone()));
        assert_eq!(ids("ffffff").1, "ffffffff-ffff-ffff-ffff-ffffffffffff");
    }

    #[test]
    fn what_begins_no_id_is_no_range() {
        for text in ["", "0199a", "xyzxyz", "+0199a1", "0199a1c2-7d3e-7aaa-8bbb-0123456789ab0"] {
            assert!(range(text).is_err(), "{text}");
        }
    }
}
