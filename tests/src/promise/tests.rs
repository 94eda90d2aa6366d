//! The tests that every platform runs, as macros: each calls a scenario of this module.

/// Tests of what a person sees when sending fails, for a type that implements [`Platform`](crate::promise::Platform). Those
/// that depend on the place run in each of `places`.
#[macro_export]
macro_rules! promise_tests {
    ($platform:ident, places: [$($place:expr),+]) => {
        const QUIET: &str = "streaming = \"off\"";
        const STREAMING: &str = "streaming = \"edit\"";

        /// D8, D10, E8, H2: sending messages fails for three seconds.
        #[rstest::rstest]
        #[case::bad_gateway($crate::promise::Outage::default())]
        #[case::reset($crate::promise::Outage { failure: $crate::promise::Failure::Reset, ..Default::default() })]
        #[case::some_arrive($crate::promise::Outage { arrive: 5, ..Default::default() })]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn three_seconds_without_sending_cost_nobody_an_answer(
            #[case] outage: $crate::promise::Outage,
            #[values(QUIET, STREAMING)] keys: &str,
        ) {
            $crate::promise::twenty_people_are_answered_after_an_outage::<$platform>(outage, keys).await;
        }

        /// D8, D10, E8, H2: all calls fail for twenty seconds.
        #[rstest::rstest]
        #[case::bad_gateway($crate::promise::Failure::BadGateway)]
        #[case::reset($crate::promise::Failure::Reset)]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn twenty_seconds_without_the_platform_cost_nobody_an_answer(
            #[case] failure: $crate::promise::Failure,
        ) {
            let outage = $crate::promise::Outage { calls: $crate::promise::Calls::All, failure, ..$crate::promise::Outage::long() };
            $crate::promise::twenty_people_are_answered_after_an_outage::<$platform>(outage, QUIET).await;
        }

        /// H3.
        #[rstest::rstest]
        #[case::nobody_asks_meanwhile($crate::promise::Meanwhile::Silence)]
        #[case::somebody_asks_meanwhile($crate::promise::Meanwhile::Question)]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn what_waits_goes_when_the_platform_is_back(#[case] meanwhile: $crate::promise::Meanwhile) {
            $crate::promise::what_waits_goes_when_the_platform_is_back::<$platform>(meanwhile, QUIET).await;
        }

        /// D10, H3.
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn a_waiting_answer_is_sent_when_the_token_is_restored() {
            $crate::promise::a_waiting_answer_is_sent_when_the_token_is_restored::<$platform>(QUIET).await;
        }

        /// B10, D7, E8.
        #[rstest::rstest]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn every_part_of_a_long_answer_is_seen(#[values(QUIET, STREAMING)] keys: &str) {
            $crate::promise::every_part_of_a_long_answer_is_seen::<$platform>(keys).await;
        }

        /// A18, B10.
        #[rstest::rstest]
        #[case::refused($crate::promise::End::Refused)]
        #[case::given_up($crate::promise::End::GivenUp)]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn what_stops_in_the_middle_says_so(#[case] end: $crate::promise::End) {
            $crate::promise::what_stops_in_the_middle_says_so::<$platform>(end, QUIET).await;
        }

        /// B13, D7, E8.
        #[rstest::rstest]
        #[case::at_once($crate::promise::Pace::AtOnce)]
        #[case::quick($crate::promise::Pace::Quick)]
        #[case::slow($crate::promise::Pace::Slow)]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn a_draft_whose_response_is_lost_leaves_one(
            #[case] pace: $crate::promise::Pace,
            #[values($($place),+)] place: <$platform as $crate::promise::Platform>::Place,
        ) {
            $crate::promise::a_draft_whose_response_is_lost_leaves_one::<$platform>(pace, place).await;
        }

        /// B13, D1.
        #[rstest::rstest]
        #[case::at_once($crate::promise::Pace::AtOnce)]
        #[case::quick($crate::promise::Pace::Quick)]
        #[case::slow($crate::promise::Pace::Slow)]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn a_process_killed_before_it_noted_its_draft_leaves_one(
            #[case] pace: $crate::promise::Pace,
            #[values($($place),+)] place: <$platform as $crate::promise::Platform>::Place,
        ) {
            $crate::promise::a_process_killed_before_it_noted_its_draft_leaves_one::<$platform>(pace, place).await;
        }

        /// A10, B13.
        #[rstest::rstest]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn a_deferral_grows_into_the_answer(
            #[values($($place),+)] place: <$platform as $crate::promise::Platform>::Place,
        ) {
            $crate::promise::a_deferral_grows_into_the_answer::<$platform>(place).await;
        }

        /// A10, D7, E8.
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn a_deferral_whose_response_is_lost_leaves_one() {
            $crate::promise::a_deferral_whose_response_is_lost_leaves_one::<$platform>().await;
        }

        /// A10, D1.
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn a_process_killed_before_it_noted_its_deferral_leaves_one() {
            $crate::promise::a_process_killed_before_it_noted_its_deferral_leaves_one::<$platform>().await;
        }

        /// B13, D1, E1, E3.
        #[rstest::rstest]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn killed_again_and_again_while_answers_grow(#[values(QUIET, STREAMING)] keys: &str) {
            $crate::promise::killed_again_and_again_while_answers_grow::<$platform>(keys).await;
        }
    };
}

