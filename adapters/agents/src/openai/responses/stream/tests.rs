use rstest::rstest;

use super::*;
use crate::report::MAX_ANSWER;

fn read(answer: &mut ResponseAnswer, events: &[Value]) -> String {
    events.iter().map(|event| answer.event(&event.to_string()).expect("it is an event").show).collect()
}

fn begun(index: usize, item: &Value) -> Value {
    json!({ "type": "response.output_item.added", "output_index": index, "item": item })
}

fn ended(index: usize, item: &Value) -> Value {
    json!({ "type": "response.output_item.done", "output_index": index, "item": item })
}

fn delta(kind: &str, index: usize, delta: &str) -> Value {
    json!({ "type": format!("response.{kind}.delta"), "output_index": index, "delta": delta })
}

fn completed() -> Value {
    json!({ "type": "response.completed", "response": { "status": "completed", "output": [] } })
}

fn incomplete(reason: &str) -> Value {
    let response = json!({ "status": "incomplete", "incomplete_details": { "reason": reason }, "output": [] });
    json!({ "type": "response.incomplete", "response": response })
}

fn call(arguments: &str) -> Value {
    json!({ "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "react", "arguments": arguments })
}

#[test]
fn thoughts_are_kept_for_the_server_and_never_shown() {
    let mut answer = ResponseAnswer::default();
    let thought = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA" });
    let shown = read(
        &mut answer,
        &[
            json!({ "type": "response.created", "response": { "status": "in_progress" } }),
            begun(0, &json!({ "type": "reasoning", "id": "rs_1", "summary": [] })),
            delta("reasoning_summary_text", 0, "Let me see."),
            delta("reasoning_text", 0, "Hm."),
            ended(0, &thought),
            begun(1, &json!({ "type": "message", "id": "msg_1", "content": [] })),
            delta("output_text", 1, "Ye"),
            delta("output_text", 1, "s."),
            ended(1, &json!({ "type": "message", "content": [{ "type": "output_text", "text": "Yes." }] })),
            completed(),
        ],
    );

    assert_eq!(shown + &answer.text.visible.end(), "Yes.");
    assert!(answer.text.is_done());
    let written = answer.into_written();
    assert_eq!(written.text, "Yes.");
    let expected = json!([
        { "type": "reasoning", "summary": [], "encrypted_content": "gAAA" },
        { "type": "message", "role": "assistant", "content": "Yes." },
    ]);
    assert_eq!(json!(written.blocks), expected);
}

#[rstest]
#[case::in_pieces(&["{\"emo", "ji\":\"👍\"}"], "{\"emoji\":\"👍\"}", "{\"emoji\":\"👍\"}")]
#[case::at_its_end(&[], "{\"emoji\":\"👍\"}", "{\"emoji\":\"👍\"}")]
#[case::broken(&["{\"emo"], "{\"emo", "{}")]
fn a_tool_call_is_put_together(#[case] pieces: &[&str], #[case] arguments: &str, #[case] given: &str) {
    let mut answer = ResponseAnswer::default();
    let pieces = pieces.iter().map(|piece| delta("function_call_arguments", 0, piece));
    let events: Vec<_> = [begun(0, &call(""))].into_iter().chain(pieces).chain([ended(0, &call(arguments))]).collect();
    read(&mut answer, &events);
    read(&mut answer, &[completed()]);

    let written = answer.into_written();
    assert_eq!(written.calls, [ToolCall { id: "c1".into(), name: "react".into(), arguments: arguments.into() }]);
    let block = json!({ "type": "function_call", "call_id": "c1", "name": "react", "arguments": given });
    assert_eq!(written.blocks, [block], "what is no object is not given back");
}

#[test]
fn messages_stand_apart_and_a_refusal_is_said() {
    let mut answer = ResponseAnswer::default();
    let events = [
        delta("output_text", 0, "One"),
        delta("output_text", 0, " more."),
        begun(1, &call("{}")),
        delta("refusal", 2, "I cannot."),
    ];
    assert_eq!(read(&mut answer, &events) + &answer.text.visible.end(), "One more.\n\nI cannot.");
}

/// Some servers number no items.
#[test]
fn items_without_numbers_are_told_apart() {
    let message = |text: &str| json!({ "type": "message", "content": [{ "type": "output_text", "text": text }] });
    let call = |id: &str| json!({ "type": "function_call", "call_id": id, "name": "react", "arguments": "{}" });
    let ended = |item: Value| json!({ "type": "response.output_item.done", "item": item });
    let mut answer = ResponseAnswer::default();
    let events = [
        json!({ "type": "response.output_text.delta", "delta": "One." }),
        ended(message("One.")),
        ended(message("Two.")),
        ended(call("c1")),
        ended(call("c2")),
        ended(call("c2")),
        json!({ "type": "response.output_item.added", "item": call("c3") }),
        ended(call("another name for c3")),
        json!({ "type": "response.output_text.delta", "delta": "Three." }),
        ended(message("Three.")),
    ];
    let shown = read(&mut answer, &events) + &answer.text.visible.end();

    assert_eq!(shown, "One.\n\nTwo.\n\nThree.");
    let written = answer.into_written();
    let ids: Vec<_> = written.calls.iter().map(|call| &*call.id).collect();
    assert_eq!((ids, written.blocks.len()), (vec!["c1", "c2", "c3"], 6));
}

#[test]
fn what_was_not_streamed_is_read_from_the_last_event() {
    let thought = json!({ "type": "reasoning", "summary": [], "encrypted_content": "gAAA" });
    let message = json!({ "type": "message", "content": [{ "type": "output_text", "text": "Yes." }] });
    let streams: [&[Value]; 3] = [&[], &[call("{}")], std::slice::from_ref(&message)];
    for streamed in streams {
        let mut answer = ResponseAnswer::default();
        let output = json!([thought, message, call("{}")]);
        let mut events = vec![ended(0, &thought)];
        events.extend(streamed.iter().map(|item| ended(1, item)));
        events.push(json!({ "type": "response.completed", "response": { "output": output } }));

        let shown = read(&mut answer, &events) + &answer.text.visible.end();

        assert_eq!(shown, "Yes.");
        let written = answer.into_written();
        assert_eq!((written.calls.len(), written.blocks.len()), (1, 3));
    }
}

#[test]
fn an_answer_in_one_piece_is_read() {
    let body = json!({
        "object": "response", "status": "completed", "error": null, "incomplete_details": null,
        "output": [
            { "type": "reasoning", "id": "rs_1", "summary": [] },
            { "type": "message", "content": [{ "type": "output_text", "text": "Hi", "annotations": [] }] },
            call("{\"emoji\":\"👍\"}"),
        ],
        "usage": { "input_tokens": 1, "output_tokens": 2, "total_tokens": 3 },
    });
    let streamed = json!({ "type": "response.completed", "response": body });
    let whole: fn(&mut ResponseAnswer, &str) -> _ = |answer, data| answer.whole(data);
    let event: fn(&mut ResponseAnswer, &str) -> _ = |answer, data| answer.event(data);
    for (read, data) in [(whole, body), (event, streamed)] {
        let mut answer = ResponseAnswer::default();
        let update = read(&mut answer, &data.to_string()).expect("it is a response");
        assert_eq!((update.show + &answer.text.visible.end(), answer.text.is_done()), ("Hi".to_owned(), true));
        assert_eq!(update.usage, Some(Usage { input_tokens: 1, output_tokens: 2 }));
        let written = answer.into_written();
        assert_eq!((&*written.calls[0].arguments, written.blocks.len()), (r#"{"emoji":"👍"}"#, 2));
    }
}

#[rstest]
#[case(json!({ "type": "response.in_progress", "response": {} }))]
#[case(json!({ "type": "response.output_text.done", "text": "Hi" }))]
#[case(json!({ "type": "a_later_event", "output_index": [] }))]
fn what_says_nothing_is_no_progress(#[case] event: Value) {
    let update = ResponseAnswer::default().event(&event.to_string());
    assert_eq!(update, Ok(AnswerUpdate::default()));
}

#[test]
fn only_the_last_event_ends_an_answer() {
    let mut answer = ResponseAnswer::default();
    read(&mut answer, &[delta("output_text", 0, "Hi"), json!({ "type": "response.output_text.done" })]);
    assert_eq!(answer.event("[DONE]"), Ok(AnswerUpdate::default()));
    assert!(!answer.text.is_finished());
    read(&mut answer, &[completed()]);
    assert!(answer.text.is_done() && !answer.text.cut);
}

#[test]
fn an_answer_without_room_is_cut() {
    let mut answer = ResponseAnswer::default();
    read(&mut answer, &[delta("output_text", 0, "Once upon"), begun(1, &call("{")), incomplete("max_output_tokens")]);
    assert!(answer.text.cut && answer.text.is_done());
    let written = answer.into_written();
    assert_eq!((&*written.text, written.calls.len(), written.blocks.len()), ("Once upon", 0, 0));

    let cut = ResponseAnswer::default().event(&incomplete("max_output_tokens").to_string());
    assert_eq!(cut, Err(AnswerError::Broken("it ended before any text (max_output_tokens)".into())));
    let mut answer = ResponseAnswer::default();
    read(&mut answer, &[delta("output_text", 0, "First you")]);
    let filtered = answer.event(&incomplete("content_filter").to_string());
    assert_eq!(filtered, Err(AnswerError::Refused("the server's content filter stopped the answer".into())));
}

#[rstest]
#[case(json!({ "type": "error", "code": "server_error", "message": "Overloaded", "param": null }))]
#[case(json!({ "type": "error", "error": { "message": "Overloaded" } }))]
#[case(json!({ "error": { "message": "Overloaded" } }))]
#[case(json!({
    "type": "response.failed", "response": { "status": "failed", "error": { "code": "x", "message": "Overloaded" } },
}))]
fn an_error_within_a_stream_is_the_servers(#[case] event: Value) {
    assert_eq!(ResponseAnswer::default().event(&event.to_string()), Err(AnswerError::Failed("Overloaded".into())));
}

