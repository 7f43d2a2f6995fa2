//! What the nine agents are told and what they answer.
//!
//! Inputs are the placeholders of the prompts: domain text reaches an agent through them
//! and nothing else. The schemas that answers are held to are made from the outputs. A verdict
//! comes after its reasons, as the last field.

mod inputs;
mod outputs;
mod shared;

pub use inputs::{
    AnalyzerInput, ClarifierInput, EvaluatorInput, ObserverInput, ParserInput, PlannerInput,
    RetrieverInput, RouterInput, SynthesizerInput,
};
pub use outputs::{
    AnalyzerOutput, Change, ClarificationQuestion, ClarifierOutput, ContextUpdate, EvaluatorOutput,
    ObserverOutput, ParserOutput, PlannerOutput, RetrieverChoice, RouterOutput, SynthesizerOutput,
};
pub use shared::{
    ActiveDomainContext, Category, Certainty, Confidence, DateRange, DependencyType, DomainInfo,
    EntryShown, EvaluationFeedback, Gap, GapSeverity, InputType, NextAction, Passing, QueryType,
    Retrieval, RetrievalAttempt, RetrieverOutput, Style, Sufficiency, Trigger,
};

use serde_json::Value;

use crate::schema::of;

/// The schemas of what the agents answer, by name.
pub(crate) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("RouterOutput", of::<RouterOutput>()),
        ("PlannerOutput", of::<PlannerOutput>()),
        ("RetrieverChoice", of::<RetrieverChoice>()),
        ("AnalyzerOutput", of::<AnalyzerOutput>()),
        ("SynthesizerOutput", of::<SynthesizerOutput>()),
        ("EvaluatorOutput", of::<EvaluatorOutput>()),
        ("ClarifierOutput", of::<ClarifierOutput>()),
        ("ParserOutput", of::<ParserOutput>()),
        ("ObserverOutput", of::<ObserverOutput>()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(name: &str) -> Vec<String> {
        let schema = schemas().into_iter().find(|(known, _)| *known == name);
        let schema = schema.unwrap().1;
        // As it is sent: what counts is the order of the text.
        let sent: Value = serde_json::from_str(&schema.to_string()).unwrap();
        let properties = sent["properties"].as_object().unwrap();
        properties.keys().cloned().collect()
    }

    #[test]
    fn reasons_come_first_and_the_verdict_is_the_very_last_field() {
        assert_eq!(
            fields("AnalyzerOutput"),
            [
                "findings",
                "gaps_identified",
                "patterns_identified",
                "query_intent",
                "reasoning",
                "verdict"
            ]
        );
        assert_eq!(
            fields("EvaluatorOutput"),
            ["dimensions", "feedback", "recommendation", "verdict"]
        );
        let evaluator = of::<EvaluatorOutput>();
        let dimension = &evaluator["properties"]["dimensions"]["items"]["properties"];
        let dimension = dimension.as_object().unwrap();
        assert_eq!(dimension.keys().next_back().unwrap(), "verdict");
    }

    #[test]
    fn every_schema_is_valid_and_closed() {
        for (name, schema) in schemas() {
            assert!(jsonschema::validator_for(&schema).is_ok(), "{name}");
            assert_eq!(schema["additionalProperties"], false, "{name}");
        }
    }
}
