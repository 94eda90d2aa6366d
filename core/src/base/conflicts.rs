//! Makes decisions anew when their rows were changed meanwhile.

use crate::ports::StoreError;

/// How often a decision is made before it fails.
pub(crate) const TRIES: u32 = 50;

/// The error of a decision that was made that often.
pub(crate) fn contended() -> StoreError {
    StoreError::Unavailable("the rows of this decision change all the time".to_owned())
}

/// Evaluates a decision, an `Option`, until it is `Some`: it is `None` if what it was made on was changed meanwhile. The
/// result is an error of the store after [`TRIES`].
macro_rules! decide_anew {
    ($decision:expr) => {{
        let mut tries = 0;
        loop {
            let decision: Option<_> = $decision;
            if let Some(decided) = decision {
                break Ok(decided);
            }
            tries += 1;
            if tries == $crate::base::conflicts::TRIES {
                break Err($crate::base::conflicts::contended());
            }
        }
    }};
}

pub(crate) use decide_anew;
