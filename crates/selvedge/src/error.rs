//! What a person is told when a command cannot do what was asked: what happened,
//! why, what to do next. And the exit code, which is what a script is told.

use std::fmt;

use selvedge_agent::{CrewError, DefinitionError, SetupError, SlashError};
use selvedge_crews::RecordError;
use selvedge_ledger::{LeaseError, LedgerError};
use selvedge_model::{CatalogueError, CredentialError, ResolveError, ScriptError};
use selvedge_runtime::DriveError;

use crate::text::{did_you_mean, escape, nearest, one_line};

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Failed.
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// A human must say something.
    Waiting = 3,
    /// The budget is used up.
    Budget = 4,
    /// Failed after something was denied.
    Denied = 5,
    /// No model provider answers.
    NoProvider = 6,
    /// What is stored is not what was written.
    Unverified = 7,
    /// The time that was given is over.
    Deadline = 124,
    /// Told to stop.
    Interrupted = 130,
}

/// Why a command did not do what was asked.
#[derive(Debug)]
pub struct Error {
    what: String,
    cause: Option<String>,
    hint: Option<String>,
    /// How the process ends.
    pub exit: Exit,
}

/// What a command returns.
pub type Result<T = Exit> = std::result::Result<T, Error>;

impl Error {
    /// Something that happened.
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            cause: None,
            hint: None,
            exit,
        }
    }

    /// Something the caller wrote is wrong.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// Something did not work.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::new(Exit::Failed, what)
    }

    /// Why it happened.
    pub fn cause(mut self, cause: impl fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// What to do next.
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// What happened and why, in a line.
    pub fn in_a_line(&self) -> String {
        let line = match &self.cause {
            Some(cause) => format!("{}: {cause}", self.what),
            None => self.what.clone(),
        };
        one_line(&line, usize::MAX)
    }

    /// The same error with another exit code.
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", escape(&self.what))?;
        for (name, line) in [("cause", &self.cause), ("hint", &self.hint)] {
            if let Some(line) = line {
                write!(f, "\n  {name}: {}", escape(line))?;
            }
        }
        Ok(())
    }
}

impl From<LedgerError> for Error {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Full { path } => {
                Self::failed(format!("no room is left for the ledger at `{path}`"))
                    .cause(
                        "the disk is full; what was acknowledged is safe, the rest was not written",
                    )
                    .hint("make room, then `selvedge resume`")
            }
            LedgerError::Unusable { path, why } => {
                Self::failed(format!("the ledger at `{path}` cannot be opened"))
                    .cause(why)
                    .hint(
                        "nothing was changed; `selvedge doctor` looks closer, and `SELVEDGE_HOME` \
                         names another place",
                    )
            }
            LedgerError::Damaged { .. } => Self::new(Exit::Unverified, error.to_string())
                .cause("what is stored is not what was written; other sessions are not affected")
                .hint("`selvedge audit verify` lists all damage; restore a backup of the ledger"),
            LedgerError::Fenced { stream } => {
                Self::failed(format!("`{stream}` is driven by another process now"))
                    .cause("this process was away for so long that its lease ended")
                    .hint("`selvedge ps` shows who drives it; nothing recorded is lost")
            }
            LedgerError::Conflict { .. } => Self::failed("another process wrote to the session")
                .cause(error)
                .hint("nothing recorded is lost; `selvedge ps` shows who drives what"),
            LedgerError::NoStream { stream } => {
                Self::usage(format!("there is no session `{stream}`"))
                    .hint("`selvedge sessions list` shows them")
            }
            LedgerError::Unavailable { why } => Self::failed("the ledger did not answer")
                .cause(why)
                .hint("try again; nothing acknowledged is lost"),
        }
    }
}

impl From<LeaseError> for Error {
    fn from(error: LeaseError) -> Self {
        match error {
            LeaseError::Held { stream, holder, .. } => {
                Self::failed(format!("session `{stream}` is being driven already"))
                    .cause(format!("process {} holds it", holder.pid))
                    .hint(format!(
                        "speak to it with `selvedge sessions steer {stream} \"…\"`, or stop it \
                         with `selvedge sessions suspend {stream}`"
                    ))
            }
            LeaseError::Ledger(error) => error.into(),
        }
    }
}

impl From<DriveError> for Error {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Ledger(error) => error.into(),
            DriveError::UnknownMachine { .. } => Self::failed(error.to_string())
                .cause("it was started by another version of Selvedge")
                .hint("resume it with that version"),
        }
    }
}

