//! Sessions.

use super::rows::Statement;

pub(super) static INSERT_SESSIONS: Statement = Statement::new(
    "with r (id, conversation_id, created_at) as ({rows})
    insert into sessions (id, conversation_id, created_at) select * from r where id is not null",
);
