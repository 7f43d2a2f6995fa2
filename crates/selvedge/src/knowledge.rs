//! The index of a project: where it is kept, what must not get into it, and what a
//! person is told when it cannot be used.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use selvedge_agent::{Hook, LAST, Moment, Occasion, OpenIndex, Reaction, Setting};
use selvedge_knowledge::{
    Clock, Discretion, Embedder, Index, KnowledgeError, Project, Time, index_project,
};
use selvedge_runtime::{Clock as _, SystemClock};

use crate::config::Config;
use crate::embedder;
use crate::error::{Error, Result};
use crate::paths::Paths;
use crate::secrets;

/// The first bytes of every SQLite file.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Keeps the secrets of this process, and what looks like one, out of an index.
pub struct Private;

impl Discretion for Private {
    fn is_sensitive(&self, path: &Path) -> bool {
        secrets::of_this_process().is_sensitive(path)
    }

    fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        secrets::of_this_process().redact(text)
    }
}

/// The index of a project, made if there is none.
pub fn open(paths: &Paths, root: &Path, embedder: Arc<dyn Embedder>) -> Result<Index> {
    open_at(paths, &file_of(paths, root), embedder)
}

/// The index at a place, made if there is none.
pub fn open_at(paths: &Paths, file: &Path, embedder: Arc<dyn Embedder>) -> Result<Index> {
    paths.make_data()?;
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).map_err(|error| {
            Error::failed(format!("the folder `{}` cannot be made", folder.display()))
                .cause(error)
                .hint("make the data folder writable")
        })?;
    }
    Ok(Index::open(file, embedder, clock())?)
}

/// The index of the project that `folder` is in: its own, or that of a folder above.
pub fn find(paths: &Paths, folder: &Path, embedder: Arc<dyn Embedder>) -> Result<(Index, PathBuf)> {
    let root = folder
        .ancestors()
        .find(|root| file_of(paths, root).is_file())
        .ok_or_else(|| {
            Error::usage(format!("there is no index of `{}`", folder.display()))
                .cause("it was not made yet")
                .hint("make it with `selvedge index`")
        })?;
    let index = Index::open_existing(&file_of(paths, root), embedder, clock())?;
    Ok((index, root.to_owned()))
}

/// Vectors that are made for an agent before it is answered, where they are slow to make:
/// the rest comes with its next questions, or with `selvedge index`.
const VECTORS_PER_QUESTION: usize = 32;

/// Opens the index of a workspace for an agent's tools: made if there is none, and
/// current, for an agent relies on what it is told.
pub fn opener() -> OpenIndex {
    let current = current();
    Arc::new(move |root| {
        let index = current(root)?;
        refresh(&index, root).map_err(|error| error.to_string())?;
        // Words do until it answers again.
        let _ = index.make_vectors(VECTORS_PER_QUESTION, &AtomicBool::new(false), &|_| {});
        Ok(index)
    })
}

/// Opens the index of a workspace as it was left.
pub fn opener_as_left() -> OpenIndex {
    Arc::new(current())
}

/// Follows what the tools of a job write and delete in its folder, so that the index is
/// never behind its files.
pub struct FollowJobs {
    open: OpenIndex,
    tools: Vec<String>,
}

impl FollowJobs {
    /// After which tools there is something to follow: those that write, and what a
    /// machine does before a phase, when there are documents already.
    const TOOLS: [&str; 12] = [
        "append_file",
        "archive_and_reset",
        "chunk_document",
        "delete_file",
        "edit_file",
        "job_complete",
        "multi_edit",
        "phase_close",
        "phase_open",
        "run_command",
        "todo_write",
        "write_file",
    ];

    /// With the usual index.
    pub fn new() -> Self {
        Self {
            open: opener(),
            tools: Self::TOOLS.map(str::to_owned).to_vec(),
        }
    }
}

#[async_trait]
impl Hook for FollowJobs {
    fn name(&self) -> &str {
        "index"
    }

    fn moment(&self) -> Moment {
        Moment::PostTool
    }

    fn tools(&self) -> &[String] {
        &self.tools
    }

    fn priority(&self) -> u8 {
        LAST
    }

    async fn react(
        &self,
        setting: Setting<'_>,
        _: &Occasion,
    ) -> std::result::Result<Reaction, String> {
        let root = setting.workspace.root().to_owned();
        if selvedge_crews::job_base(&root) == root {
            return Ok(Reaction::default());
        }
        let open = self.open.clone();
        let followed = tokio::task::spawn_blocking(move || open(&root).map(drop)).await;
        let followed = followed.map_err(|error| error.to_string()).flatten();
        followed.map(|()| Reaction::default())
    }
}

