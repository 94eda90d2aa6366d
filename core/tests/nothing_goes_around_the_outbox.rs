//! The choke point is a type: what follows does not compile.

/// C4. An adapter or an agent can make neither a delivery nor a row of one, and cannot reach the outbox.
#[test]
fn nothing_goes_around_the_outbox() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
