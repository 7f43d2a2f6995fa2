//! The reading connection: events with their chain verified, and everything else.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::value::RawValue;

use super::SqliteOptions;
use super::schema::{connect, explain};
use crate::event::{Event, Hash, Seq, Time, chain};
use crate::lease::Holder;
use crate::payload::{Blob, BlobId};
use crate::stream::{
    LedgerError, NewStream, Position, Snapshot, StreamFilter, StreamId, StreamInfo,
};
use crate::upcast::Upcasts;
use crate::verify::{Damage, VerifyReport};

pub(super) struct Reader {
    connection: Connection,
    path: String,
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
        let Some(info) = self.stream(stream)? else {
            return Err(LedgerError::NoStream {
                stream: stream.clone(),
            });
        };
        let mut events = self.chained(&info, after)?;
        for event in &mut events {
            self.upcasts.apply(event)?;
        }
        Ok(events)
    }

    /// Events as they were written, verified against their chain and the head.
    fn chained(&self, info: &StreamInfo, after: Seq) -> Result<Vec<Event>, LedgerError> {
        let stream = &info.id;
        let damaged = |seq, what: String| LedgerError::Damaged {
            stream: stream.clone(),
            seq,
            what,
        };
        let raw = self.raw_events(stream, after.max(1) - 1).map_err(|e| {
            match explain(&self.path, &e) {
                LedgerError::Unavailable { why } => damaged(None, why),
                other => other,
            }
        })?;
        // Reading from the middle, the event before gives the hash to start from.
        let mut raw = raw.into_iter();
        let mut previous = Hash::ZERO;
        let mut seq = 0;
        if after > 0 {
            match raw.next() {
                Some(event) if event.seq == after => {
                    previous = event.hash;
                    seq = after;
                }
                _ => return Err(damaged(Some(after), "the event is missing".into())),
            }
        }
        let mut events = Vec::with_capacity(raw.len());
        for event in raw {
            seq += 1;
            if event.seq != seq {
                return Err(damaged(Some(seq), "the event is missing".into()));
            }
            if chain(previous, &event) != event.hash {
                return Err(damaged(
                    Some(seq),
                    "its hash does not match its content".into(),
                ));
            }
            previous = event.hash;
            events.push(event);
        }
        // A reader may be overtaken by the writer between its two queries.
        if seq < info.head {
            return Err(damaged(Some(seq + 1), "the event is missing".into()));
        }
        if seq == info.head && previous != info.head_hash {
            return Err(damaged(
                Some(seq),
                "it is not the event the stream ends with".into(),
            ));
        }
        Ok(events)
    }

    fn raw_events(&self, stream: &StreamId, after: Seq) -> Result<Vec<Event>, rusqlite::Error> {
        self.connection
            .prepare_cached(
                "select e.seq, e.time, e.actor, e.kind, e.version, e.cause, e.data, e.hash
                 from events e
                 where e.stream = (select id from streams where name = ?1) and e.seq > ?2
                 order by e.seq",
            )?
            .query_map(params![stream.as_str(), after], |row| {
                event(stream.clone(), row)
            })?
            .collect()
    }

    pub(super) fn stream(&self, stream: &StreamId) -> Result<Option<StreamInfo>, LedgerError> {
        self.ask(|c| {
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
        self.ask(|c| {
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
        let mut rows: Vec<(Event, u64)> = self.ask(|c| {
            c.prepare_cached(
                "select e.seq, e.time, e.actor, e.kind, e.version, e.cause, e.data, e.hash, e.position, s.name
                 from streams s join events e on e.stream = s.id
                 where s.session = ?1 and e.position > ?2 order by e.position",
            )?
            .query_map(params![session.as_str(), after.0], |row| {
                Ok((event(StreamId::new(row.get::<_, String>(9)?), row)?, row.get(8)?))
            })?
            .collect()
        })?;
        let position = rows.last().map_or(after, |(_, p)| Position(*p));
        for (event, _) in &mut rows {
            self.upcasts.apply(event)?;
        }
        Ok((rows.into_iter().map(|(e, _)| e).collect(), position))
    }

    pub(super) fn blob(&self, id: BlobId) -> Result<Arc<str>, LedgerError> {
        let stored: Option<(u64, Vec<u8>)> = self.ask(|c| {
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
        Err(LedgerError::Damaged {
            stream: StreamId::new("blobs"),
            seq: None,
            what: format!("blob {id} {what}"),
        })
    }

    pub(super) fn holder(
        &self,
        stream: &StreamId,
        now: Time,
    ) -> Result<Option<Holder>, LedgerError> {
        let detail: Option<String> = self.ask(|c| {
            c.prepare_cached("select detail from leases where stream = ?1 and expires > ?2")?
                .query_row(params![stream.as_str(), now.0], |r| r.get(0))
                .optional()
        })?;
        let holder = detail.and_then(|d| serde_json::from_str::<Holder>(&d).ok());
        Ok(holder.filter(|h| !h.is_gone()))
    }

    /// A snapshot that cannot be read is no snapshot.
    pub(super) fn snapshot(&self, stream: &StreamId) -> Result<Option<Snapshot>, LedgerError> {
        let stored: Option<(Seq, [u8; 32], Vec<u8>)> = self.ask(|c| {
            c.prepare_cached("select seq, hash, state from snapshots where stream = ?1")?
                .query_row([stream.as_str()], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))
                .optional()
        })?;
        Ok(stored.and_then(|(seq, hash, state)| {
            let state = zstd::stream::decode_all(state.as_slice()).ok()?;
            let state = RawValue::from_string(String::from_utf8(state).ok()?).ok()?;
            Some(Snapshot {
                seq,
                hash: Hash(hash),
                state: Arc::from(state),
            })
        }))
    }

    pub(super) fn verify(&self, session: Option<&StreamId>) -> Result<VerifyReport, LedgerError> {
        let mut report = VerifyReport::default();
        let streams: Vec<StreamInfo> = match session {
            Some(session) => self.streams(&StreamFilter::Session(session.clone()))?,
            None => self.ask(|c| {
                c.prepare(&format!("{STREAM_INFO} order by id"))?
                    .query_map([], stream_info)?
                    .collect()
            })?,
        };
        if session.is_none() {
            self.verify_structure(&mut report);
        }
        for info in streams {
            report.streams += 1;
            match self.chained(&info, 0) {
                Ok(events) => self.verify_events(&info, &events, &mut report),
                Err(LedgerError::Damaged { stream, seq, what }) => {
                    report.damage.push(Damage { stream, seq, what });
                }
                Err(other) => return Err(other),
            }
        }
        Ok(report)
    }

    /// What hashes cannot see: pages and indexes of the file itself.
    fn verify_structure(&self, report: &mut VerifyReport) {
        let checked: Result<Vec<String>, _> = self
            .connection
            .prepare("pragma integrity_check(20)")
            .and_then(|mut s| s.query_map([], |r| r.get(0))?.collect());
        let lines = checked.unwrap_or_else(|e| vec![e.to_string()]);
        report
            .damage
            .extend(lines.into_iter().filter(|l| l != "ok").map(|what| Damage {
                stream: StreamId::new("file"),
                seq: None,
                what,
            }));
    }

    fn verify_events(&self, info: &StreamInfo, events: &[Event], report: &mut VerifyReport) {
        let mut damage = |seq, what: String| {
            report.damage.push(Damage {
                stream: info.id.clone(),
                seq,
                what,
            });
        };
        // The stream's row is derived from its first event.
        match events.first().map(|e| (e, e.decode::<NewStream>())) {
            Some((_, Ok(new))) if new.kind == info.kind && new.parent == info.parent => {}
            Some((e, _)) => damage(Some(e.seq), "the stream's entry differs from it".into()),
            None => damage(None, "the stream has no events".into()),
        }
        for event in events {
            for id in blobs_in(event.data.get()) {
                match self.blob(id) {
                    Ok(_) => report.blobs += 1,
                    Err(error) => report.damage.push(Damage {
                        stream: info.id.clone(),
                        seq: Some(event.seq),
                        what: error.to_string(),
                    }),
                }
            }
            report.events += 1;
        }
    }

    pub(super) fn backup(&self, path: &Path) -> Result<(), LedgerError> {
        // Reads a consistent state while others write, and leaves a compact file.
        self.ask(|c| {
            c.execute("vacuum into ?1", [path.display().to_string()])
                .map(drop)
        })
    }

    fn ask<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, LedgerError> {
        read(&self.connection).map_err(|e| explain(&self.path, &e))
    }
}

const STREAM_INFO: &str =
    "select name, kind, parent, head, head_hash, opened, updated from streams";

fn stream_info(row: &Row<'_>) -> Result<StreamInfo, rusqlite::Error> {
    Ok(StreamInfo {
        id: StreamId::new(row.get::<_, String>(0)?),
        kind: row.get(1)?,
        parent: row.get::<_, Option<String>>(2)?.map(StreamId::new),
        head: row.get(3)?,
        head_hash: Hash(row.get(4)?),
        opened: Time(row.get(5)?),
        updated: Time(row.get(6)?),
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

/// The blobs an event's data refers to.
fn blobs_in(data: &str) -> Vec<BlobId> {
    const MARK: &str = "\"blob\":\"";
    data.match_indices(MARK)
        .filter_map(|(at, _)| BlobId::parse(data.get(at + MARK.len()..at + MARK.len() + 64)?))
        .collect()
}
