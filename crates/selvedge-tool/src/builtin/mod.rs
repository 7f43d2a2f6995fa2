//! The built-in tools, a file each. A new one is a new file and one line in [`all`].

mod append_file;
mod ask_user;
pub(crate) mod change;
mod delete_file;
mod discover_tools;
mod edit_file;
mod file_exists;
mod finish;
mod get_workspace_summary;
pub(crate) mod git;
mod git_blame;
mod git_branch;
mod git_branches;
mod git_commit;
mod git_diff;
mod git_log;
mod git_look;
mod git_show;
mod git_status;
#[cfg(test)]
mod git_tests;
mod git_worktree;
mod list_files;
mod multi_edit;
mod read_file;
mod replace;
mod request_tools;
mod run_command;
mod search_files;
mod todo;
mod tool_search;
mod use_skill;
mod web_search;
mod write_file;

pub use discover_tools::DiscoverTools;

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::tool::Tool;
use git_look::Look;

/// Every built-in tool.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(todo::AddTodo),
        Arc::new(append_file::AppendFile),
        Arc::new(todo::ArchiveAndReset),
        Arc::new(ask_user::AskUser),
        Arc::new(todo::CompleteTodo),
        Arc::new(delete_file::DeleteFile),
        Arc::new(DiscoverTools::default()),
        Arc::new(edit_file::EditFile),
        Arc::new(file_exists::FileExists),
        Arc::new(finish::Finish),
        Arc::new(todo::GetNextTodo),
        Arc::new(todo::GetProgress),
        Arc::new(get_workspace_summary::GetWorkspaceSummary),
        Arc::new(Look(git_blame::GitBlame)),
        Arc::new(git_branch::GitBranch),
        Arc::new(Look(git_branches::GitBranches)),
        Arc::new(git_commit::GitCommit),
        Arc::new(Look(git_diff::GitDiff)),
        Arc::new(Look(git_log::GitLog)),
        Arc::new(Look(git_show::GitShow)),
        Arc::new(Look(git_status::GitStatus)),
        Arc::new(git_worktree::GitWorktree),
        Arc::new(todo::JobComplete),
        Arc::new(list_files::ListFiles),
        Arc::new(todo::ListTodos),
        Arc::new(multi_edit::MultiEdit),
        Arc::new(read_file::ReadFile),
        Arc::new(request_tools::RequestTools),
        Arc::new(run_command::RunCommand::default()),
        Arc::new(search_files::SearchFiles),
        Arc::new(todo::StartTodo),
        Arc::new(todo::TodoComplete),
        Arc::new(todo::TodoWrite),
        Arc::new(tool_search::ToolSearch),
        Arc::new(use_skill::UseSkill),
        Arc::new(web_search::WebSearch),
        Arc::new(write_file::WriteFile),
    ]
}

/// So much file work goes on at once. A thousand sessions that read a line each
/// would otherwise start hundreds of threads, which cost more than the reading.
const BLOCKING_MAX: usize = 4;
static BLOCKING: Semaphore = Semaphore::const_new(BLOCKING_MAX);

/// Does file work where it may block. The runtime's own threads stay free.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let _place = BLOCKING.acquire().await.expect("it is never closed");
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
