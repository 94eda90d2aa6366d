//! Code outside the guard cannot create a `Cleared`.

/// C4.
#[test]
fn nothing_is_cleared_outside_of_the_guard() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
