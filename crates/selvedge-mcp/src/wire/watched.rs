//! Watches over who answers what: every question has one answer, and no answer comes
//! without a question.

use std::collections::BTreeSet;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use super::{Fault, UNANSWERED_MESSAGES_MAX};

/// A transport on which every answer belongs to a question.
pub(crate) struct Watched<T> {
    inner: T,
    open: BTreeSet<String>,
    unanswered: u32,
    fault: Fault,
}

impl<T> Watched<T> {
    pub(crate) fn new(inner: T, fault: Fault) -> Self {
        Self {
            inner,
            open: BTreeSet::new(),
            unanswered: 0,
            fault,
        }
    }

    fn check(&mut self, message: &ServerJsonRpcMessage) -> Result<(), String> {
        let id = match message {
            ServerJsonRpcMessage::Response(response) => &response.id,
            ServerJsonRpcMessage::Error(error) => match &error.id {
                Some(id) => id,
                // It could not read which question it was.
                None => return Ok(()),
            },
            ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => {
                self.unanswered += 1;
                return match self.unanswered > UNANSWERED_MESSAGES_MAX {
                    true => Err(format!(
                        "it sent {UNANSWERED_MESSAGES_MAX} messages without an answer"
                    )),
                    false => Ok(()),
                };
            }
        };
        self.unanswered = 0;
        match self.open.remove(&key(id)) {
            true => Ok(()),
            false => Err(format!(
                "it answered `{}`, which was not asked, or was answered before",
                key(id).escape_debug()
            )),
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let ClientJsonRpcMessage::Request(request) = &item {
            // One that is withdrawn stays open: its answer may be on the way.
            self.open.insert(key(&request.id));
        }
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        // Whoever listens may be called away while a fault is being dealt with, and comes
        // back to hear what the server said after it.
        if self.fault.get().is_some() {
            let _ = self.inner.close().await;
            return None;
        }
        let message = self.inner.receive().await?;
        match self.check(&message) {
            Ok(()) => Some(message),
            Err(what) => {
                self.fault.set(what);
                let _ = self.inner.close().await;
                None
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

/// Some servers send a number back as text.
fn key(id: &RequestId) -> String {
    id.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::VecDeque;

    /// Says what it was told to say.
    struct Said(VecDeque<Value>);

    impl Transport<RoleClient> for Said {
        type Error = std::io::Error;

        fn send(
            &mut self,
            _: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
            std::future::ready(Ok(()))
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
            self.0
                .pop_front()
                .map(|value| serde_json::from_value(value).unwrap())
        }

        async fn close(&mut self) -> Result<(), Self::Error> {
            self.0.clear();
            Ok(())
        }
    }

    async fn hear(said: impl IntoIterator<Item = Value>) -> (usize, Option<String>) {
        let fault = Fault::default();
        let said = Said(said.into_iter().collect());
        let mut watched = Watched::new(said, fault.clone());
        let question = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
        watched
            .send(serde_json::from_value(question).unwrap())
            .await
            .unwrap();
        let mut count = 0;
        while watched.receive().await.is_some() {
            count += 1;
        }
        (count, fault.get().map(str::to_owned))
    }

    fn answer(id: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "result": {}})
    }

    #[tokio::test]
    async fn a_question_is_answered_once_and_nothing_else_is() {
        assert_eq!(hear([answer(json!(7))]).await, (1, None));
        assert_eq!(hear([answer(json!("7"))]).await, (1, None));
        let (count, fault) = hear([answer(json!(8))]).await;
        assert!(count == 0 && fault.unwrap().contains("`8`, which was not asked"));
        let (count, fault) = hear([answer(json!(7)), answer(json!(7))]).await;
        assert!(count == 1 && fault.unwrap().contains("answered before"));
    }

    #[tokio::test]
    async fn after_a_fault_nothing_is_heard_even_if_it_was_said_already() {
        let fault = Fault::default();
        let mut watched = Watched::new(Said([answer(json!(7))].into()), fault.clone());
        let question = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
        let question = serde_json::from_value(question).unwrap();
        watched.send(question).await.unwrap();
        fault.set("it said what is not JSON");
        assert!(watched.receive().await.is_none());
        assert!(watched.inner.0.is_empty(), "it was not closed");
    }

    #[tokio::test]
    async fn who_talks_without_end_and_answers_nothing_is_not_listened_to() {
        let notice = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let said = std::iter::repeat_n(notice, UNANSWERED_MESSAGES_MAX as usize + 1);
        let (count, fault) = hear(said).await;
        assert_eq!(count, UNANSWERED_MESSAGES_MAX as usize);
        assert!(fault.unwrap().contains("without an answer"));
    }
}
