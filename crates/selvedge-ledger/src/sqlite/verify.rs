//! Checking everything against its hashes, and what is derived against its source.

use std::path::Path;

use rusqlite::{Connection, params};

use super::read::{Reader, STREAM_INFO, stream_info};
use super::schema::{definitions, own_definitions};
use crate::event::{Event, Seq};
use crate::payload::BlobId;
use crate::stream::{LedgerError, NewStream, StreamId, StreamInfo};
use crate::verify::{Damage, VerifyReport};

impl Reader {
    pub(super) fn verify(&self, session: Option<&StreamId>) -> Result<VerifyReport, LedgerError> {
        let mut report = VerifyReport::default();
        if session.is_none() {
            self.verify_structure(&mut report)?;
        }
        let streams = match self.listed() {
            Ok(streams) => streams,
            Err(error) => {
                note(&mut report, error)?;
                return Ok(report);
            }
        };
        // A stream belongs to a session by its name; its entry may say otherwise.
        let wanted = |info: &StreamInfo, entry: &str| {
            session.is_none_or(|s| info.id.session() == *s || entry == s.as_str())
        };
        for (info, entry) in streams.iter().filter(|(info, entry)| wanted(info, entry)) {
            report.streams += 1;
            if let Err(error) = self.verify_stream(&info.id, entry, &mut report) {
                note(&mut report, error)?;
            }
        }
        Ok(report)
    }

    /// All streams, and the session each one's entry names.
    fn listed(&self) -> Result<Vec<(StreamInfo, String)>, LedgerError> {
        self.ask("streams", |c| {
            let sql = STREAM_INFO.replace(" from ", ", session from ");
            c.prepare(&format!("{sql} order by id"))?
                .query_map([], |row| {
                    Ok((stream_info(row)?, row.get(7).unwrap_or_default()))
                })?
                .collect()
        })
    }

    /// What hashes cannot see: pages and indexes of the file itself, the tables'
    /// definitions, and rows that belong to nothing.
    fn verify_structure(&self, report: &mut VerifyReport) -> Result<(), LedgerError> {
        let found = [
            self.ask("file", |c| {
                let lines = strings(c, "pragma integrity_check(20)")?;
                Ok(lines.into_iter().filter(|l| l != "ok").collect())
            }),
            self.ask("file", |c| {
                let strays = "select distinct \"table\" from pragma_foreign_key_check";
                let stray = |table| format!("it has {table} of a stream that is missing");
                Ok(strings(c, strays)?.into_iter().map(stray).collect())
            }),
            self.ask("file", |c| {
                let same = definitions(c)? == own_definitions()?;
                let what = "its tables are not those of a ledger".to_owned();
                Ok((!same).then_some(what).into_iter().collect::<Vec<_>>())
            }),
        ];
        let broken_logs = super::log::kept(Path::new(&self.path)).into_iter().map(|copy| {
            let copy = copy.display();
            format!("its log was damaged, and transactions in it were lost; a copy of it is `{copy}`")
        });
        for found in found.into_iter().chain([Ok(broken_logs.collect())]) {
            match found {
                Ok(lines) => report.damage.extend(lines.into_iter().map(|what| Damage {
                    stream: StreamId::new("file"),
                    seq: None,
                    what,
                })),
                Err(error) => note(report, error)?,
            }
        }
        Ok(())
    }

    fn verify_stream(
        &self,
        stream: &StreamId,
        session: &str,
        report: &mut VerifyReport,
    ) -> Result<(), LedgerError> {
        // Entry, events and letters as one commit left them, while others write.
        let (info, events, letters) = self.at_one_moment(|| {
            let info = self.stream(stream)?.ok_or_else(|| LedgerError::Damaged {
                stream: stream.clone(),
                seq: None,
                what: "it is listed and cannot be found".into(),
            })?;
            let events = self.chained(&info, 0)?;
            Ok((info, events, self.letters(stream)?))
        })?;
        report.events += events.len() as u64;
        let mut damage = |seq, what: String| {
            report.damage.push(Damage {
                stream: stream.clone(),
                seq,
                what,
            });
        };
        if !is_derived(&info, session, &events) {
            damage(None, "its entry differs from its events".into());
        }
        if info.kind == "inbox"
            && !letters
                .iter()
                .map(by_ref)
                .eq(events.iter().filter_map(letter))
        {
            damage(None, "its list of letters differs from its events".into());
        }
        for event in &events {
            for id in blobs_in(event.data.get()) {
                match self.blob(id) {
                    Ok(_) => report.blobs += 1,
                    Err(LedgerError::Damaged { what, .. }) => report.damage.push(Damage {
                        stream: stream.clone(),
                        seq: Some(event.seq),
                        what,
                    }),
                    Err(other) => return Err(other),
                }
            }
        }
        Ok(())
    }

    fn letters(&self, inbox: &StreamId) -> Result<Vec<(String, Seq)>, LedgerError> {
        self.ask(inbox.as_str(), |c| {
            c.prepare_cached(
                "select id, seq from letters
                 where stream = (select id from streams where name = ?1) order by seq",
            )?
            .query_map(params![inbox.as_str()], |r| Ok((r.get(0)?, r.get(1)?)))?
            .collect()
        })
    }
}

fn strings(connection: &Connection, sql: &str) -> Result<Vec<String>, rusqlite::Error> {
    connection
        .prepare(sql)?
        .query_map([], |r| r.get(0))?
        .collect()
}

/// Puts damage into the report; any other error ends the check.
fn note(report: &mut VerifyReport, error: LedgerError) -> Result<(), LedgerError> {
    match error {
        LedgerError::Damaged { stream, seq, what } => {
            report.damage.push(Damage { stream, seq, what });
            Ok(())
        }
        other => Err(other),
    }
}

/// Whether a stream's entry says what its events say.
fn is_derived(info: &StreamInfo, session: &str, events: &[Event]) -> bool {
    let (Some(first), Some(last)) = (events.first(), events.last()) else {
        return false;
    };
    let Ok(new) = first.decode::<NewStream>() else {
        return false;
    };
    new.kind == info.kind
        && new.parent == info.parent
        && first.time == info.opened
        && last.time == info.updated
        && info.id.session().as_str() == session
}

fn by_ref((id, seq): &(String, Seq)) -> (&str, Seq) {
    (id, *seq)
}

/// The letter that an event of an inbox is.
fn letter(event: &Event) -> Option<(&str, Seq)> {
    event.cause.as_deref().map(|id| (id, event.seq))
}

/// The blobs an event's data refers to.
fn blobs_in(data: &str) -> Vec<BlobId> {
    const MARK: &str = "\"blob\":\"";
    const END: &str = "\",\"bytes\":";
    data.match_indices(MARK)
        .filter_map(|(at, _)| {
            let rest = &data[at + MARK.len()..];
            let id = BlobId::parse(rest.get(..64)?)?;
            rest[64..].starts_with(END).then_some(id)
        })
        .collect()
}
