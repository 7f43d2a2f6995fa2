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

    fn order<'v>(schema: &'v Value, at: &str) -> Vec<&'v str> {
        let order = schema.pointer(at).unwrap()["propertyOrdering"].as_array();
        order
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect()
    }

    #[test]
    fn every_field_of_every_agent_has_its_place_in_an_order() {
        for (name, schema) in schemas() {
            let mut found = Vec::new();
            crate::schema::tests::unordered(&schema, name, &mut found);
            assert!(found.is_empty(), "without a place: {found:?}");
        }
    }

    #[test]
    fn reasons_come_first_and_the_verdict_is_the_very_last_field() {
        let analyzer = of::<AnalyzerOutput>();
        assert_eq!(
            order(&analyzer, ""),
            [
                "query_intent",
                "findings",
                "patterns_identified",
                "gaps_identified",
                "verdict_reasoning",
                "verdict"
            ]
        );
        assert_eq!(
            order(&analyzer, "/properties/findings/items"),
            ["claim", "evidence", "confidence"]
        );
        let evaluator = of::<EvaluatorOutput>();
        assert_eq!(
            order(&evaluator, ""),
            [
                "dimensions",
                "feedback",
                "recommendation",
                "overall_verdict"
            ]
        );
        assert_eq!(
            order(&evaluator, "/properties/dimensions/items"),
            ["dimension", "issues", "reasoning", "verdict"]
        );
        assert_eq!(
            order(&of::<PlannerOutput>(), "").last(),
            Some(&"next_action")
        );
        assert_eq!(
            order(&of::<RouterOutput>(), "")[..2],
            ["reasoning", "input_type"]
        );
    }

    #[test]
    fn every_schema_is_valid_and_closed() {
        for (name, schema) in schemas() {
            assert!(jsonschema::validator_for(&schema).is_ok(), "{name}");
            assert_eq!(schema["additionalProperties"], false, "{name}");
        }
    }
}
