//! When a process that has ended is started again.

use std::time::Duration;

use rejoinder_core::conformance::runtime::turn;
use tokio::time::sleep;

use super::{
    double::{Act, Double, run, says},
    talking::text,
};

/// What is said to end the process.
const DIES: &str = "Die!";

/// After how long a process counts as one that worked.
const STEADY: Duration = Duration::from_mins(1);

/// A process that dies in every turn costs little; one that has worked is there again soon.
#[tokio::test(start_paused = true)]
async fn the_pauses_between_starts_grow_until_a_process_has_worked_for_a_minute() {
    let double = Double::new(|prompt| {
        let dies = prompt["params"]["prompt"].to_string().contains(DIES);
        if dies { vec![Act::Dies] } else { vec![says("Yes.")] }
    });
    let acp = double.runtime();
    let dies = async || {
        let (outcome, _) = run(&acp, turn(DIES)).await;
        assert!(outcome.is_err(), "{outcome:?}");
    };

    for _ in 0..8 {
        dies().await;
    }
    let growing = double.between_starts();
    assert_eq!(text(run(&acp, turn("Hi")).await.0), "Yes.");
    sleep(STEADY).await;
    dies().await;
    dies().await;

    assert_eq!(growing, [250, 1_000, 2_000, 5_000, 15_000, 30_000, 30_000].map(Duration::from_millis));
    assert_eq!(double.between_starts().last(), Some(&(STEADY + Duration::from_millis(250))));
}
