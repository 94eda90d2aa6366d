//! What the server's errors mean.

use rejoinder_core::{DeliveryError, Scope};

use crate::{api::ApiError, payload::Failure};

impl From<ApiError> for DeliveryError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::NotConnected(detail) => Self::NotSent { retry_after: None, detail },
            ApiError::Denied(why) => Self::Unauthorized(why),
            ApiError::Lost(why) => Self::Unknown(why),
        }
    }
}

impl From<Failure> for DeliveryError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Wait(retry_after) => {
                Self::Limited { retry_after, scope: Scope::Conversation, detail: "wait".to_owned() }
            }
            Failure::Busy => Self::NotSent { retry_after: None, detail: "the server is busy".to_owned() },
            Failure::Refused(why) => Self::Refused(why),
        }
    }
}
