//! What the agents of the swarm say to one another: requests and responses.
//!
//! The schemas that both sides are held to are made from these types. What the runtime
//! adds to a response, `discrepancies`, is not in them: no agent may write it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema::of;

/// What the Orchestrator hands to the Planner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MissionRequest {
    /// The whole mission, with everything the user said that matters for it.
    pub mission: String,
}

/// How the Planner ends a mission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MissionComplete {
    /// What there is now, how it was checked, and what is left open; or why the mission
    /// cannot be reached.
    pub summary: String,
    /// Whether the mission was reached.
    pub outcome: MissionOutcome,
}

/// Whether a mission was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissionOutcome {
    /// It was, and the work is to be merged.
    Done,
    /// It was not: nothing is merged, and the work is kept apart.
    Failed,
}

/// A task for the Designer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesignRequest {
    /// What is to be designed.
    pub task: String,
    /// What the Designer needs to know beside the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What the design must keep to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
}

/// A design.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesignResponse {
    /// How it is built, and why so.
    pub architecture: String,
    /// The files it consists of.
    pub files: Vec<FileSpec>,
    /// What the parts offer one another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<String>,
    /// What whoever builds it should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub implementation_notes: Vec<String>,
    /// What it needs from elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    /// What may go wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
}

/// A file of a design.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// Where it is, from the work directory.
    pub path: String,
    /// What it is for.
    pub purpose: String,
    /// What is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<String>,
}

/// A task for the Builder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BuildRequest {
    /// What is to be built or fixed.
    pub task: String,
    /// The design to build by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<DesignResponse>,
    /// The directory to work in: `.` is all of it.
    pub work_dir: String,
    /// A review whose issues are to be dealt with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<ReviewResponse>,
}

/// What was built. It is compared with what really happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BuildResponse {
    /// Files that were not there before.
    pub files_created: Vec<String>,
    /// Files that were there, and were changed or removed.
    pub files_modified: Vec<String>,
    /// Whether tests were run, by a command of yours.
    pub tests_run: bool,
    /// Whether all of them passed when they were run last.
    pub tests_passed: bool,
    /// What the tests printed, if it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_output: Option<String>,
    /// What the build printed, if it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_output: Option<String>,
    /// What else there is to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// A task for the Reviewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewRequest {
    /// What the work was for, and what the review should look at.
    pub task: String,
    /// The files to review.
    pub files_changed: Vec<String>,
    /// The design that they were built by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_design: Option<DesignResponse>,
}

/// A review: feedback, and no verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewResponse {
    /// The review in a few sentences.
    pub summary: String,
    /// What is wrong, the worst first.
    pub issues: Vec<Issue>,
    /// What is good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub positives: Vec<String>,
    /// What could be better without being wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Issue {
    /// How bad it is.
    pub severity: Severity,
    /// In which file.
    pub file: String,
    /// In which line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The work does not do what it is for, or does harm.
    Critical,
    /// It should be fixed.
    Minor,
    /// A matter of taste.
    Nitpick,
}

/// Every schema, by the name that the agents' files use.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("MissionRequest", of::<MissionRequest>()),
        ("MissionComplete", of::<MissionComplete>()),
        ("DesignRequest", of::<DesignRequest>()),
        ("DesignResponse", of::<DesignResponse>()),
        ("BuildRequest", of::<BuildRequest>()),
        ("BuildResponse", of::<BuildResponse>()),
        ("ReviewRequest", of::<ReviewRequest>()),
        ("ReviewResponse", of::<ReviewResponse>()),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_names_what_is_required_and_knows_nothing_else() {
        let schema = of::<BuildResponse>();
        let required = [
            "files_created",
            "files_modified",
            "tests_run",
            "tests_passed",
        ];
        assert_eq!(schema["required"], json!(required));
        assert_eq!(schema["additionalProperties"], false);
        assert!(schema["properties"].get("discrepancies").is_none());
        let severity =
            &of::<ReviewResponse>()["properties"]["issues"]["items"]["properties"]["severity"];
        assert!(severity.to_string().contains("nitpick"), "{severity}");
    }
}
