//! What an agent remembers: notes, failures, mistakes, preferences, checkpoints.

use selvedge_knowledge::{Attempt, Checkpoint, KnowledgeError, MistakeReport};
use serde_json::{Value, json};

use super::{Asked, Lookup, text, texts, word};

const CATEGORIES: &[&str] = &["code_style", "ui", "workflow", "tools", "all"];

pub(super) const LOOKUPS: &[Lookup] = &[
    Lookup {
        name: "scratchpad_write",
        description: "Write a note that outlives this conversation's context, by key.",
        arguments: || json!({ "key": text("Its key."), "note": text("What it says.") }),
        required: &["key", "note"],
        act: |asked| {
            let (key, note) = (asked.wanted("key")?, asked.wanted("note")?);
            let caller = asked.caller;
            asked
                .index
                .write_note(&caller.session, &caller.agent, key, note)?;
            Ok(json!({ "stored": true, "key": key }))
        },
    },
    Lookup {
        name: "scratchpad_read",
        description: "Read a note of this session.",
        arguments: || json!({ "key": text("Its key; `all` reads every note.") }),
        required: &["key"],
        act: scratchpad_read,
    },
    Lookup {
        name: "check_approach",
        description: "Has something like this failed before? Ask before choosing an approach.",
        arguments: || json!({ "approach": text("What you are about to do.") }),
        required: &["approach"],
        act: |asked| {
            let approach = asked.wanted("approach")?;
            let failed = asked
                .index
                .check_approach(approach, &asked.caller.session)?;
            Ok(match failed.is_empty() {
                true => json!({ "known_failures": false, "safe_to_proceed": true }),
                false => json!({ "known_failures": true, "warnings": failed }),
            })
        },
    },
    Lookup {
        name: "record_failure",
        description: "Remember that an approach failed, for all sessions.",
        arguments: || {
            json!({
                "approach": text("What was tried."),
                "error": text("What went wrong."),
                "context": text("Where, and under which circumstances."),
                "resolution": text("What helped, if anything did."),
            })
        },
        required: &["approach", "error"],
        act: |asked| {
            let attempt = Attempt {
                approach: asked.wanted("approach")?.to_owned(),
                error: asked.wanted("error")?.to_owned(),
                context: asked.text("context").unwrap_or_default().to_owned(),
                resolution: asked.text("resolution").map(str::to_owned),
                session: asked.caller.session.clone(),
            };
            let failure = asked.index.record_failure(&attempt)?;
            Ok(json!({ "recorded": true, "id": failure.id, "times": failure.recurrence }))
        },
    },
    Lookup {
        name: "check_mistakes",
        description: "Known mistakes that an approach resembles, and how they were put right.",
        arguments: || json!({ "approach": text("What you are about to do.") }),
        required: &["approach"],
        act: |asked| {
            let found = asked.index.check_mistakes(asked.wanted("approach")?)?;
            Ok(match found.is_empty() {
                true => json!({ "known_issues": false, "safe_to_proceed": true }),
                false => json!({ "known_issues": true, "warnings": found }),
            })
        },
    },
    Lookup {
        name: "report_mistake",
        description: "Remember a mistake and how it was put right, for all sessions.",
        arguments: || {
            json!({
                "pattern": text("What was done."),
                "error": text("What went wrong."),
                "fix": text("What put it right."),
                "context": text("Where."),
                "tags": texts("Words to find it by."),
            })
        },
        required: &["pattern", "error", "fix"],
        act: |asked| {
            let report = MistakeReport {
                pattern: asked.wanted("pattern")?.to_owned(),
                error: asked.wanted("error")?.to_owned(),
                fix: asked.wanted("fix")?.to_owned(),
                context: asked.text("context").unwrap_or_default().to_owned(),
                tags: [asked.texts("tags"), vec![asked.signature()]].concat(),
            };
            let mistake = asked.index.report_mistake(&report)?;
            Ok(json!({ "recorded": true, "id": mistake.id, "occurrences": mistake.occurrences }))
        },
    },
    Lookup {
        name: "get_preferences",
        description: "What the user prefers.",
        arguments: || json!({ "category": word(CATEGORIES, "Default: all.") }),
        required: &[],
        act: |asked| {
            let category = asked.text("category").filter(|category| *category != "all");
            let held = asked.index.preferences(category, &asked.caller.session)?;
            Ok(json!({ "preferences": held }))
        },
    },
    Lookup {
        name: "set_preference",
        description: "Keep what the user said they prefer.",
        arguments: || {
            json!({
                "category": word(&CATEGORIES[..4], "What it is about."),
                "name": text("Which one, such as `test runner`."),
                "preference": text("What is preferred."),
            })
        },
        required: &["category", "name", "preference"],
        act: |asked| {
            let (category, name) = (asked.wanted("category")?, asked.wanted("name")?);
            let (value, evidence) = (asked.wanted("preference")?, asked.signature());
            asked
                .index
                .set_preference(category, name, value, None, &evidence)?;
            Ok(json!({ "stored": true }))
        },
    },
    Lookup {
        name: "save_checkpoint",
        description: "Save where a task stands, so that another session can go on with it.",
        arguments: || {
            json!({
                "summary": text("What the task is."),
                "completed": texts("What is done."),
                "next_steps": texts("What comes next."),
                "status": word(&["in_progress", "blocked", "paused", "completed"],
                               "Default: in_progress."),
            })
        },
        required: &["summary", "completed", "next_steps"],
        act: |asked| {
            let wrong = |error: serde_json::Error| KnowledgeError::Request(error.to_string());
            let checkpoint: Checkpoint =
                serde_json::from_value(asked.input.clone()).map_err(wrong)?;
            let saved = asked
                .index
                .save_checkpoint(&asked.caller.session, &checkpoint)?;
            Ok(json!({ "saved": true, "id": saved.id, "hint": saved.hint() }))
        },
    },
    Lookup {
        name: "resume_task",
        description: "Take up a task where it was left, with its notes.",
        arguments: || json!({ "task_id": text("A checkpoint's id, or `latest`.") }),
        required: &["task_id"],
        act: resume_task,
    },
];

fn scratchpad_read(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let key = asked.wanted("key")?;
    let caller = asked.caller;
    if key == "all" {
        return Ok(json!({ "notes": asked.index.notes(&caller.session)? }));
    }
    Ok(
        match asked.index.read_note(&caller.session, &caller.agent, key)? {
            Some(note) => json!({ "exists": true, "content": note.content, "by": note.agent }),
            None => json!({ "exists": false }),
        },
    )
}

fn resume_task(asked: &Asked<'_>) -> Result<Value, KnowledgeError> {
    let id = match asked.wanted("task_id")? {
        "latest" => None,
        id => {
            let wrong = |_| KnowledgeError::Request(format!("`{id}` is no checkpoint"));
            Some(id.parse::<i64>().map_err(wrong)?)
        }
    };
    Ok(
        match asked.index.resume_checkpoint(&asked.caller.session, id)? {
            Some(checkpoint) => {
                let hint = checkpoint.hint();
                json!({ "found": true, "checkpoint": checkpoint, "hint": hint })
            }
            None => json!({ "found": false, "error": "no task was saved under that id" }),
        },
    )
}