/// Some servers do not say the status in the last event.
#[test]
fn the_last_event_says_how_the_answer_ended() {
    let last = |kind: &str| json!({ "type": format!("response.{kind}"), "response": {} }).to_string();
    let ended = |kind: &str| {
        let mut answer = ResponseAnswer::default();
        read(&mut answer, &[delta("output_text", 0, "Hi")]);
        answer.event(&last(kind)).map(|_| answer.text.cut)
    };
    assert_eq!((ended("completed"), ended("incomplete")), (Ok(false), Ok(true)));
    assert_eq!(ended("failed"), Err(AnswerError::Failed("the server says that the answer is failed".into())));
}

#[rstest]
#[case(json!({ "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" } }))]
#[case(json!({ "status": "incomplete", "incomplete_details": { "reason": "content_filter" } }))]
#[case(json!({ "status": "failed", "error": { "message": "Overloaded" } }))]
fn the_usage_of_an_answer_that_fails_is_kept(#[case] mut response: Value) {
    response["usage"] = json!({ "input_tokens": 7, "output_tokens": 9 });
    let event = json!({ "type": "response.completed", "response": response });

    let mut answer = ResponseAnswer::default();
    assert!(answer.event(&event.to_string()).is_err());

    assert_eq!(answer.text.usage, Some(Usage { input_tokens: 7, output_tokens: 9 }));
}

