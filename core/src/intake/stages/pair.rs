//! Ends the messages of another agent that this one has answered too often.

use crate::intake::{
    arrival::{Arrival, Verdict},
    pairs::{Pairs, Passage},
};

pub(in crate::intake) async fn pair(arrival: &mut Arrival, pairs: &Pairs) -> Verdict {
    let Passage::Open(heard) = pairs.passage(&arrival.event).await? else { return arrival.end_unamended(None) };
    arrival.heard = heard;
    Ok(())
}
