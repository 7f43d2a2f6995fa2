//! The seal on what a model thought, and whose it is.
//!
//! A model takes back only reasoning of its own; another's spoils the whole
//! conversation. So a seal is kept together with the model that made it, and
//! after a change of model or provider it stays home.

use selvedge_ledger::Payload;

use super::answer::text_of;

/// A seal as its provider knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seal<'a> {
    /// What it is on.
    pub(super) kind: Kind,
    /// What to send back, unchanged.
    pub(super) value: &'a str,
}

/// What a seal is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Reasoning that can be read (Anthropic).
    Signature,
    /// Reasoning that only the provider can read (Anthropic).
    Redacted,
    /// A whole item: its id, a dot, and what only the provider can read (Responses).
    Item,
    /// A thought that can be read (Gemini).
    Thought,
    /// The next part of the message (Gemini).
    Next,
    /// The next words, and what they are for (Responses).
    Phase,
    /// A thought, and the field it came in (Chat Completions).
    Field,
    /// What its provider says of a thought: JSON without colons (OpenRouter).
    Details,
}

const KINDS: [(Kind, &str); 8] = [
    (Kind::Signature, "signature"),
    (Kind::Redacted, "redacted"),
    (Kind::Item, "item"),
    (Kind::Thought, "thought"),
    (Kind::Next, "next"),
    (Kind::Phase, "phase"),
    (Kind::Field, "field"),
    (Kind::Details, "details"),
];

impl<'a> Seal<'a> {
    /// The seal in a payload, if it is one that `provider/model` takes back.
    pub(super) fn read(payload: &'a Payload, model: &str) -> Option<Self> {
        let mut fields = text_of(payload).splitn(3, ':');
        let word = fields.next()?;
        let (value, whose) = (fields.next()?, fields.next()?);
        // Seals of old sessions name the model without its provider.
        let bare = model.split_once('/').map(|(_, name)| name);
        let (kind, _) = KINDS.iter().find(|(_, name)| *name == word)?;
        (whose == model || Some(whose) == bare).then_some(Self { kind: *kind, value })
    }

    /// The seal as it is kept. Its value is of an alphabet that has no colon.
    pub(super) fn write(self, model: &str) -> Payload {
        let (_, word) = KINDS
            .iter()
            .find(|(kind, _)| *kind == self.kind)
            .expect("every kind has its word");
        format!("{word}:{}:{model}", self.value).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_goes_back_only_to_the_model_that_made_it() {
        for (kind, _) in KINDS {
            let value = "rs_1.ab+/=";
            let seal = Seal { kind, value };
            let kept = seal.write("here/model-a:1");
            assert_eq!(Seal::read(&kept, "here/model-a:1"), Some(seal));
            assert_eq!(Seal::read(&kept, "here/model-b"), None);
            assert_eq!(Seal::read(&kept, "there/model-a:1"), None);
        }
    }

    #[test]
    fn what_is_no_seal_of_ours_stays_home() {
        for text in [
            "plain",
            "signature",
            "signature:x",
            "wax:x:here/model-a",
            "",
        ] {
            assert_eq!(Seal::read(&text.into(), "here/model-a"), None, "{text}");
        }
    }

    #[test]
    fn a_seal_of_an_old_session_is_still_known() {
        let kept = "signature:ab==:model-a".into();
        assert!(Seal::read(&kept, "here/model-a").is_some());
    }
}
