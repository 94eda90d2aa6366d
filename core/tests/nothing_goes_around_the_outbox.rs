//! The type system enforces that everything is sent through the outbox: the cases do not compile.

/// C4. An adapter or an agent cannot make a delivery or its row, and cannot reach the outbox.
#[test]
#[ignore = "compiles the core once more, which takes minutes: `.ci/weekly` runs it"]
fn nothing_goes_around_the_outbox() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
