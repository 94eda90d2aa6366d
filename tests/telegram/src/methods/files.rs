//! Fetching files.

use serde_json::Value;

use crate::{
    error::{Answer, ApiError},
    params::Params,
    world::{World, file::MAX_DOWNLOAD},
};

pub(super) fn get(world: &mut World, params: &Params) -> Answer {
    let id = params.text("file_id").unwrap_or_default();
    let file =
        world.file(&id).ok_or_else(|| ApiError::bad_request("wrong file_id or the file is temporarily unavailable"))?;
    if file.size > MAX_DOWNLOAD {
        return Err(ApiError::bad_request("file is too big"));
    }
    let mut fields = file.to_fields();
    fields.insert("file_path".to_owned(), file.path().into());
    Ok(Value::Object(fields))
}
