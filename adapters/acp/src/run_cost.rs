//! What a run costs: what is added to the cost of its session.

use std::sync::Arc;

use rejoinder_core::Cost;

use crate::connection::Connection;

/// What a run has cost.
pub(crate) struct RunCost {
    connection: Arc<Connection>,
    /// The agent's session.
    session: Arc<str>,
    /// Whether it was known what the session had cost when the run began.
    is_known: bool,
    sum: Option<Cost>,
}

impl RunCost {
    /// The cost of a run that begins now in the agent's session `session`.
    pub(crate) fn of(connection: &Arc<Connection>, session: &Arc<str>) -> Self {
        let is_known = connection.knows_cost(session);
        Self { connection: Arc::clone(connection), session: Arc::clone(session), is_known, sum: None }
    }

    /// What it has cost until now; `None` if that is not known, or nothing.
    pub(crate) fn until_now(&mut self) -> Option<Cost> {
        self.sum = Cost::sum(self.sum, self.connection.claim_cost(&self.session));
        self.sum.filter(|_| self.is_known)
    }
}
