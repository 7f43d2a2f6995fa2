//! A line that can be edited, with what was typed before and names to complete.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Context, Helper, Highlighter, Hinter, Validator};

use crate::error::{Error, Result};

/// What came of asking for a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// This was typed.
    Typed(String),
    /// What was typed is not meant: Ctrl-C.
    Dropped,
    /// Nothing more comes.
    End,
}

/// Where lines are typed: at a terminal with an editor, else as they come.
pub struct Editor {
    editor: Option<rustyline::Editor<Names, FileHistory>>,
    history: PathBuf,
}

/// The names that can be completed.
#[derive(Helper, Hinter, Highlighter, Validator)]
struct Names(Vec<String>);

impl Editor {
    /// An editor that completes `names` and keeps what is typed in `history`.
    pub fn new(names: Vec<String>, history: &Path) -> Self {
        // A list of what fits, as shells show it; going round them hides how many there are.
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .build();
        let editor = std::io::stdin()
            .is_terminal()
            .then(|| rustyline::Editor::with_config(config));
        let editor = editor.and_then(|editor| editor.ok()).map(|mut editor| {
            editor.set_helper(Some(Names(names)));
            // There is none before the first time.
            let _ = editor.load_history(history);
            editor
        });
        Self {
            editor,
            history: history.to_owned(),
        }
    }

    /// The next line.
    pub fn line(&mut self, prompt: &str) -> Result<Line> {
        let unreadable = |error: &dyn std::fmt::Display| {
            Error::failed("what is typed cannot be read").cause(error)
        };
        let Some(editor) = &mut self.editor else {
            let mut line = String::new();
            let read = std::io::stdin().read_line(&mut line);
            let read = read.map_err(|error| unreadable(&error))?;
            return Ok(match read {
                0 => Line::End,
                _ => Line::Typed(line),
            });
        };
        match editor.readline(prompt) {
            Ok(line) => {
                if !line.trim().is_empty() {
                    let _ = editor.add_history_entry(line.as_str());
                    // A history that cannot be kept harms no note.
                    let _ = editor.save_history(&self.history);
                }
                Ok(Line::Typed(line))
            }
            Err(ReadlineError::Interrupted) => Ok(Line::Dropped),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(error) => Err(unreadable(&error)),
        }
    }
}

impl Completer for Names {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..at];
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let word = &before[start..];
        Ok((start, completions(&self.0, word)))
    }
}

/// The names that begin so; none before anything is typed.
fn completions(names: &[String], word: &str) -> Vec<String> {
    let fits = |name: &&String| !word.is_empty() && name.starts_with(word);
    names.iter().filter(fits).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_domains_are_completed() {
        let names = ["/why", "/notes", "strength", "swimming"].map(str::to_owned);
        assert_eq!(completions(&names, "/"), ["/why", "/notes"]);
        assert_eq!(completions(&names, "sw"), ["swimming"]);
        assert!(completions(&names, "").is_empty());
    }
}