/// Tests of a process that ends at any step, for a type that implements [`Platform`](crate::promise::Platform): all steps
/// in each of `places`, drafts in each of `drafts_in`, kills under load in each of `kills_in`, and a multi-part answer at
/// each crash point of `between_parts`. The platform must also implement [`SharesFiles`](crate::promise::SharesFiles).
#[macro_export]
macro_rules! crash_tests {
    (
        $platform:ident,
        places: [$($place:expr),+],
        drafts_in: [$($drafts:expr),+],
        kills_in: [$($kills:expr),+],
        between_parts: [$($point:literal),+]
    ) => {
        /// D1, D7, D14, E1, E3, E8: design §9.
        #[rstest::rstest]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn a_crash_at_any_step_loses_nothing_and_answers_once(
            #[values($($place),+)] place: <$platform as $crate::promise::Platform>::Place,
        ) {
            $crate::promise::a_crash_at_any_step_loses_nothing_and_answers_once::<$platform>(place).await;
        }

        /// B13, D1: the same with a streamed answer.
        #[rstest::rstest]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn a_crash_at_any_step_leaves_no_draft_behind(
            #[values($($drafts),+)] place: <$platform as $crate::promise::Platform>::Place,
        ) {
            $crate::promise::a_crash_at_any_step_leaves_no_draft_behind::<$platform>(place).await;
        }

        /// B13, D1: design §9 for drafts.
        #[rstest::rstest]
        #[case::quick($crate::promise::Pace::Quick)]
        #[case::slow($crate::promise::Pace::Slow)]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn a_crash_while_the_answer_grows_leaves_one(#[case] pace: $crate::promise::Pace) {
            let place = Default::default();
            $crate::promise::a_crash_while_the_answer_grows_leaves_one::<$platform>(pace, place).await;
        }

        /// D1: part k of n.
        #[rstest::rstest]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn a_crash_between_two_parts_sends_no_part_twice(#[values($($point),+)] point: &str) {
            $crate::promise::a_crash_between_two_parts_sends_no_part_twice::<$platform>(point).await;
        }

        /// D1, K1, K3: files, both ways.
        #[rstest::rstest]
        #[case::few($crate::promise::FileSteps::Few)]
        #[case::others($crate::promise::FileSteps::Others)]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn a_crash_at_any_step_loses_no_file(#[case] steps: $crate::promise::FileSteps) {
            $crate::promise::a_crash_at_any_step_loses_no_file::<$platform>(steps).await;
        }

        /// B14, D1, G3.
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn a_pick_answers_its_own_question_after_a_kill() {
            $crate::promise::a_pick_answers_its_own_question_after_a_kill::<$platform>("streaming = \"off\"").await;
        }

        /// B2, D1, G3.
        #[rstest::rstest]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn what_comes_at_once_is_answered_once_in_a_queue(
            #[values("followup", "collect", "steer", "interrupt")] mode: &str,
        ) {
            $crate::promise::what_comes_at_once_is_answered_once_in_a_queue::<$platform>(mode).await;
        }

        /// D11, D13.
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn a_poisonous_turn_is_quarantined_and_answered() {
            $crate::promise::a_poisonous_turn_is_quarantined_and_answered::<$platform>().await;
        }

        /// D1, E1, E3, E6.
        #[rstest::rstest]
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn killed_again_and_again_every_message_is_answered(
            #[values($($kills),+)] place: <$platform as $crate::promise::Platform>::Place,
            #[values("streaming = \"off\"", "streaming = \"edit\"")] keys: &str,
        ) {
            $crate::promise::killed_again_and_again_every_message_is_answered::<$platform>(place, keys).await;
        }
    };
}