/// Opens the store that the jobs of one directory share, for the folder of a job. What is
/// in the directory is not read for it.
pub fn shared_opener() -> OpenIndex {
    let current = current();
    Arc::new(move |root| current(selvedge_crews::job_base(root)))
}

/// Opens an index with the embedder that is configured for its folder, found once.
fn current() -> impl Fn(&Path) -> std::result::Result<Index, String> {
    let embedder: OnceLock<Arc<dyn Embedder>> = OnceLock::new();
    move |root| {
        let paths = Paths::find().map_err(|error| error.in_a_line())?;
        let embedder = match embedder.get() {
            Some(embedder) => embedder.clone(),
            None => {
                let config = Config::load(&paths, root).map_err(|error| error.in_a_line())?;
                let found = embedder::find(&config);
                // Who is away now may be back for the next question.
                match found.is_away() {
                    None => embedder.get_or_init(|| found).clone(),
                    Some(_) => found,
                }
            }
        };
        open(&paths, root, embedder).map_err(|error| error.in_a_line())
    }
}

/// Brings an index up to date. `false` if somebody else is at it.
pub fn refresh(index: &Index, root: &Path) -> selvedge_knowledge::Result<bool> {
    let project = Project {
        root: root.to_owned(),
        discretion: &Private,
        progress: &|_| {},
        stop: &AtomicBool::new(false),
    };
    match index_project(index, &project) {
        Ok(_) => Ok(true),
        Err(KnowledgeError::Busy { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The index that `named` is, or that was made of the corpus that `named` is.
pub fn find_named(paths: &Paths, named: &Path, embedder: Arc<dyn Embedder>) -> Result<Index> {
    let unreadable = |error: std::io::Error| {
        Error::usage(format!("`{}` cannot be read", named.display()))
            .cause(error)
            .hint("name an index, or a corpus that was loaded with `selvedge index --jsonl`")
    };
    let mut first = Vec::new();
    let file = std::fs::File::open(named).map_err(unreadable)?;
    let begin = std::io::Read::take(file, SQLITE.len() as u64);
    std::io::Read::read_to_end(&mut { begin }, &mut first).map_err(unreadable)?;
    let file = match first == SQLITE {
        true => named.to_owned(),
        false => file_of(paths, &named.canonicalize().map_err(unreadable)?),
    };
    if !file.is_file() {
        return Err(
            Error::usage(format!("`{}` was not loaded yet", named.display())).hint(format!(
                "load it with `selvedge index --jsonl {}`",
                named.display()
            )),
        );
    }
    Ok(Index::open_existing(&file, embedder, clock())?)
}

/// Where the index of a project, or of a corpus, is kept: never within it.
pub fn file_of(paths: &Paths, root: &Path) -> PathBuf {
    paths.project(root).join("index.db")
}

fn clock() -> Clock {
    Arc::new(|| Time(SystemClock.now().0))
}

impl From<KnowledgeError> for Error {
    fn from(error: KnowledgeError) -> Self {
        match &error {
            KnowledgeError::Unusable { path, .. } => Self::failed(error.to_string()).hint(format!(
                "an index can always be made again: remove `{path}`, then `selvedge index`"
            )),
            KnowledgeError::Busy { .. } => Self::failed(error.to_string())
                .hint("let it finish; `selvedge search` works meanwhile"),
            KnowledgeError::NoNode { .. } => Self::usage(error.to_string())
                .hint("`selvedge search --json` prints the ids of what it finds"),
            KnowledgeError::Embedding { .. } => Self::failed(error.to_string())
                .hint("nothing was stored; try again when the embedder answers"),
            KnowledgeError::Dimension { .. } => {
                Self::failed(error.to_string()).hint("make the index again with `selvedge index`")
            }
            KnowledgeError::Circle { .. } | KnowledgeError::Request(_) => {
                Self::usage(error.to_string())
            }
            KnowledgeError::Record { .. } => Self::usage(error.to_string()).hint(
                "a record is a line such as `{\"id\": \"tea\", \"text\": \"The kettle whistles.\"}`",
            ),
            KnowledgeError::NoConflict { .. } => Self::usage(error.to_string())
                .hint("`selvedge knowledge conflicts` lists those that are open"),
            KnowledgeError::File { .. } => {
                Self::usage(error.to_string()).hint("name something that can be read")
            }
            KnowledgeError::Store(_) => Self::failed(error.to_string())
                .hint("try again; nothing was half done, and an index can always be made again"),
        }
    }
}
