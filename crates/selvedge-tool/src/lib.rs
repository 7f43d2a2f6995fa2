//! What an agent can do, and the fence around it.
//!
//! # Map
//!
//! - `tool`: what a tool is: a declaration, a preparation, an act and a probe
//! - `toolbox`: the tools at hand, and the one path that every call takes
//! - `policy`: when a call is carried out, asked about or refused
//! - `judging`: a call judged where it would happen
//! - `workspace`: the files a tool may touch, reached by directory handle
//! - `builtin`: one file per built-in tool
//! - `sandbox`: the fence around commands
//! - `process`: commands that end, together with everything they started
//! - `report`: what tools report, as structure
//! - `secrets`: what must not be shown, and credentials that are lent to tools
//! - `deadline`: a tool runs within its time
//! - `again`: a command is not run again while nothing it reads has changed
//! - `offer`: tools that a run may ask for, and how they are found
//! - `skills`: folders with a `SKILL.md`, for particular kinds of work
//! - `front`: the front matter of a Markdown file
//! - `discovery`: which linter, formatter or test runner a project uses
//! - `todo`: a run's list of todos, typed, changed by facts
//! - `touch`: what a call may change, known before it begins
//! - `checkpoint`: what files were, kept so that they can be put back
//! - `survey`: which files there are, and what has changed since
//! - `workcopy`: a copy of the user's files to work in, merged back all at once
//! - `errand`: a program of the user's own, run for its answer
//! - `cut`: long answers made short: head, tail and important lines
//! - `schema`: a tool's schema from the type of its arguments
//!
//! # Invariants
//!
//! - Every call goes through [`Toolbox`]: nothing runs around it.
//! - No file tool reads, writes, lists or searches outside of its [`Workspace`].
//! - No process outlives the call that started it, nor Selvedge itself.
//! - What is allowed is decided by [`judge`], a pure function of recorded data.
//! - No secret that is known, or looks like one, is in what a tool answers.
//! - A failing tool answers; it does not raise an error.
//! - This crate knows nothing of models or agents.

mod again;
mod builtin;
mod checkpoint;
mod cut;
mod deadline;
mod discovery;
mod errand;
mod front;
mod judging;
mod offer;
mod policy;
mod process;
mod report;
mod sandbox;
mod schema;
mod secrets;
mod skills;
mod survey;
#[cfg(test)]
mod testing;
mod todo;
mod tool;
mod toolbox;
mod touch;
mod workcopy;
mod workspace;

pub use builtin::DiscoverTools;
pub use checkpoint::{Checkpoint, Coverage, Restored};
pub use errand::{Errand, ErrandError, Returned};
pub use front::front_matter;
pub use offer::Offer;
pub use policy::{
    Act, CAPABILITIES, CRAFTS, Capability, Cell, Craft, Decision, Deed, Finding, Grant, Grants,
    Guard, Layer, MATRIX, Operation, Part, Pattern, Policy, ROLES, Risk, Role, Rule, Rules, Site,
    Source, Tested, Verdict, compact, glob, guard, judge, risks, visible,
};
pub use process::{
    Companion, CompanionError, Counted, Keeper, Started, counted, names_a_secret, set_stand_in,
    stand_inside,
};
pub use sandbox::{
    Attempt, Fence, Helper, HostRule, Maker, Mode, Network, Resources, Sandbox,
    attempt_to_break_out, break_out, try_sandbox,
};
pub use secrets::{
    Consent, ConsentBook, Credential, CustomPattern, Granted, KnownValues, Lender, Lent, MARK,
    NoConsent, Redactor, RuleError, Scopes, Secrets, SensitiveFiles, Severity, Sighting, Vault,
    Wanted, variable,
};
pub use skills::{
    ContentRoot, FoundSkills, LeftOut, Owner, Skill, SkillFault, SkillFile, check_skill,
    find_skills, skills_list,
};
pub use survey::{Survey, Surveyed};
pub use todo::{Desk, Todo, TodoBounds, TodoChange, TodoFile, TodoState, Todos};
pub use tool::{
    Caller, REQUEST_TOOLS, ResultStore, TOOL_SEARCH, Tool, ToolContext, ToolOutput, ToolProbe,
    ToolSpec, USE_SKILL, World,
};
pub use toolbox::{Checked, Toolbox};
pub use touch::Touch;
pub use workcopy::{CopyError, Merged, StrayLink, WorkCopy};
pub use workspace::{PathError, Workspace};
