//! The seal on a piece of reasoning, and whose it is.
//!
//! A model takes back only reasoning of its own, so the seal is kept together
//! with the model's name: after a change of model the reasoning stays home
//! instead of spoiling the conversation.

use selvedge_ledger::Payload;

use crate::providers::answer::text_of;

/// A seal as it is sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seal<'a> {
    /// The signature of reasoning that can be read.
    Signature(&'a str),
    /// Reasoning that only the provider can read.
    Redacted(&'a str),
}

impl<'a> Seal<'a> {
    /// The seal in a payload, if it is one that `model` takes back.
    pub(super) fn read(payload: &'a Payload, model: &str) -> Option<Self> {
        let text = text_of(payload);
        let mut fields = text.splitn(3, ':');
        match (fields.next(), fields.next(), fields.next()) {
            (Some("signature"), Some(value), Some(whose)) => {
                (whose == model).then_some(Self::Signature(value))
            }
            (Some("redacted"), Some(value), Some(whose)) => {
                (whose == model).then_some(Self::Redacted(value))
            }
            // Nobody's in particular.
            _ => Some(Self::Signature(text)),
        }
    }

    /// The seal as it is kept. Its value is base64, which has no colon.
    pub(super) fn write(&self, model: &str) -> Payload {
        match self {
            Self::Signature(value) => format!("signature:{value}:{model}").into(),
            Self::Redacted(value) => format!("redacted:{value}:{model}").into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_goes_back_only_to_the_model_that_made_it() {
        for seal in [Seal::Signature("ab+/="), Seal::Redacted("cd==")] {
            let kept = seal.write("claude-a:1");
            assert_eq!(Seal::read(&kept, "claude-a:1"), Some(seal));
            assert_eq!(Seal::read(&kept, "claude-b"), None);
        }
        assert_eq!(
            Seal::read(&"plain".into(), "claude-b"),
            Some(Seal::Signature("plain"))
        );
    }
}
