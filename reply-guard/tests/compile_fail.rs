//! Code outside the guard cannot create a `Cleared`.

/// C4.
#[test]
#[ignore = "compiles the guard once more, which takes minutes: `.ci/weekly` runs it"]
fn nothing_is_cleared_outside_of_the_guard() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