#[test]
fn a_response_that_was_cancelled_has_failed() {
    let body = json!({ "status": "cancelled", "output": [] }).to_string();
    assert!(matches!(ResponseAnswer::default().whole(&body), Err(AnswerError::Failed(_))));
}

#[test]
fn what_is_no_response_or_thinks_too_much_is_broken() {
    let too_many = |number| begun(number, &call("{}")).to_string();
    let mut many = ResponseAnswer::default();
    assert!((0..MAX_CALLS).all(|number| many.event(&too_many(number)).is_ok()));
    assert!(matches!(many.event(&too_many(MAX_CALLS)), Err(AnswerError::Broken(_))));
    for wrong in [json!(7), json!({ "choices": [] }), delta("function_call_arguments", 0, "{")] {
        let read = ResponseAnswer::default().event(&wrong.to_string());
        assert!(matches!(read, Err(AnswerError::Broken(_))), "{wrong}: {read:?}");
    }
    assert!(matches!(ResponseAnswer::default().whole("{\"choices\":[]}"), Err(AnswerError::Broken(_))));

    let mut answer = ResponseAnswer::default();
    let half = delta("reasoning_text", 0, &"x".repeat(MAX_ANSWER / 2 + 1)).to_string();
    assert!(answer.event(&half).is_ok());
    assert!(matches!(answer.event(&half), Err(AnswerError::Broken(_))));
}

#[test]
fn a_text_that_is_too_long_is_cut() {
    let mut answer = ResponseAnswer::default();
    let half = delta("output_text", 0, &"x".repeat(MAX_ANSWER / 2 + 1));
    read(&mut answer, &[half.clone(), half]);
    assert!(answer.text.cut && answer.text.is_done());
    assert_eq!(answer.into_written().text.len(), MAX_ANSWER);
}
