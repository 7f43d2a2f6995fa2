//! The job: hours of document work by one configurable agent, in phases, on disk.
//!
//! Strategic phases plan and tactical phases work. Each is a run of the one agent loop
//! with an empty conversation; what passes from one to the next are files and the typed
//! state of the machine. What kind of agent it is comes from a config, not from code.
//!
//! # Map
//!
//! - `config`: what a config may say, and its schema
//! - `load`: how it is found and merged, and what is wrong with it
//! - `check`: what no schema can say of it
//! - `line`: where in a JSON text a key stands
//! - `folder`: the job's own folder, made before it begins
//! - `setup`: from a config to what a job starts with
//! - `terms`: what a job starts with, recorded once
//! - `machine`: the phases
//! - `desk`: the tools by which the machine reads and archives
//! - `view`: how far a job is, folded from its events
//! - `report`: `output/error.json`, a projection

mod check;
mod config;
mod desk;
mod folder;
mod line;
mod load;
mod machine;
mod report;
mod setup;
mod terms;
mod view;

pub use config::{Connections, JobConfig, LoopMode, config_schema};
pub use desk::{desk_tools, opens_phase};
pub use folder::{FolderError, JobFolder, job_base};
pub use load::{ConfigError, Configs, LoadedConfig};
pub use machine::{JOB, JobMachine};
pub use report::{error_report, write_error};
pub use setup::{JobSetup, set_up};
pub use terms::{JobSpec, JobTerms, PhaseKind};
pub use view::{JobView, Stand};
