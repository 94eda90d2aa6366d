//! What a person may see of an answer while it arrives: text without thoughts and markers, and the tokens that it uses.

use rejoinder_core::{Cost, ModelInput, RunEvents, Shim, Usage};

/// The most bytes of an answer's text. The rest is cut off.
pub const MAX_ANSWER: usize = 1024 * 1024;

/// As much of a text as there is room for after `before` bytes of an answer, and whether that is less than all.
#[must_use]
pub fn cut(text: &str, before: usize) -> (&str, bool) {
    let kept = &text[..text.floor_char_boundary(MAX_ANSWER.saturating_sub(before))];
    (kept, kept.len() < text.len())
}

/// What one event contained.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AnswerUpdate {
    /// More text that a person may see.
    pub show: String,
    /// Whether `show` replaces everything shown of this answer so far.
    pub replaces_shown: bool,
    /// More of what the model thinks before its answer, if the server tells it apart.
    pub thought: String,
    /// Whether the model made progress. An empty event only shows that the server is alive.
    pub progress: bool,
    pub usage: Option<Usage>,
}

/// The text of one answer, of which a person sees neither thoughts nor markers.
#[derive(Debug, Default)]
pub struct VisibleText {
    shim: Shim,
    /// Text that is held back until the expected thought ends.
    held: Option<String>,
    /// Whether the answer contained the end of a thought without its beginning.
    pub thought_first: bool,
    /// How many characters were shown and not withdrawn.
    pub shown: usize,
}

impl VisibleText {
    /// If `thinks_first`, nothing is visible before the thought has ended.
    pub fn new(thinks_first: bool) -> Self {
        Self { held: thinks_first.then(String::new), ..Self::default() }
    }

    /// Reads more text, and adds to `update` the part that a person may see.
    pub fn push(&mut self, text: &str, update: &mut AnswerUpdate) {
        let before = self.shim.retractions();
        let mut visible = self.shim.push(text);
        if self.shim.retractions() > before {
            self.thought_first = true;
            update.replaces_shown |= self.shown > 0;
            self.shown = 0;
            update.show.clear();
        }
        if self.shim.has_ended_reasoning() {
            // The text held back was the thought.
            self.held = None;
        } else if let Some(held) = &mut self.held {
            held.push_str(&visible);
            visible.clear();
        }
        update.show.push_str(&visible);
    }

    /// Counts the text of an update as shown.
    pub fn count(&mut self, update: &AnswerUpdate) {
        self.shown += update.show.chars().count();
    }

    /// Ends the answer, and returns the rest of the text to show.
    pub fn end(&mut self) -> String {
        let (rest, _) = std::mem::take(&mut self.shim).finish();
        let rest = self.held.take().unwrap_or_default() + &rest;
        self.shown += rest.chars().count();
        rest
    }
}

/// Reports the answers of a run while they arrive.
pub struct Report<'a> {
    events: &'a RunEvents,
    /// The text reported for earlier answers of this run.
    before: String,
    /// The text reported for the current answer.
    text: String,
    /// Whether an earlier answer of this run showed text, so that a blank line must follow.
    gap: bool,
    earlier: Usage,
    current: Usage,
    earlier_cost: Option<Cost>,
    current_cost: Option<Cost>,
    /// The tokens of earlier requests whose cost was not said.
    unpriced: Usage,
}

impl<'a> Report<'a> {
    pub const fn to(events: &'a RunEvents) -> Self {
        let nothing = Usage { input_tokens: 0, output_tokens: 0 };
        Self {
            events,
            before: String::new(),
            text: String::new(),
            gap: false,
            earlier: nothing,
            current: nothing,
            earlier_cost: None,
            current_cost: None,
            unpriced: nothing,
        }
    }

    /// Begins another request. `gap`: whether text was shown before.
    pub fn next(&mut self, gap: bool) {
        self.before.push_str(&std::mem::take(&mut self.text));
        self.gap = gap;
        self.next_usage();
    }

    /// Begins another request in the same answer: its tokens and its cost are added to those before.
    pub fn next_usage(&mut self) {
        self.unpriced = self.all_unpriced();
        self.earlier = self.earlier.and(std::mem::take(&mut self.current));
        self.earlier_cost = Cost::sum(self.earlier_cost, self.current_cost.take());
    }

    /// The tokens whose cost was not said so far.
    const fn all_unpriced(&self) -> Usage {
        if self.current_cost.is_some() { self.unpriced } else { self.unpriced.and(self.current) }
    }

    /// Withdraws all text that was reported: it was no answer.
    pub async fn withdraw(&mut self) {
        self.gap = false;
        if !(std::mem::take(&mut self.before).is_empty() & std::mem::take(&mut self.text).is_empty()) {
            self.events.rewrite("").await;
        }
    }

    /// Reports the next input of the model.
    pub async fn shown(&self, input: ModelInput) {
        self.events.shown(input).await;
    }

    pub async fn text(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        let text = if self.gap && self.text.is_empty() { format!("\n\n{text}") } else { text };
        self.text.push_str(&text);
        self.events.text(text).await;
    }

    pub async fn update(&mut self, update: AnswerUpdate) {
        if !update.thought.is_empty() {
            self.events.thought(update.thought).await;
        }
        if update.replaces_shown {
            self.text.clear();
            self.events.rewrite(self.before.as_str()).await;
        }
        self.text(update.show).await;
        self.usage(update.usage).await;
    }

    /// Reports what the current request has used, if something says it.
    pub async fn usage(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.current = usage;
            self.events.usage(self.earlier.and(usage)).await;
            if self.current_cost.is_none() {
                self.whole_cost().await;
            }
        }
    }

    /// Reports what the current request has cost. 0 is no cost.
    pub async fn cost(&mut self, cost: Cost) {
        if cost.micros > 0 {
            self.current_cost = Some(cost);
            self.whole_cost().await;
        }
    }

    async fn whole_cost(&self) {
        if let Some(cost) = Cost::sum(self.earlier_cost, self.current_cost) {
            self.events.cost_beside(cost, self.all_unpriced()).await;
        }
    }
}
