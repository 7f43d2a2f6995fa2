//! Answers that were given before, and answers that are checked before they are given.
//!
//! A librarian that has read itself through to an answer keeps it with the files it rests
//! on; the next one who asks the same, in whatever words, gets it without reading anything,
//! until one of those files changes.

use selvedge_knowledge::{AnswerKey, Intent, KnowledgeError, cited};
use serde_json::{Value, json};

use super::{Asked, Lookup, text, texts, word};

const INTENTS: &[&str] = &[
    "locate",
    "pattern",
    "explain",
    "general",
    "historical",
    "similar",
];

pub(super) const LOOKUPS: &[Lookup] = &[
    Lookup {
        name: "recall_answer",
        description: "An answer that was given before to the same question, if everything it \
                      rests on is still as it was. Ask this before reading.",
        arguments: question,
        required: &["intent", "subject"],
        act: |asked| {
            Ok(match asked.index.cached_answer(&key(asked)?)? {
                Some(kept) => json!({ "found": true, "answer": kept.reply, "times": kept.hits }),
                None => json!({ "found": false, "hint": "find out, then keep_answer" }),
            })
        },
    },
    Lookup {
        name: "keep_answer",
        description: "Keep an answer for whoever asks the same, until a file it rests on changes.",
        arguments: || {
            let mut arguments = question();
            arguments["answer"] = text("The whole answer, with its sources and warnings.");
            arguments["files"] = texts("The files it rests on, from the project's root.");
            arguments
        },
        required: &["intent", "subject", "answer", "files"],
        act: |asked| {
            let answer = Value::from(asked.wanted("answer")?);
            let files = asked.texts("files");
            let kept = asked.index.keep_answer(&key(asked)?, &answer, &files)?;
            Ok(match kept {
                true => json!({ "kept": true }),
                false => json!({ "kept": false, "hint": "what is not sure is not kept" }),
            })
        },
    },
    Lookup {
        name: "check_citations",
        description: "Check an answer against its numbered sources before giving it: which are \
                      cited, which numbers stand for no source, what is inference.",
        arguments: || {
            json!({
                "answer": text("The answer, with [1], [2] and so on."),
                "sources": texts("The ids of the sources, in the order of their numbers."),
            })
        },
        required: &["answer", "sources"],
        act: |asked| {
            let found = cited(asked.wanted("answer")?, &asked.texts("sources"));
            Ok(json!({
                "sources": found.sources,
                "fabricated": found.fabricated,
                "inferences": found.inferences,
                "warnings": found.warnings,
            }))
        },
    },
];

fn question() -> Value {
    json!({
        "intent": word(INTENTS, "locate: where it is; pattern: how it is usually done; explain: \
                                 how it works; historical: what was done; similar: what was \
                                 done like it; general: anything else."),
        "subject": text("Of what: the thing itself, not the whole question."),
        "confidence": { "type": "number", "minimum": 0, "maximum": 1,
                        "description": "How surely the question was understood. Default: 1." },
    })
}

fn key(asked: &Asked<'_>) -> Result<AnswerKey, KnowledgeError> {
    let wrong = |error: serde_json::Error| KnowledgeError::Request(error.to_string());
    let intent = Value::from(asked.wanted("intent")?);
    let intent: Intent = serde_json::from_value(intent).map_err(wrong)?;
    let confidence = asked.input.get("confidence").and_then(Value::as_f64);
    Ok(AnswerKey {
        intent,
        subject: asked.wanted("subject")?.to_owned(),
        confidence: confidence.unwrap_or(1.0),
    })
}
