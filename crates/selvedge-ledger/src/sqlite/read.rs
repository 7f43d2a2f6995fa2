//! The reading connection: events with their chain verified, and everything else.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::value::RawValue;

use super::SqliteOptions;
use super::schema::{connect, explain, is_damage};
use super::snapshot::unpack;
use crate::event::{Event, Hash, Seq, Time, chain};
use crate::lease::Holder;
use crate::payload::{Blob, BlobId};
use crate::stream::{LedgerError, Position, Snapshot, StreamFilter, StreamId, StreamInfo};
use crate::upcast::Upcasts;

pub(super) struct Reader {
    connection: Connection,
    pub(super) path: String,
    upcasts: Upcasts,
}

impl Reader {
    pub(super) fn open(options: &SqliteOptions) -> Result<Self, LedgerError> {
        let connection = connect(options, false)?;
        let path = options.path.display().to_string();
        Ok(Self {
            connection,
            path,
            upcasts: options.upcasts.clone(),
        })
    }

    pub(super) fn events(&self, stream: &StreamId, after: Seq) -> Result<Vec<Event>, LedgerError> {
        let mut events = self.at_one_moment(|| {
            let Some(info) = self.stream(stream)? else {
                return Err(LedgerError::NoStream {
                    stream: stream.clone(),
                });
            };
            self.chained(&info, after)
        })?;
        for event in &mut events {
            self.upcasts.apply(event)?;
        }
        Ok(events)
    }

    /// Runs several queries on the state that one commit left.
    pub(super) fn at_one_moment<T>(
        &self,
        read: impl FnOnce() -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let moment = self.ask("file", Connection::unchecked_transaction)?;
        let result = read();
        drop(moment);
        result
    }

    /// Events as they were written, verified against their chain and the head.
    pub(super) fn chained(&self, info: &StreamInfo, after: Seq) -> Result<Vec<Event>, LedgerError> {
        let stream = &info.id;
        // Reading from the middle, the event before gives the hash to start from.
        let mut raw = self.raw_events(stream, after.max(1) - 1)?.into_iter();
        let mut previous = (0, Hash::ZERO);
        if after > 0 {
            match raw.next() {
                Some(event) if event.seq == after => previous = (after, event.hash),
                _ => return Err(damaged(stream, Some(after), "the event is missing")),
            }
        }
        let mut events = Vec::with_capacity(raw.len());
        for event in raw {
            follows(previous, &event)?;
            previous = (event.seq, event.hash);
            events.push(event);
        }
        if previous.0 < info.head {
            let missing = Some(previous.0 + 1);
            return Err(damaged(stream, missing, "the event is missing"));
        }
        if previous != (info.head, info.head_hash) {
            let what = "it is not the event the stream ends with";
            return Err(damaged(stream, Some(previous.0), what));
        }
        Ok(events)
    }

    fn raw_events(&self, stream: &StreamId, after: Seq) -> Result<Vec<Event>, LedgerError> {
        self.ask(stream.as_str(), |c| {
            c.prepare_cached(
                "select e.seq, e.time, e.actor, e.kind, e.version, e.cause, e.data, e.hash
                 from events e
                 where e.stream = (select id from streams where name = ?1) and e.seq > ?2
                 order by e.seq",
            )?
            .query_map(params![stream.as_str(), after], |row| {
                event(stream.clone(), row)
            })?
            .collect()
        })
    }

    pub(super) fn stream(&self, stream: &StreamId) -> Result<Option<StreamInfo>, LedgerError> {
        self.ask(stream.as_str(), |c| {
            c.prepare_cached(&format!("{STREAM_INFO} where name = ?1"))?
                .query_row([stream.as_str()], stream_info)
                .optional()
        })
    }

    pub(super) fn streams(&self, filter: &StreamFilter) -> Result<Vec<StreamInfo>, LedgerError> {
        let (condition, name) = match filter {
            StreamFilter::Sessions => (
                "where parent is null and name <> ?1 order by opened desc, id desc",
                "",
            ),
            StreamFilter::Session(session) => ("where session = ?1 order by id", session.as_str()),
        };
        self.ask("streams", |c| {
            c.prepare_cached(&format!("{STREAM_INFO} {condition}"))?
                .query_map([name], stream_info)?
                .collect()
        })
    }

    pub(super) fn session_after(
        &self,
        session: &StreamId,
        after: Position,
    ) -> Result<(Vec<Event>, Position), LedgerError> {
        let rows = self.at_one_moment(|| {
            let rows = self.raw_session(session, after)?;
            self.verify_rows(&rows)?;
            Ok(rows)
        })?;
        let position = rows.last().map_or(after, |(_, p)| Position(*p));
        let mut events: Vec<Event> = rows.into_iter().map(|(e, _)| e).collect();
        for event in &mut events {
            self.upcasts.apply(event)?;
        }
        Ok((events, position))
    }

    fn raw_session(
        &self,
        session: &StreamId,
        after: Position,
    ) -> Result<Vec<(Event, u64)>, LedgerError> {
        self.ask(session.as_str(), |c| {
            c.prepare_cached(
                "select e.seq, e.time, e.actor, e.kind, e.version, e.cause, e.data, e.hash,
                        e.position, s.name
                 from streams s join events e on e.stream = s.id
                 where s.session = ?1 and e.position > ?2 order by e.position",
            )?
            .query_map(params![session.as_str(), after.0], |row| {
                let stream = StreamId::new(row.get::<_, String>(9)?);
                Ok((event(stream, row)?, row.get(8)?))
            })?
            .collect()
        })
    }

