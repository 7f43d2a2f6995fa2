//! Answers that are given again to the very same request.
//!
//! Off unless the user wants it. The key is a hash of the whole request, model
//! included. A request that asks for variety, with a temperature above zero, is
//! never answered so; one that leaves the temperature to the provider is, because
//! hardly any request says more. Only complete answers are kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use selvedge_ledger::Payload;

use crate::cassette::Clean;
use crate::fingerprint::Fingerprint;
use crate::types::{Request, Response, Stop, Usage};

/// So many answers are kept; the oldest make room.
const ENTRIES_MAX: usize = 10_000;

/// Answers of earlier calls, in a folder.
pub struct ResponseCache {
    folder: PathBuf,
    clean: Option<Clean>,
}

impl ResponseCache {
    /// Opens or makes the folder, and removes what is too much.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let cache = Self {
            folder: folder.to_owned(),
            clean: None,
        };
        cache.prune()?;
        Ok(cache)
    }

    /// The same with everything that is kept going through `clean`.
    pub fn with_clean(self, clean: Clean) -> Self {
        Self {
            clean: Some(clean),
            ..self
        }
    }

    /// The answer that was given to this request before. It used nothing now.
    pub(crate) fn get(&self, request: &Request) -> Option<Response> {
        let text = fs::read_to_string(self.path(request)?).ok()?;
        let response: Response = serde_json::from_str(&text).ok()?;
        Some(Response {
            usage: Usage::default(),
            ..response.keeping(Payload::new)
        })
    }

    /// Keeps an answer. One that cannot be kept is asked for again, no more.
    pub(crate) fn put(&self, request: &Request, response: &Response) {
        let is_complete = matches!(response.stop, Stop::End | Stop::Tools);
        let Some(path) = self.path(request).filter(|_| is_complete) else {
            return;
        };
        let response = response.keeping(Payload::inline);
        let written = serde_json::to_string(&response).map_err(io::Error::other);
        let _ = written.and_then(|json| {
            let json = match &self.clean {
                Some(clean) => clean(&json),
                None => json,
            };
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            io::Write::write_all(&mut file, json.as_bytes())?;
            file.persist(path).map_err(|error| error.error)
        });
    }

    /// Where the answer is, if such a request has one.
    fn path(&self, request: &Request) -> Option<PathBuf> {
        let wants_variety = request.temperature.is_some_and(|t| t > 0.0);
        let digest = || Fingerprint::of(request, &request.model).digest();
        (!wants_variety).then(|| self.folder.join(digest()))
    }

    fn prune(&self) -> io::Result<()> {
        let entries: Vec<fs::DirEntry> = fs::read_dir(&self.folder)?.collect::<Result<_, _>>()?;
        let too_many = entries.len().saturating_sub(ENTRIES_MAX);
        if too_many == 0 {
            return Ok(());
        }
        let age = |entry: &fs::DirEntry| {
            let written = entry.metadata().and_then(|data| data.modified());
            written.unwrap_or(SystemTime::UNIX_EPOCH)
        };
        let mut entries: Vec<_> = entries.iter().map(|e| (age(e), e.path())).collect();
        entries.sort();
        // Another process may have removed it already.
        let oldest = entries.iter().take(too_many);
        oldest.for_each(|(_, path)| drop(fs::remove_file(path)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::scripted::Turn;
    use crate::types::{Effort, Message};

    fn request(words: &str) -> Request {
        Request {
            model: "a/one".into(),
            agent: "engineer".into(),
            turn: 0,
            system: "be brief".into(),
            messages: vec![Arc::new(Message::user(words.to_owned()))].into(),
            tools: Arc::from([]),
            output_schema: None,
            output_tokens_max: 100,
            temperature: None,
            effort: None,
        }
    }

    #[test]
    fn the_very_same_request_gets_the_answer_again_at_no_cost() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ResponseCache::open(folder.path()).unwrap();
        let asked = request("hello");
        assert!(cache.get(&asked).is_none());
        let answer = Turn::text("y".repeat(5000)).response(&asked, &asked.model);
        cache.put(&asked, &answer);
        let other_turn = Request {
            turn: 7,
            agent: "tester".into(),
            ..asked.clone()
        };
        let again = ResponseCache::open(folder.path()).unwrap().get(&other_turn);
        let again = again.unwrap();
        assert_eq!(
            (again.message, again.usage),
            (answer.message, Usage::default())
        );
        assert!(cache.get(&request("hallo")).is_none());
        let other_model = Request {
            model: "a/two".into(),
            ..asked
        };
        assert!(cache.get(&other_model).is_none());
    }

    #[test]
    fn an_answer_that_was_thought_over_is_not_given_for_a_quick_one() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ResponseCache::open(folder.path()).unwrap();
        let thorough = Request {
            effort: Some(Effort::High),
            ..request("hello")
        };
        cache.put(&thorough, &Turn::text("a").response(&thorough, "a/one"));
        assert!(cache.get(&thorough).is_some());
        assert!(cache.get(&request("hello")).is_none());
    }

    #[test]
    fn variety_and_incomplete_answers_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ResponseCache::open(folder.path()).unwrap();
        let varied = Request {
            temperature: Some(0.7),
            ..request("hello")
        };
        cache.put(&varied, &Turn::text("a").response(&varied, "a/one"));
        assert!(cache.get(&varied).is_none());
        let cut = Turn {
            stop: Some(Stop::Length),
            ..Turn::text("a")
        };
        let asked = request("hello");
        cache.put(&asked, &cut.response(&asked, "a/one"));
        assert!(cache.get(&asked).is_none());
    }
}
