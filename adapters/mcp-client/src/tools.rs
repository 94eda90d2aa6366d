//! What the model is told of a server's tools. No I/O.

use std::collections::HashSet;

use rejoinder_agents::{McpServerSection, Tool};
use rmcp::model;
use serde_json::{Value, value::to_raw_value};
use sha2::{Digest, Sha256};

/// The most tools of a server.
pub(crate) const MOST_TOOLS: usize = 128;

/// The longest name that a model's server takes, in bytes.
const MAX_NAME: usize = 64;

/// How many characters of a description the model gets.
const MAX_DESCRIPTION: usize = 2_000;

/// The largest schema, in bytes.
const MAX_SCHEMA: usize = 16 << 10;

/// A tool that is offered.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) definition: Tool,
    /// By which the server knows it.
    pub(crate) own_name: String,
    /// The kind of the action, if each call needs an approval.
    pub(crate) approved_as: Option<String>,
}

impl Offered {
    /// The kind of the action of a call.
    pub(crate) fn kind(&self, server: &str) -> String {
        format!("mcp.{server}.{}", self.own_name)
    }

    /// The size of what the model is told of it, in bytes.
    pub(crate) fn size(&self) -> usize {
        let Tool { name, description, parameters } = &self.definition;
        name.len() + description.len() + parameters.get().len()
    }

    /// Whether this is what was offered: a tool that has changed is not the one that was approved.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let [one, two] = [self, other].map(|it| (&it.own_name, &it.approved_as, &it.definition.description));
        one == two && self.definition.parameters.get() == other.definition.parameters.get()
    }
}

/// Which tools of a server are offered, and why others are not.
pub(crate) fn offered(
    server: &str,
    section: &McpServerSection,
    tools: Vec<model::Tool>,
) -> (Vec<Offered>, Vec<String>) {
    let (mut offered, mut left_out, mut names) = (Vec::new(), Vec::new(), HashSet::new());
    for tool in tools.into_iter().filter(|tool| section.offers(&tool.name)) {
        let own_name = tool.name.to_string();
        if offered.len() == MOST_TOOLS {
            left_out.push(format!("it has more than {MOST_TOOLS} tools"));
            break;
        }
        let mut schema = (*tool.input_schema).clone();
        schema.entry("type").or_insert_with(|| Value::from("object"));
        let Some(parameters) = to_raw_value(&schema).ok().filter(|schema| schema.get().len() <= MAX_SCHEMA) else {
            left_out.push(format!("the schema of {} has more than {} KiB", beginning(&own_name), MAX_SCHEMA >> 10));
            continue;
        };
        let name = name(server, &own_name);
        if !names.insert(name.clone()) {
            continue;
        }
        let said = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        let only_reads = tool.annotations.as_ref().and_then(|hints| hints.read_only_hint).unwrap_or(false);
        let approved_as = section.asks(&own_name, only_reads).then(|| format!("mcp.{server}.{own_name}"));
        let description = said.chars().take(MAX_DESCRIPTION).collect::<String>();
        let definition = Tool { name: name.into(), description: description.into(), parameters };
        offered.push(Offered { definition, own_name, approved_as });
    }
    (offered, left_out)
}

/// `SERVER_TOOL` in the letters that model servers take. A name that is changed or cut ends in a digest of the whole.
fn name(server: &str, tool: &str) -> String {
    let whole = format!("{server}_{tool}");
    let is_taken = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if whole.len() <= MAX_NAME && whole.chars().all(is_taken) {
        return whole;
    }
    let digest = hex::encode(&Sha256::digest(&whole)[..4]);
    let kept = whole.chars().map(|c| if is_taken(c) { c } else { '_' }).take(MAX_NAME - digest.len() - 1);
    format!("{}_{digest}", kept.collect::<String>())
}

fn beginning(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn tool(name: &str, schema: &Value) -> model::Tool {
        let schema = schema.as_object().expect("an object").clone();
        model::Tool::new(name.to_owned(), "Does it.", Arc::new(schema))
    }

    fn names(section: &McpServerSection, tools: Vec<model::Tool>) -> Vec<String> {
        offered("files", section, tools).0.into_iter().map(|tool| tool.definition.name.into_owned()).collect()
    }

    #[test]
    fn names_are_those_that_model_servers_take() {
        let long = "x".repeat(80);
        let tools = ["read", "lire.été", &long, "lire été"].map(|name| tool(name, &json!({})));

        let names = names(&McpServerSection::default(), tools.into());

        assert_eq!(names[0], "files_read");
        assert!(names[1].starts_with("files_lire__t__") && names[1] != names[3], "{names:?}");
        for name in names {
            assert!(name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
        }
    }

    #[test]
    fn what_is_offered_is_bounded() {
        let large = tool("large", &json!({ "description": "x".repeat(MAX_SCHEMA) }));
        let mut wordy = tool("wordy", &json!({}));
        wordy.description = Some("é".repeat(MAX_DESCRIPTION + 1).into());
        let (kept, left_out) = offered("files", &McpServerSection::default(), vec![large, wordy]);
        assert_eq!(left_out, ["the schema of large has more than 16 KiB"]);
        assert_eq!(kept[0].definition.description.chars().count(), MAX_DESCRIPTION);
        assert_eq!(kept[0].definition.parameters.get(), r#"{"type":"object"}"#);

        let many = (0..=MOST_TOOLS).map(|number| tool(&format!("t{number}"), &json!({}))).collect();
        let (kept, left_out) = offered("files", &McpServerSection::default(), many);
        assert_eq!((kept.len(), left_out.len()), (MOST_TOOLS, 1));
    }

    #[test]
    fn only_listed_tools_are_offered_and_those_that_only_read_need_no_approval() {
        let section = McpServerSection { tools: Some(vec!["read*".to_owned()]), ..McpServerSection::default() };
        let mut reads = tool("read", &json!({}));
        reads.annotations = Some(model::ToolAnnotations::new().read_only(true));
        let tools = vec![reads, tool("read_and_delete", &json!({})), tool("write", &json!({}))];

        let asks: Vec<_> = offered("files", &section, tools).0.into_iter().map(|tool| tool.approved_as).collect();

        assert_eq!(asks, [None, Some("mcp.files.read_and_delete".to_owned())]);
    }
}
