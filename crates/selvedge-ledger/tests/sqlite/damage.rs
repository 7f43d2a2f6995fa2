//! Damage done to the file is found, named, and stays where it is.

use std::sync::Arc;

use expect_test::{Expect, expect};
use futures::future::join_all;
use rusqlite::Connection;
use rusqlite::types::Value;
use selvedge_ledger::{Event, Ledger, LedgerError, Letter, Snapshot, StreamFilter, StreamId, Sync};
use serde_json::value::RawValue;

use crate::place::File;
use crate::suite::{Place, long, note, opened, opened_child};

/// A session with a child, an inbox and a long text, and another session.
pub async fn furnish(ledger: &dyn Ledger) {
    let mut root = opened(ledger, "s").await;
    root.write(note("one").because("why"), Sync::Now);
    root.write(note(long(1)), Sync::Now);
    root.write(note("three"), Sync::Now);
    root.flush(ledger).await.unwrap();
    let mut child = opened_child(ledger, "s/t1", "s").await;
    child.write(note("of the child"), Sync::Now);
    child.flush(ledger).await.unwrap();
    for id in ["l1", "l2"] {
        let letter = Letter {
            id: id.into(),
            event: note("a letter"),
        };
        ledger.admit(&StreamId::new("s"), letter).await.unwrap();
    }
    let (seq, hash) = root.head();
    let state = RawValue::from_string(r#"{"seen":"one, two, three"}"#.into()).unwrap();
    let snapshot = Snapshot {
        seq,
        hash,
        state: Arc::from(state),
    };
    let stream = StreamId::new("s");
    ledger.put_snapshot(&stream, snapshot).await.unwrap();

    let mut other = opened(ledger, "other").await;
    other.write(note(long(2)), Sync::Now);
    other.write(note("untouched"), Sync::Now);
    other.flush(ledger).await.unwrap();
}

/// All that a session says, long texts too.
pub async fn transcript(ledger: &dyn Ledger, stream: &str) -> Result<Vec<String>, LedgerError> {
    let events = ledger.read(&StreamId::new(stream), 0).await?;
    let mut lines = Vec::new();
    for event in &events {
        lines.push(line(event));
        if let Ok(note) = event.decode::<crate::suite::Note>() {
            lines.push(ledger.text(&note.text).await?.to_string());
        }
    }
    Ok(lines)
}

pub fn line(event: &Event) -> String {
    serde_json::to_string(event).unwrap()
}

/// Furnishes a ledger, does `damage` to its file, and shows what is found.
async fn check(damage: &str, expected: Expect) {
    let place = File::new();
    furnish(&*place.open().await).await;
    place.database().execute_batch(damage).unwrap();
    expected.assert_eq(&findings(&place).await);
    the_other_session_is_whole(&place).await;
}

async fn findings(place: &File) -> String {
    let report = place.open().await.verify(None).await.unwrap();
    let mut text = String::new();
    for found in &report.damage {
        let at = found.seq.map(|s| format!(" {s}")).unwrap_or_default();
        text += &format!("{}{at}: {}\n", found.stream, found.what);
    }
    text
}

async fn the_other_session_is_whole(place: &File) {
    let ledger = place.open().await;
    let other = StreamId::new("other");
    let lines = transcript(&*ledger, "other").await.unwrap();
    assert_eq!((&lines[2], &*lines[4]), (&long(2), "untouched"));
    assert!(ledger.verify(Some(&other)).await.unwrap().damage.is_empty());
    let sessions = ledger.streams(StreamFilter::Sessions).await.unwrap();
    assert!(sessions.iter().any(|s| s.id == other));
    // It can also be written to.
    let info = ledger.stream(&other).await.unwrap().unwrap();
    let mut pen = selvedge_ledger::Pen::at(other, info.head, info.head_hash, None);
    pen.write(note("more"), Sync::Now);
    pen.flush(&*ledger).await.unwrap();
}

/// Chooses an event of the stream `s`.
const EVENT: &str = "stream = (select id from streams where name = 's') and seq";

#[tokio::test]
async fn an_intact_ledger_verifies_clean() {
    check("", expect![""]).await;
}

#[tokio::test]
async fn a_changed_word_is_found() {
    check(
        &format!("update events set data = replace(data, 'one', 'two') where {EVENT} = 2"),
        expect![[r#"
            s 2: its hash does not match its content
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_removed_event_is_found() {
    check(
        &format!("delete from events where {EVENT} = 3"),
        expect![[r#"
            s 3: the event is missing
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_removed_last_event_is_found() {
    check(
        &format!("delete from events where {EVENT} = 4"),
        expect![[r#"
            s 4: the event is missing
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_reordered_pair_is_found() {
    let swap = format!(
        "update events set seq = 99 where {EVENT} = 2;
         update events set seq = 2 where {EVENT} = 4;
         update events set seq = 4 where {EVENT} = 99;"
    );
    check(
        &swap,
        expect![[r#"
        s 2: its hash does not match its content
    "#]],
    )
    .await;
}

#[tokio::test]
async fn an_added_event_is_found() {
    let add = format!(
        "insert into events (stream, seq, time, actor, kind, version, data, hash)
         select stream, 5, time, actor, kind, version, data, hash from events where {EVENT} = 4"
    );
    check(
        &add,
        expect![[r#"
        s 5: its hash does not match its content
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_removed_blob_is_found() {
    let blob = selvedge_ledger::BlobId::of(long(1).as_bytes());
    check(
        &format!("delete from blobs where id = x'{blob}'"),
        expect![[r#"
            s 3: blob c4bffbe32e86ee522d658991dceb3cc38957b6f6b8b4fd4a719212232f0b1c92 is missing
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_removed_stream_is_found() {
    check(
        "delete from streams where name = 's/t1'",
        expect![[r#"
        file: it has events of a stream that is missing
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_removed_letter_is_found() {
    check(
        "delete from letters where id = 'l1'",
        expect![[r#"
        s#inbox: its list of letters differs from its events
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_field_of_another_type_is_found() {
    check(
        "update streams set head_hash = x'00' where name = 's'",
        expect![[r#"
            s 4: it is not the event the stream ends with
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_damaged_stream_does_not_fail_those_it_shares_a_commit_with() {
    let place = File::new();
    let ledger = place.open().await;
    let mut pens = Vec::new();
    for n in 0..40 {
        pens.push(opened(&*ledger, &format!("s{n}")).await);
    }
    // Its entry is intact, and the place of its next event is taken.
    place
        .database()
        .execute_batch(
            "insert into events (stream, seq, time, actor, kind, version, data, hash)
             select stream, 3, time, actor, kind, version, data, hash from events
             where stream = (select id from streams where name = 's7')",
        )
        .unwrap();
    for pen in &mut pens {
        pen.write(note("two"), Sync::Now);
        pen.write(note("three"), Sync::Now);
    }
    let results = join_all(pens.iter_mut().map(|pen| pen.flush(&*ledger))).await;
    for (n, result) in results.iter().enumerate() {
        match (n, result) {
            (7, Err(LedgerError::Damaged { stream, .. })) => assert_eq!(stream.as_str(), "s7"),
            (7, other) => panic!("{other:?}"),
            (_, result) => assert!(result.is_ok(), "{result:?}"),
        }
    }
    let half: u64 = place
        .database()
        .query_row("select count(*) from events where seq = 2", [], |r| {
            r.get(0)
        })
        .unwrap();
    assert_eq!(half, 39, "nothing is left of the refused append");
}

#[tokio::test]
async fn one_flipped_bit_in_any_field_is_found() {
    let tables = [
        ("streams", "where name like 's%'"),
        (
            "events",
            "where stream in (select id from streams where name like 's%')",
        ),
        (
            "letters",
            "where stream in (select id from streams where name like 's%')",
        ),
    ];
    let place = File::new();
    furnish(&*place.open().await).await;
    let intact = intact(&place).await;
    let mut flips = 0;
    for (table, condition) in tables {
        for (column, key) in fields(&place.database(), table, condition) {
            if !flip(&place.database(), table, &column, &key) {
                continue;
            }
            check_flip(&place, &intact, &format!("{table}.{column} {key:?}")).await;
            assert!(flip(&place.database(), table, &column, &key));
            flips += 1;
        }
    }
    assert!(flips > 80, "only {flips} fields were flipped");
    assert_eq!(findings(&place).await, "");
}

#[tokio::test]
async fn one_flipped_bit_in_a_blob_is_found() {
    let place = File::new();
    furnish(&*place.open().await).await;
    let intact = intact(&place).await;
    let blob = selvedge_ledger::BlobId::of(long(1).as_bytes());
    let condition = format!("where id = x'{blob}'");
    for (column, key) in fields(&place.database(), "blobs", &condition) {
        flip(&place.database(), "blobs", &column, &key);
        check_flip(&place, &intact, &format!("blobs.{column}")).await;
        flip(&place.database(), "blobs", &column, &key);
    }
}

#[tokio::test]
async fn a_damaged_snapshot_is_no_snapshot() {
    let place = File::new();
    let ledger = place.open().await;
    furnish(&*ledger).await;
    let stream = StreamId::new("s");
    for (column, key) in fields(&place.database(), "snapshots", "") {
        flip(&place.database(), "snapshots", &column, &key);
        let found = ledger.snapshot(&stream).await.unwrap();
        assert!(found.is_none(), "{column}: {found:?}");
        flip(&place.database(), "snapshots", &column, &key);
    }
    assert!(ledger.snapshot(&stream).await.unwrap().is_some());
}

#[tokio::test]
async fn a_blob_that_claims_an_absurd_size_is_refused() {
    let place = File::new();
    furnish(&*place.open().await).await;
    place
        .database()
        .execute_batch("update blobs set bytes = 4611686018427387904")
        .unwrap();
    let ledger = place.open().await;
    let report = ledger.verify(None).await.unwrap();
    assert_eq!(report.damage.len(), 2);
}

async fn intact(place: &File) -> Vec<(&'static str, Vec<String>)> {
    let ledger = place.open().await;
    let mut all = Vec::new();
    for stream in ["s", "s/t1", "s#inbox"] {
        all.push((stream, transcript(&*ledger, stream).await.unwrap()));
    }
    all
}

/// The flip is reported, no read is silently different, and the rest is whole.
async fn check_flip(place: &File, intact: &[(&str, Vec<String>)], what: &str) {
    let ledger = place.open().await;
    let report = ledger.verify(None).await.unwrap();
    assert!(!report.damage.is_empty(), "{what}: nothing was found");
    for (stream, original) in intact {
        if let Ok(read) = transcript(&*ledger, stream).await {
            assert_eq!(&read, original, "{what}");
        }
    }
    let session = StreamId::new("s");
    if let Ok((events, _)) = ledger.session_after(&session, Default::default()).await {
        for event in &events {
            let original = intact.iter().any(|(_, lines)| lines.contains(&line(event)));
            assert!(original, "{what}: the tail shows {event:?}");
        }
    }
    let lines = transcript(&*ledger, "other").await.unwrap();
    assert_eq!(lines.len(), 5, "{what}");
    let other = StreamId::new("other");
    let clean = ledger.verify(Some(&other)).await.unwrap().damage;
    assert!(clean.is_empty(), "{what}: {clean:?}");
}

/// Every field of the rows: its column, and the primary key of its row.
fn fields(db: &Connection, table: &str, condition: &str) -> Vec<(String, Vec<Value>)> {
    let mut all = Vec::new();
    let keys = keys_of(table).join(", ");
    let columns: Vec<String> = db
        .prepare(&format!("select * from {table}"))
        .unwrap()
        .column_names()
        .map(str::to_owned)
        .collect();
    for column in columns {
        let mut rows = db
            .prepare(&format!("select {keys}, {column} from {table} {condition}"))
            .unwrap();
        let count = keys_of(table).len();
        let found = rows
            .query_map([], |row| {
                let key = (0..count).map(|n| row.get(n)).collect::<Result<_, _>>()?;
                Ok((key, row.get::<_, Value>(count)?))
            })
            .unwrap();
        for row in found {
            let (key, value): (Vec<Value>, Value) = row.unwrap();
            // Row numbers carry no meaning, and nothing has no bits to flip.
            let is_key = keys_of(table).contains(&column.as_str());
            let is_number = matches!(value, Value::Integer(_));
            if value != Value::Null && !(is_key && is_number) {
                all.push((column.clone(), key));
            }
        }
    }
    all
}

/// What names a row, unchanged by a flip of any other field.
fn keys_of(table: &str) -> &'static [&'static str] {
    match table {
        "streams" => &["id"],
        "events" => &["position"],
        "letters" => &["stream", "seq"],
        _ => &["rowid"],
    }
}

/// Flips the lowest bit in the middle of a field; twice, all is as it was. False
/// if that would make two rows one, which the schema does not allow.
fn flip(db: &Connection, table: &str, column: &str, key: &[Value]) -> bool {
    let condition: Vec<String> = keys_of(table)
        .iter()
        .enumerate()
        .map(|(n, k)| format!("{k} = ?{}", n + 1))
        .collect();
    let condition = condition.join(" and ");
    let flipped = match db
        .query_row(
            &format!("select {column} from {table} where {condition}"),
            rusqlite::params_from_iter(key),
            |row| row.get::<_, Value>(0),
        )
        .unwrap()
    {
        Value::Integer(n) => Value::Integer(n ^ 1),
        Value::Text(text) => {
            let mut bytes = text.into_bytes();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            Value::Text(String::from_utf8(bytes).expect("the middle is ASCII"))
        }
        Value::Blob(mut bytes) => {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            Value::Blob(bytes)
        }
        other => panic!("{other:?} has no bits"),
    };
    let value = format!("?{}", key.len() + 1);
    let mut all = key.to_vec();
    all.push(flipped);
    let changed = db.execute(
        &format!("update {table} set {column} = {value} where {condition}"),
        rusqlite::params_from_iter(all),
    );
    match changed {
        Ok(rows) => assert_eq!(rows, 1, "{table}.{column} {key:?}"),
        Err(error) => {
            let code = error.sqlite_error_code();
            assert_eq!(code, Some(rusqlite::ErrorCode::ConstraintViolation));
            return false;
        }
    }
    true
}
