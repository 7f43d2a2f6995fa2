//! What was sent before: a conversation grows at its end, so only its end is new.
//!
//! A message is fetched and looked through for known secrets once, not on every turn:
//! what a turn costs does not depend on how many there were. When a value was learned
//! in between, everything is looked through again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use selvedge_ledger::{Ledger, LedgerError, Payload, StreamId};
use selvedge_model::{Message, Messages, Part};

use crate::discretion::Discretion;

/// So many conversations are remembered. Forgetting one costs a look through it.
const CONVERSATIONS_MAX: usize = 1_024;

/// The conversations of this process, as they were last sent.
#[derive(Default)]
pub(crate) struct Sent(Mutex<HashMap<StreamId, Conversation>>);

/// Messages as the machine has them, and as they are sent.
struct Conversation {
    discretion: Discretion,
    given: Messages,
    sent: Messages,
}

impl Sent {
    /// The messages with every text at hand, and without known secrets.
    pub(crate) async fn messages(
        &self,
        stream: &StreamId,
        given: &Messages,
        discretion: Discretion,
        ledger: &dyn Ledger,
    ) -> Result<Messages, LedgerError> {
        let mut sent = self.take(stream, given, &discretion);
        for n in sent.len()..given.len() {
            sent.push(discretion.message(at_hand(&given[n], ledger).await?));
        }
        let mut conversations = self.0.lock().expect("no panic under this lock");
        if conversations.len() >= CONVERSATIONS_MAX && !conversations.contains_key(stream) {
            conversations.clear();
        }
        let conversation = Conversation {
            discretion,
            given: given.clone(),
            sent: sent.clone(),
        };
        conversations.insert(stream.clone(), conversation);
        Ok(sent)
    }

    /// What is still as it was.
    fn take(&self, stream: &StreamId, given: &Messages, discretion: &Discretion) -> Messages {
        let mut conversations = self.0.lock().expect("no panic under this lock");
        let known = conversations.remove(stream);
        let Some(known) = known.filter(|known| known.discretion.is_same(discretion)) else {
            return Messages::default();
        };
        let mut sent = known.sent;
        sent.truncate(known.given.shared_with(given));
        sent
    }
}

/// The message with every text at hand; nearly always the message itself.
async fn at_hand(message: &Arc<Message>, ledger: &dyn Ledger) -> Result<Arc<Message>, LedgerError> {
    let mut payloads = message.parts.iter().flat_map(Part::payloads);
    if payloads.all(|payload| payload.text().is_some()) {
        return Ok(message.clone());
    }
    let mut message = (**message).clone();
    for payload in message.parts.iter_mut().flat_map(Part::payloads_mut) {
        *payload = Payload::new(ledger.text(payload).await?);
    }
    Ok(Arc::new(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_ledger::{SqliteLedger, SqliteOptions};
    use selvedge_tool::Secrets;

    #[tokio::test]
    async fn only_what_is_new_is_looked_at_until_a_value_is_learned() {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions::new(folder.path().join("ledger.db"));
        let ledger = SqliteLedger::open(&options).unwrap();
        let (secrets, sent) = (Secrets::new(), Sent::default());
        let stream = StreamId::new("s_1");
        let message = |text: &str| Arc::new(Message::user(text));
        let mut given: Messages =
            vec![message("the code is open-sesame-7"), message("go on")].into();
        let first = sent
            .messages(&stream, &given, Discretion::now(&secrets), &ledger)
            .await
            .unwrap();
        assert_eq!(first, given);

        secrets.know("open-sesame-7");
        given.push(message("open-sesame-7 again"));
        let second = sent
            .messages(&stream, &given, Discretion::now(&secrets), &ledger)
            .await
            .unwrap();
        let expected = ["the code is [REDACTED]", "go on", "[REDACTED] again"];
        assert!(second.iter().eq(&expected.map(message)));

        // The history was rewritten: what is not the same message is looked at anew.
        given.set(1, message("say open-sesame-7"));
        given.push(message("and on"));
        let third = sent
            .messages(&stream, &given, Discretion::now(&secrets), &ledger)
            .await
            .unwrap();
        assert!(
            Arc::ptr_eq(&third[0], &second[0]),
            "it was looked at before"
        );
        let expected = ["say [REDACTED]", "[REDACTED] again", "and on"];
        assert!(third.iter().skip(1).eq(&expected.map(message)));
    }
}
