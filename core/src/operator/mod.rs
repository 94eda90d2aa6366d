//! The operator: who acts, what an operation is stored as, why one is not done, and the operator's own commands.
//! Nothing here carries an operation out.

pub(crate) mod actor;
pub(crate) mod error;
pub(crate) mod own_commands;