impl From<CrewError> for Error {
    fn from(error: CrewError) -> Self {
        match &error {
            CrewError::Unknown { name, known } => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                Self::usage(error.to_string())
                    .cause(format!("the crews are: {}", known.join(", ")))
                    .hint(did_you_mean(name, &known).unwrap_or_else(|| {
                        "leave `--crew` out, or make `.selvedge/crews/NAME/crew.toml`".into()
                    }))
            }
            CrewError::Unreadable { .. } => {
                Self::usage(error.to_string()).hint("make the file readable, or name another crew")
            }
            CrewError::Wrong { file, .. } => {
                Self::usage(error.to_string()).hint(format!("correct `{file}`"))
            }
            CrewError::Agent(DefinitionError { file, .. }) => {
                Self::usage(error.to_string()).hint(format!("correct `{file}`"))
            }
        }
    }
}

impl From<RecordError> for Error {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Ledger(error) => error.into(),
            RecordError::Unwritable { .. } => {
                Self::failed(error.to_string()).hint("make the data folder writable")
            }
        }
    }
}

impl From<SetupError> for Error {
    fn from(error: SetupError) -> Self {
        match &error {
            SetupError::UnknownTool { tool, known, .. } => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                Self::usage(error.to_string()).hint(
                    did_you_mean(tool, &known)
                        .unwrap_or_else(|| format!("the tools are: {}", known.join(", "))),
                )
            }
            SetupError::Prompt { .. } => {
                Self::usage(error.to_string()).hint("correct the prompt in the agent's file")
            }
            SetupError::Model { .. } => Self::new(Exit::NoProvider, error.to_string()),
            SetupError::RequestTooLong { .. } => Self::usage("the request is too long")
                .cause(error.to_string())
                .hint("put the long text into a file of the workspace, and name it in the request"),
            SetupError::Schema { why } => Self::usage("the output schema is not a JSON Schema")
                .cause(why)
                .hint("correct the file that `--output-schema` names"),
        }
    }
}

impl From<SlashError> for Error {
    fn from(error: SlashError) -> Self {
        match &error {
            SlashError::Unknown { name, known } => {
                let names: Vec<&str> = known.iter().map(String::as_str).collect();
                let cause = match names.is_empty() {
                    true => "there are no commands here".to_owned(),
                    false => format!("the commands are: /{}", names.join(", /")),
                };
                let near = nearest(name, &names).map(|near| format!("did you mean `/{near}`?"));
                Self::usage(error.to_string())
                    .cause(cause)
                    .hint(near.unwrap_or_else(|| {
                        format!(
                            "make `.selvedge/commands/{name}.md`, or begin the request with \
                             another word if it is none"
                        )
                    }))
            }
            SlashError::Broken { file, .. } => {
                Self::usage(error.to_string()).hint(format!("correct `{}`", file.display()))
            }
        }
    }
}

impl From<ResolveError> for Error {
    fn from(error: ResolveError) -> Self {
        let hint = error.hint();
        match &error {
            ResolveError::NoProvider { variables } => {
                let names: Vec<String> = variables.iter().map(|v| format!("`{v}`")).collect();
                Self::new(Exit::NoProvider, "no model provider is available")
                    .cause(format!("none of {} is set", names.join(", ")))
                    .hint(
                        "set one of them, store a key with `selvedge auth login`, or try \
                         `selvedge demo`, which needs no key",
                    )
            }
            ResolveError::NotAvailable { .. } => {
                Self::new(Exit::NoProvider, error.to_string()).hint(hint)
            }
            // No key would help: what was typed is the name of nothing.
            ResolveError::UnknownProvider { .. } | ResolveError::UnknownName { .. } => {
                Self::usage(error.to_string()).hint(hint)
            }
        }
    }
}

impl From<ScriptError> for Error {
    fn from(error: ScriptError) -> Self {
        let place = match error.line {
            Some(line) => format!("`{}` line {line}", error.file),
            None => format!("`{}`", error.file),
        };
        Self::usage(format!("the script {place} cannot be used"))
            .cause(error.what)
            .hint("correct the script and run the command again")
    }
}

impl From<CredentialError> for Error {
    fn from(error: CredentialError) -> Self {
        let hint = error.hint();
        Self::failed(error.to_string()).hint(hint)
    }
}

impl From<CatalogueError> for Error {
    fn from(error: CatalogueError) -> Self {
        Self::usage("the `[catalogue]` of the configuration cannot be used")
            .cause(error)
            .hint("`selvedge config path` says where it is")
    }
}
