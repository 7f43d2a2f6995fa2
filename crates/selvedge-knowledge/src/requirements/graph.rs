//! The graph of checked requirements: entities with labels, and typed relations.

use std::collections::BTreeMap;

use rusqlite::params;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{KnowledgeError, Result};
use crate::store::Index;

/// What entities may be.
pub const LABELS: [&str; 4] = ["Requirement", "BusinessObject", "Message", "Document"];
/// How they may be related.
pub const RELATIONS: [&str; 6] = [
    "FULFILLED_BY",
    "NOT_FULFILLED_BY",
    "DUPLICATES",
    "REFINES",
    "DEPENDS_ON",
    "STATED_IN",
];
/// What a requirement must have to comply.
const WANTED: [&str; 3] = ["text", "status", "citation"];

/// A thing in the graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entity {
    /// Its name, unique.
    pub id: String,
    /// What it is.
    pub label: String,
    /// What is known of it.
    #[serde(default)]
    pub properties: Map<String, Value>,
}

/// How two things are related.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    /// From.
    pub source: String,
    /// To.
    pub target: String,
    /// How.
    pub kind: String,
    /// More about it.
    #[serde(default)]
    pub properties: Map<String, Value>,
}

/// How much there is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GraphStatistics {
    /// Entities, by label.
    pub entities: BTreeMap<String, u64>,
    /// Relations, by kind.
    pub relations: BTreeMap<String, u64>,
}

/// Where checked requirements are kept.
pub trait RequirementGraph {
    /// Stores an entity in place of the one of the same name.
    fn put_entity(&self, entity: &Entity) -> Result<()>;

    /// Relates two entities that are there.
    fn relate(&self, relation: &Relation) -> Result<()>;

    /// Entities of a label, or all, whose properties have these values.
    fn entities(&self, label: Option<&str>, having: &Map<String, Value>) -> Result<Vec<Entity>>;

    /// The relations that an entity is in.
    fn relations_of(&self, id: &str) -> Result<Vec<Relation>>;

    /// How much there is.
    fn graph_statistics(&self) -> Result<GraphStatistics>;

    /// What does not comply with the schema, in sentences.
    fn violations(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for entity in self.entities(Some(LABELS[0]), &Map::new())? {
            for key in WANTED {
                let is_there = entity.properties.get(key).is_some_and(|v| !v.is_null());
                if !is_there {
                    found.push(format!("requirement `{}` has no `{key}`", entity.id));
                }
            }
        }
        Ok(found)
    }
}

fn known(what: &str, name: &str, names: &[&str]) -> Result<()> {
    match names.contains(&name) {
        true => Ok(()),
        false => Err(KnowledgeError::Request(format!(
            "there is no {what} `{name}`; there are {}",
            names.join(", ")
        ))),
    }
}

impl RequirementGraph for Index {
    fn put_entity(&self, entity: &Entity) -> Result<()> {
        known("label", &entity.label, &LABELS)?;
        if entity.id.trim().is_empty() {
            return Err(KnowledgeError::Request("an entity needs an id".into()));
        }
        let properties = Value::Object(entity.properties.clone()).to_string();
        self.connection.execute(
            "INSERT INTO entities (id, label, properties, created) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO UPDATE SET label = excluded.label,
                                            properties = excluded.properties",
            params![entity.id, entity.label, properties, self.now().0],
        )?;
        Ok(())
    }

    fn relate(&self, relation: &Relation) -> Result<()> {
        known("relationship", &relation.kind, &RELATIONS)?;
        for id in [&relation.source, &relation.target] {
            let mut find = self
                .connection
                .prepare_cached("SELECT 1 FROM entities WHERE id = ?1")?;
            if !find.exists([id])? {
                let why = format!("there is no entity `{id}`; create it first");
                return Err(KnowledgeError::Request(why));
            }
        }
        let properties = Value::Object(relation.properties.clone()).to_string();
        self.connection.execute(
            "INSERT INTO relations (source, target, kind, properties, created)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (source, target, kind) DO UPDATE SET properties = excluded.properties",
            params![
                relation.source,
                relation.target,
                relation.kind,
                properties,
                self.now().0
            ],
        )?;
        Ok(())
    }

    fn entities(&self, label: Option<&str>, having: &Map<String, Value>) -> Result<Vec<Entity>> {
        let mut find = self.connection.prepare_cached(
            "SELECT id, label, properties FROM entities WHERE ?1 IS NULL OR label = ?1
             ORDER BY created, id",
        )?;
        let rows = find.query_map([label], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?))
        })?;
        let mut found = Vec::new();
        for row in rows {
            let (id, label, properties) = row?;
            let entity = Entity {
                id,
                label,
                properties: serde_json::from_str(&properties).unwrap_or_default(),
            };
            let has = |(key, value): (&String, &Value)| match key.as_str() {
                "id" => value.as_str() == Some(&entity.id),
                key => entity.properties.get(key) == Some(value),
            };
            if having.iter().all(has) {
                found.push(entity);
            }
        }
        Ok(found)
    }

    fn relations_of(&self, id: &str) -> Result<Vec<Relation>> {
        let mut find = self.connection.prepare_cached(
            "SELECT source, target, kind, properties FROM relations
             WHERE source = ?1 OR target = ?1 ORDER BY created, source, target",
        )?;
        let rows = find.query_map([id], |row| {
            let properties: String = row.get(3)?;
            Ok(Relation {
                source: row.get(0)?,
                target: row.get(1)?,
                kind: row.get(2)?,
                properties: serde_json::from_str(&properties).unwrap_or_default(),
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn graph_statistics(&self) -> Result<GraphStatistics> {
        let counted = |sql: &str| -> Result<BTreeMap<String, u64>> {
            let mut find = self.connection.prepare_cached(sql)?;
            let rows = find.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        };
        Ok(GraphStatistics {
            entities: counted("SELECT label, count(*) FROM entities GROUP BY label")?,
            relations: counted("SELECT kind, count(*) FROM relations GROUP BY kind")?,
        })
    }
}
