//! Events as lines of JSON: as stored, with long text in its place.
//!
//! `run --json`, `sessions events --json` and `sessions export` all print by
//! this one function, so that the same event is the same line wherever it is seen.

use selvedge_ledger::{BlobId, Event, Ledger, LedgerError};
use serde_json::value::RawValue;

const MARK: &str = "{\"blob\":\"";
const ID_CHARS: usize = 64;

/// The event as a line, without its end.
pub async fn line(ledger: &dyn Ledger, event: &Event) -> Result<String, LedgerError> {
    let mut event = event.clone();
    if event.data.get().contains(MARK) {
        let data = resolved(ledger, event.data.get()).await?;
        event.data = RawValue::from_string(data)
            .expect("a text in the place of a reference leaves JSON well-formed")
            .into();
    }
    Ok(serde_json::to_string(&event).expect("an event has string keys"))
}

/// The JSON with every reference to a blob replaced by its text.
///
/// Done on the text, so that everything else stays byte for byte. Inside of a
/// string the mark's quotes would be escaped, so only references match.
async fn resolved(ledger: &dyn Ledger, json: &str) -> Result<String, LedgerError> {
    let mut done = String::with_capacity(json.len() * 2);
    let mut rest = json;
    while let Some(at) = rest.find(MARK) {
        let (before, reference) = rest.split_at(at);
        done.push_str(before);
        match reference_in(reference) {
            Some((id, length)) => {
                let text = ledger.blob(id).await?;
                done.push_str(&serde_json::to_string(&*text).expect("a text is JSON"));
                rest = &reference[length..];
            }
            None => {
                done.push_str(MARK);
                rest = &reference[MARK.len()..];
            }
        }
    }
    done.push_str(rest);
    Ok(done)
}

/// The blob that a text beginning with `{"blob":"…","bytes":…}` refers to, and
/// the length of the reference.
fn reference_in(text: &str) -> Option<(BlobId, usize)> {
    let id = BlobId::parse(text.get(MARK.len()..MARK.len() + ID_CHARS)?)?;
    let after = text[MARK.len() + ID_CHARS..].strip_prefix("\",\"bytes\":")?;
    let digits = after.find(|c: char| !c.is_ascii_digit())?;
    let rest = after[digits..].strip_prefix('}')?;
    Some((id, text.len() - rest.len()))
}