    /// Checks events of several streams against their chains.
    fn verify_rows(&self, rows: &[(Event, u64)]) -> Result<(), LedgerError> {
        let mut heads: HashMap<&StreamId, (Seq, Hash)> = HashMap::new();
        for (event, _) in rows {
            let previous = match heads.get(&event.stream) {
                Some(head) => *head,
                None if event.seq <= 1 => (0, Hash::ZERO),
                None => self.place(&event.stream, event.seq - 1)?,
            };
            follows(previous, event)?;
            heads.insert(&event.stream, (event.seq, event.hash));
        }
        Ok(())
    }

    /// Where the chain stands at event `seq`.
    fn place(&self, stream: &StreamId, seq: Seq) -> Result<(Seq, Hash), LedgerError> {
        let hash: Option<[u8; 32]> = self.ask(stream.as_str(), |c| {
            c.prepare_cached(
                "select hash from events
                 where stream = (select id from streams where name = ?1) and seq = ?2",
            )?
            .query_row(params![stream.as_str(), seq], |r| r.get(0))
            .optional()
        })?;
        match hash {
            Some(hash) => Ok((seq, Hash(hash))),
            None => Err(damaged(stream, Some(seq), "the event is missing")),
        }
    }

    pub(super) fn blob(&self, id: BlobId) -> Result<Arc<str>, LedgerError> {
        let stored: Option<(u64, Vec<u8>)> = self.ask("blobs", |c| {
            c.prepare_cached("select bytes, content from blobs where id = ?1")?
                .query_row([id.0], |r| Ok((r.get(0)?, r.get(1)?)))
                .optional()
        })?;
        let what = match stored {
            None => "is missing",
            Some((bytes, content)) => match Blob::open(id, bytes, &content) {
                Some(text) => return Ok(text),
                None => "is not what its id says",
            },
        };
        let blobs = StreamId::new("blobs");
        Err(damaged(&blobs, None, format!("blob {id} {what}")))
    }

    pub(super) fn holder(
        &self,
        stream: &StreamId,
        now: Time,
    ) -> Result<Option<Holder>, LedgerError> {
        let detail: Option<String> = self.ask("leases", |c| {
            c.prepare_cached("select detail from leases where stream = ?1 and expires > ?2")?
                .query_row(params![stream.as_str(), now.0], |r| r.get(0))
                .optional()
        })?;
        let holder = detail.and_then(|d| serde_json::from_str::<Holder>(&d).ok());
        Ok(holder.filter(|h| !h.is_gone()))
    }

    /// A snapshot that cannot be read is no snapshot.
    pub(super) fn snapshot(&self, stream: &StreamId) -> Result<Option<Snapshot>, LedgerError> {
        let stored = self.ask("snapshots", |c| {
            c.prepare_cached("select seq, hash, state from snapshots where stream = ?1")?
                .query_row([stream.as_str()], |r| {
                    let state: Vec<u8> = r.get(2)?;
                    Ok(unpack(stream, r.get(0)?, Hash(r.get(1)?), &state))
                })
                .optional()
        });
        match stored {
            Ok(snapshot) => Ok(snapshot.flatten()),
            Err(LedgerError::Damaged { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Asks the database; what it cannot make sense of is damage to `place`.
    pub(super) fn ask<'c, T>(
        &'c self,
        place: &str,
        read: impl FnOnce(&'c Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, LedgerError> {
        read(&self.connection).map_err(|e| {
            if is_damage(&e) {
                return damaged(&StreamId::new(place), None, e.to_string());
            }
            explain(&self.path, &e)
        })
    }
}

/// Checks that `event` is the one that follows `previous`.
fn follows(previous: (Seq, Hash), event: &Event) -> Result<(), LedgerError> {
    if event.seq != previous.0 + 1 {
        let seq = Some(previous.0 + 1);
        return Err(damaged(&event.stream, seq, "the event is missing"));
    }
    if chain(previous.1, event) != event.hash {
        let what = "its hash does not match its content";
        return Err(damaged(&event.stream, Some(event.seq), what));
    }
    Ok(())
}

fn damaged(stream: &StreamId, seq: Option<Seq>, what: impl Into<String>) -> LedgerError {
    LedgerError::Damaged {
        stream: stream.clone(),
        seq,
        what: what.into(),
    }
}

pub(super) const STREAM_INFO: &str =
    "select name, kind, parent, head, head_hash, opened, updated from streams";

/// One damaged row must not hide the others: what cannot be read of it is left
/// empty, and then the stream's events show that it is damaged.
pub(super) fn stream_info(row: &Row<'_>) -> Result<StreamInfo, rusqlite::Error> {
    let text = |n| row.get::<_, Option<String>>(n).unwrap_or_default();
    let number = |n| row.get::<_, i64>(n).unwrap_or_default();
    Ok(StreamInfo {
        id: StreamId::new(text(0).unwrap_or_default()),
        kind: text(1).unwrap_or_default(),
        parent: text(2).map(StreamId::new),
        head: number(3).try_into().unwrap_or_default(),
        head_hash: Hash(row.get(4).unwrap_or_default()),
        opened: Time(number(5)),
        updated: Time(number(6)),
    })
}

fn event(stream: StreamId, row: &Row<'_>) -> Result<Event, rusqlite::Error> {
    let data: String = row.get(6)?;
    let data = RawValue::from_string(data).map_err(|e| {
        rusqlite::Error::FromSqlConversionFailure(6, rusqlite::types::Type::Text, Box::new(e))
    })?;
    Ok(Event {
        stream,
        seq: row.get(0)?,
        time: Time(row.get(1)?),
        actor: row.get::<_, String>(2)?.into(),
        kind: row.get::<_, String>(3)?.into(),
        version: row.get(4)?,
        cause: row.get::<_, Option<String>>(5)?.map(Into::into),
        data: Arc::from(data),
        hash: Hash(row.get(7)?),
    })
}
