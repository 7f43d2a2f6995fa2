//! What every ledger must do, whatever it is kept in.
//!
//! A case is a plain function over a [`Place`]; `ledger_suite!` turns the list
//! of all cases into tests of one kind of place.

pub mod append;
pub mod blobs;
pub mod flaky;
pub mod following;
pub mod leases;
pub mod letters;
pub mod listing;
pub mod snapshots;

use std::sync::Arc;

use selvedge_ledger::{
    Event, Ledger, NewEvent, NewStream, Payload, Pen, StreamId, Sync, Time, Upcasts,
};
use serde::{Deserialize, Serialize};

/// Somewhere a ledger is kept; opened twice, it is used by two processes.
pub trait Place {
    /// Opens the ledger, and makes it if this is the first time.
    async fn open_with(&self, upcasts: Upcasts) -> Arc<dyn Ledger>;

    /// Opens a ledger that reads events as they are.
    async fn open(&self) -> Arc<dyn Ledger> {
        self.open_with(Upcasts::default()).await
    }
}

/// The data of most events here.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub text: Payload,
}

/// An event that says `text`.
pub fn note(text: impl Into<Payload>) -> NewEvent {
    NewEvent::new("NoteTaken", "tester", Time(7), &Note { text: text.into() })
}

/// What a note says, if it is short.
pub fn said(event: &Event) -> String {
    let note: Note = event.decode().expect("a note");
    note.text.text().expect("a short note").to_string()
}

/// What a stream's notes say.
pub async fn notes(ledger: &dyn Ledger, stream: &StreamId) -> Vec<String> {
    let events = ledger.read(stream, 0).await.expect("the stream is intact");
    let notes = events.iter().filter(|e| &*e.kind == "NoteTaken");
    notes.map(said).collect()
}

/// The pen of a new, flushed stream.
pub async fn opened(ledger: &dyn Ledger, name: &str) -> Pen {
    let mut pen = new_pen(name, None);
    pen.flush(ledger).await.expect("a new stream can be opened");
    pen
}

/// The pen of a child of `parent`.
pub async fn opened_child(ledger: &dyn Ledger, name: &str, parent: &str) -> Pen {
    let mut pen = new_pen(name, Some(parent));
    pen.flush(ledger).await.expect("a new stream can be opened");
    pen
}

/// The pen of a stream that is not yet in the ledger.
pub fn new_pen(name: &str, parent: Option<&str>) -> Pen {
    let new = NewStream {
        kind: "test".into(),
        parent: parent.map(StreamId::new),
    };
    Pen::open(StreamId::new(name), new, "tester", Time(1), None)
}

/// Writes one note and flushes it.
pub async fn write(ledger: &dyn Ledger, pen: &mut Pen, text: &str) {
    pen.write(note(text), Sync::Now);
    pen.flush(ledger).await.expect("the stream can be appended");
}

/// Text too long to stay inside its event.
pub fn long(seed: usize) -> String {
    (0..400).map(|n| format!("line {seed}.{n}\n")).collect()
}

/// One test for each case, on new places made by `$place`.
macro_rules! ledger_suite {
    ($place:expr) => {
        $crate::suite::ledger_suite! { @cases $place;
            append {
                what_is_appended_is_read_back,
                reading_begins_after_any_event,
                a_writer_behind_the_stream_is_refused,
                a_writer_of_another_history_is_refused,
                a_refused_append_leaves_nothing,
                of_racing_pens_exactly_one_wins,
                a_stream_must_be_opened_first,
                a_lost_answer_does_not_repeat_the_append,
                a_lost_request_is_sent_again,
                an_abandoned_flush_is_taken_up_again,
                appends_of_many_streams_are_all_kept,
                old_versions_are_brought_up_to_date,
            }
            blobs {
                long_text_is_fetched_by_reference,
                a_missing_blob_is_an_error,
            }
            letters {
                the_same_letter_twice_has_one_receipt,
                letters_keep_their_order_and_their_text,
            }
            leases {
                a_held_lease_is_refused,
                an_expired_lease_passes_on,
                a_renewed_lease_is_held_longer,
                a_released_lease_is_free_and_stays_free,
                a_lease_of_a_process_that_is_gone_is_free,
                a_stale_fence_is_refused,
            }
            snapshots {
                the_latest_snapshot_is_returned,
            }
            listing {
                sessions_are_listed_newest_first,
                a_session_has_its_children_and_inboxes,
                verifying_counts_what_it_saw,
            }
            following {
                a_tail_sees_every_event_once_in_order,
                a_tail_sees_what_another_process_appends,
                a_subscription_wakes_for_its_topic_only,
                whoever_waits_for_new_sessions_hears_of_those_of_other_processes,
            }
        }
    };
    (@cases $place:expr; $($module:ident { $($case:ident),* $(,)? })*) => {
        $(mod $module {
            $(#[tokio::test]
            async fn $case() {
                crate::suite::$module::$case(&$place).await;
            })*
        })*
    };
}
pub(crate) use ledger_suite;
