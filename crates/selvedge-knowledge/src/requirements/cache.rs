//! The requirement cache: what one job found, for another to check.

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::{alike, id_of};
use crate::error::{KnowledgeError, Result};
use crate::store::Index;
use crate::time::Time;

/// Where a statement stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    /// Its name; follows from the rest.
    #[serde(default)]
    pub id: String,
    /// The document, or the address of a page.
    pub source: String,
    /// The page, from 1, where there are pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// The words.
    pub quote: String,
    /// A digest of the document that the words were found in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
}

/// Something that has to be so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// Its name; follows from its text.
    #[serde(default)]
    pub id: String,
    /// What has to be so, in one sentence.
    pub text: String,
    /// A short name.
    #[serde(default)]
    pub name: String,
    /// What kind it is, such as `functional`.
    #[serde(default)]
    pub kind: String,
    /// How much it matters.
    #[serde(default)]
    pub priority: String,
    /// How it stands: `pending`, `accepted`, `rejected` or `duplicate`.
    #[serde(default)]
    pub status: String,
    /// Where it stands.
    pub citations: Vec<Citation>,
    /// The job that found it.
    #[serde(default)]
    pub job: String,
    /// When it was stored.
    #[serde(default)]
    pub created: Time,
}

/// Where requirements are passed on.
pub trait RequirementCache {
    /// Stores a citation; its name.
    fn cite(&self, citation: &Citation, job: &str) -> Result<String>;

    /// The citation of a name.
    fn citation(&self, id: &str) -> Result<Option<Citation>>;

    /// Stores a requirement with the citations of these names, at least one; its name.
    fn add_requirement(&self, requirement: &Requirement, citations: &[String]) -> Result<String>;

    /// The requirements, of one status or of all, the oldest first.
    fn requirements(&self, status: Option<&str>) -> Result<Vec<Requirement>>;

    /// Those that are most like a statement, with how alike they are.
    fn similar_requirements(&self, text: &str, limit: usize) -> Result<Vec<(Requirement, f64)>> {
        let mut found: Vec<(Requirement, f64)> = self
            .requirements(None)?
            .into_iter()
            .map(|other| {
                let likeness = alike(text, &other.text);
                (other, likeness)
            })
            .filter(|(_, likeness)| *likeness > 0.2)
            .collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found.truncate(limit);
        Ok(found)
    }

    /// Says how a requirement stands.
    fn set_requirement_status(&self, id: &str, status: &str) -> Result<()>;
}

impl RequirementCache for Index {
    fn cite(&self, citation: &Citation, job: &str) -> Result<String> {
        let page = citation.page.map_or(String::new(), |page| page.to_string());
        let id = id_of("cite", &[&citation.source, &page, &citation.quote]);
        let stored = Citation {
            id: id.clone(),
            ..citation.clone()
        };
        let body = serde_json::to_string(&stored).expect("plain data");
        self.connection.execute(
            "INSERT INTO citations (id, body, job, created) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO NOTHING",
            params![id, body, job, self.now().0],
        )?;
        Ok(id)
    }

    fn citation(&self, id: &str) -> Result<Option<Citation>> {
        let mut find = self
            .connection
            .prepare_cached("SELECT body FROM citations WHERE id = ?1")?;
        let body: Option<String> = find.query_row([id], |row| row.get(0)).optional()?;
        Ok(body.and_then(|body| serde_json::from_str(&body).ok()))
    }

    fn add_requirement(&self, requirement: &Requirement, citations: &[String]) -> Result<String> {
        if requirement.text.trim().is_empty() {
            return Err(KnowledgeError::Request("a requirement needs a text".into()));
        }
        let mut found = Vec::new();
        for id in citations {
            let citation = self.citation(id)?.ok_or_else(|| {
                KnowledgeError::Request(format!("there is no citation `{id}`; make one first"))
            })?;
            found.push(citation);
        }
        if found.is_empty() {
            let why = "a requirement without a citation is not stored; make one first";
            return Err(KnowledgeError::Request(why.into()));
        }
        let id = id_of("req", &[requirement.text.trim()]);
        let stored = Requirement {
            id: id.clone(),
            status: "pending".into(),
            citations: found,
            created: self.now(),
            ..requirement.clone()
        };
        let body = serde_json::to_string(&stored).expect("plain data");
        self.connection.execute(
            "INSERT INTO requirements (id, body, status, job, created) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (id) DO UPDATE SET body = excluded.body",
            params![id, body, stored.status, stored.job, stored.created.0],
        )?;
        Ok(id)
    }

    fn requirements(&self, status: Option<&str>) -> Result<Vec<Requirement>> {
        let mut find = self.connection.prepare_cached(
            "SELECT body, status FROM requirements WHERE ?1 IS NULL OR status = ?1
             ORDER BY created, id",
        )?;
        let rows = find.query_map([status], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut found = Vec::new();
        for row in rows {
            let (body, status): (String, String) = row?;
            if let Ok(stored) = serde_json::from_str::<Requirement>(&body) {
                found.push(Requirement { status, ..stored });
            }
        }
        Ok(found)
    }

    fn set_requirement_status(&self, id: &str, status: &str) -> Result<()> {
        let changed = self.connection.execute(
            "UPDATE requirements SET status = ?2 WHERE id = ?1",
            params![id, status],
        )?;
        match changed {
            0 => Err(KnowledgeError::Request(format!(
                "there is no requirement `{id}`"
            ))),
            _ => Ok(()),
        }
    }
}
