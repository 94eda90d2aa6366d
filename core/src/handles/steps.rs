//! What an agent does and thinks in a run, for channels that show it beside the answer.

use crate::model::{Activity, ActivityState, WorkStep, name};

/// How many steps are shown: the latest.
const MOST_STEPS: usize = 64;

/// How many characters of a title are shown.
const MOST_TITLE: usize = 200;

/// How many bytes of all thoughts are shown: the latest.
const MOST_THOUGHTS: usize = 8 << 10;

/// The steps of a run, oldest first.
#[derive(Default)]
pub(crate) struct Steps(Vec<WorkStep>);

impl Steps {
    /// An activity that ends is one that began; else it is a step by itself.
    pub(crate) fn act(&mut self, Activity { title, state }: &Activity) {
        let text = name::clean(title, MOST_TITLE);
        if text.is_empty() {
            return;
        }
        let begun = |step: &&mut WorkStep| step.state == Some(ActivityState::Working) && step.text == text;
        match self.0.iter_mut().rev().find(begun) {
            Some(step) => step.state = Some(*state),
            None => self.push(WorkStep { text, state: Some(*state) }),
        }
    }

    /// Adds to the thought that the agent thinks.
    pub(crate) fn think(&mut self, more: &str) {
        match self.0.last_mut() {
            Some(WorkStep { text, state: None }) => text.push_str(more),
            _ if more.trim().is_empty() => return,
            _ => self.push(WorkStep { text: more.to_owned(), state: None }),
        }
        self.forget_thoughts();
    }

    /// Nothing goes on any more of what did.
    pub(crate) fn fail(&mut self) {
        for step in self.0.iter_mut().filter(|step| step.state == Some(ActivityState::Working)) {
            step.state = Some(ActivityState::Failed);
        }
    }

    pub(crate) fn all(&self) -> Vec<WorkStep> {
        self.0.clone()
    }

    fn push(&mut self, step: WorkStep) {
        if self.0.len() == MOST_STEPS {
            self.0.remove(0);
        }
        self.0.push(step);
    }

    /// Removes the beginning of thoughts that are too long together.
    fn forget_thoughts(&mut self) {
        let thoughts = || self.0.iter().filter(|step| step.state.is_none());
        let mut surplus = thoughts().map(|step| step.text.len()).sum::<usize>().saturating_sub(MOST_THOUGHTS);
        for step in self.0.iter_mut().filter(|step| step.state.is_none()) {
            let from = step.text.ceil_char_boundary(surplus.min(step.text.len()));
            surplus = surplus.saturating_sub(from);
            step.text.drain(..from);
        }
        self.0.retain(|step| !step.text.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(steps: &mut Steps, title: &str, state: ActivityState) {
        steps.act(&Activity { title: title.to_owned(), state });
    }

    fn shown(steps: &Steps) -> Vec<(String, Option<ActivityState>)> {
        steps.all().into_iter().map(|WorkStep { text, state }| (text, state)).collect()
    }

    #[test]
    fn a_step_ends_where_it_began_and_thoughts_stand_between() {
        use ActivityState::{Done, Failed, Working};
        let mut steps = Steps::default();

        steps.think("I loo");
        steps.think("k.");
        act(&mut steps, "reads\na", Working);
        act(&mut steps, "reads\na", Done);
        steps.think(" \n");
        steps.think("Now b.");
        act(&mut steps, "reads b", Done);
        act(&mut steps, " ", Working);
        act(&mut steps, "writes", Working);
        steps.fail();

        let step = |text: &str, state| (text.to_owned(), state);
        assert_eq!(
            shown(&steps),
            [
                step("I look.", None),
                step("reads a", Some(Done)),
                step("Now b.", None),
                step("reads b", Some(Done)),
                step("writes", Some(Failed)),
            ]
        );
    }

    #[test]
    fn the_latest_is_kept() {
        let mut steps = Steps::default();

        for number in 0..100 {
            act(&mut steps, &format!("step {number}"), ActivityState::Working);
        }
        steps.think("é");
        steps.think(&"x".repeat(MOST_THOUGHTS));

        let all = steps.all();
        assert_eq!((all.len(), &*all[0].text), (MOST_STEPS, "step 37"));
        assert_eq!(all[MOST_STEPS - 1].text, "x".repeat(MOST_THOUGHTS));
    }
}
