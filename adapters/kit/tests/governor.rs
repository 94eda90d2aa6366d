//! Why governor does not pace what is sent (`docs/decisions/rate-gate.md`).

use governor::{Quota, RateLimiter};

/// A send that the account refuses has cost the chat its budget. When this fails, read the decision again.
#[test]
fn what_the_second_limit_refuses_has_cost_the_first() {
    let one_a_minute = Quota::per_minute(1.try_into().expect("more than 0"));
    let (chats, account) = (RateLimiter::hashmap(one_a_minute), RateLimiter::direct(one_a_minute));
    let send = |chat: &'static str| chats.check_key(&chat).is_ok() && account.check().is_ok();

    assert!(send("ada"));
    assert!(!send("bob"), "the account refuses");

    assert!(chats.check_key(&"bob").is_err(), "bob was sent nothing, and has to wait for a minute");
}
