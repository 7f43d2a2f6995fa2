//! The writing connection: a batch of jobs, one transaction.
//!
//! Nothing is answered before its commit. A refusal that follows from the data
//! (a conflict, a held lease) concerns one job; a failure of the database
//! concerns the whole batch, and the connection is opened anew before the next,
//! because what a failed sync left behind is unknown.

use std::time::{Duration, Instant};

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use tokio::sync::oneshot;

use super::notify::Subscribers;
use super::schema::{connect, explain, is_damage};
use super::snapshot::pack;
use super::{Mode, SqliteOptions};
use crate::event::{Hash, NewEvent, Sealed, Seq, Time};
use crate::lease::{Holder, Lease, LeaseError};
use crate::payload::BlobId;
use crate::stream::{Append, LedgerError, Letter, NewStream, Receipt, Snapshot, StreamId, Sync};

type Reply<T, E> = oneshot::Sender<Result<T, E>>;

/// Something to write, and where to say how it went.
pub(super) enum Job {
    /// With the blobs of it that are known to be stored.
    Append(Append, Vec<BlobId>, Reply<(), LedgerError>),
    Admit(StreamId, Letter, Reply<Receipt, LedgerError>),
    Claim(StreamId, Holder, Time, i64, Reply<Lease, LeaseError>),
    Renew(String, Time, i64, Reply<(), LedgerError>),
    Release(Lease, Reply<(), LedgerError>),
    Snapshot(StreamId, Snapshot, Reply<(), LedgerError>),
}

impl Job {
    fn sync(&self) -> Sync {
        match self {
            Self::Append(append, ..) => append.sync,
            // Acknowledged to somebody outside, or the fence of all that follows.
            Self::Admit(..) | Self::Claim(..) => Sync::Now,
            Self::Renew(..) | Self::Release(..) | Self::Snapshot(..) => Sync::Later,
        }
    }
}

/// Says how a job went, once its fate is known.
type Answer = Box<dyn FnOnce(Result<(), LedgerError>) + Send>;

pub(super) struct Store {
    options: SqliteOptions,
    connection: Option<Connection>,
    synchronous: Sync,
    /// Whether a failed write or sync left it open what the log holds.
    suspect: bool,
    /// Means something to the connection it was asked from.
    data_version: Option<i64>,
    seen: i64,
    /// How long the last commit took, its sync included.
    last_commit: Duration,
}

impl Store {
    pub(super) fn open(options: &SqliteOptions) -> Result<Self, LedgerError> {
        if options.vfs.is_none() {
            super::log::keep_if_broken(&options.path).map_err(|e| LedgerError::Unusable {
                path: options.path.display().to_string(),
                why: format!("its log cannot be looked at: {e}"),
            })?;
        }
        let connection = connect(options, true)?;
        let mut store = Self {
            options: options.clone(),
            connection: Some(connection),
            synchronous: Sync::Now,
            suspect: false,
            data_version: None,
            seen: 0,
            last_commit: Duration::ZERO,
        };
        // What is there already needs no waking.
        store.look_for_foreign_commits(&Subscribers::default());
        Ok(store)
    }

    /// Writes a batch in one transaction and answers every job.
    pub(super) fn perform(&mut self, jobs: Vec<Job>, wake: &dyn Fn(&StreamId)) {
        let sync = jobs.iter().map(Job::sync).max().unwrap_or(Sync::Later);
        let mut answers: Vec<Answer> = Vec::with_capacity(jobs.len());
        let mut touched: Vec<StreamId> = Vec::with_capacity(jobs.len());
        let outcome = self.transact(sync, jobs, &mut answers, &mut touched);
        for answer in answers {
            answer(outcome.clone());
        }
        if outcome.is_ok() {
            touched.iter().for_each(wake);
        }
    }

    /// How long the last commit took.
    pub(super) fn last_commit(&self) -> Duration {
        self.last_commit
    }

    fn transact(
        &mut self,
        sync: Sync,
        jobs: Vec<Job>,
        answers: &mut Vec<Answer>,
        touched: &mut Vec<StreamId>,
    ) -> Result<(), LedgerError> {
        let path = self.options.path.display().to_string();
        let mut jobs = jobs.into_iter();
        let mut last_commit = self.last_commit;
        let result = self.begin(sync).and_then(|connection| {
            let mut batch = Batch {
                connection,
                answers: &mut *answers,
                touched,
            };
            for job in jobs.by_ref() {
                batch.perform(job)?;
            }
            let begun = Instant::now();
            connection.execute_batch("commit")?;
            last_commit = begun.elapsed();
            Ok(())
        });
        self.last_commit = last_commit;
        let Err(error) = result else { return Ok(()) };
        // The jobs that were not reached share the batch's fate.
        answers.extend(jobs.map(refuse));
        self.connection = None;
        self.suspect |= error.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure);
        Err(explain(&path, &error))
    }

    fn begin(&mut self, sync: Sync) -> Result<&Connection, rusqlite::Error> {
        if self.connection.is_none() {
            self.reopen()?;
        }
        let connection = self.connection.as_ref().expect("just opened");
        if self.options.sync && self.synchronous != sync {
            let level = if sync == Sync::Now { "full" } else { "normal" };
            connection.pragma_update(None, "synchronous", level)?;
            self.synchronous = sync;
        }
        connection.execute_batch("begin immediate")?;
        Ok(connection)
    }

    fn reopen(&mut self) -> Result<(), rusqlite::Error> {
        let connection = connect(&self.options, true).map_err(|e| {
            let code = match e {
                LedgerError::Full { .. } => rusqlite::ffi::SQLITE_FULL,
                _ => rusqlite::ffi::SQLITE_CANTOPEN,
            };
            rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), Some(e.to_string()))
        })?;
        if self.suspect {
            // After a failed sync the system may forget the log's pages and call
            // the next sync a success. Moved into the database and begun anew,
            // the log holds only what is written from now on.
            let busy: bool =
                connection.query_row("pragma wal_checkpoint(truncate)", [], |r| r.get(0))?;
            if busy {
                return Err(rusqlite::Error::SqliteFailure(
                    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
                    Some("its log is in use and cannot be begun anew".into()),
                ));
            }
            self.suspect = false;
        }
        self.connection = Some(connection);
        self.synchronous = Sync::Now;
        self.data_version = None;
        Ok(())
    }

    /// Moves what the log holds into the database, as far as no reader needs it there.
    pub(super) fn fold_log(&mut self) {
        let Some(connection) = &self.connection else {
            return;
        };
        // What is acknowledged is in the log and stays there if this fails. But a
        // connection that could not write is not to be written through again.
        if let Err(error) = connection.query_row("pragma wal_checkpoint(passive)", [], |_| Ok(())) {
            self.suspect |= error.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure);
            self.connection = None;
        }
    }

    /// Wakes those who wait for what other processes appended.
    pub(super) fn look_for_foreign_commits(&mut self, subscribers: &Subscribers) {
        // A failure here is met again by the next write, where it can be reported.
        let _ = self.try_look_for_foreign_commits(subscribers);
    }

    fn try_look_for_foreign_commits(
        &mut self,
        subscribers: &Subscribers,
    ) -> Result<(), rusqlite::Error> {
        let Some(connection) = self
            .connection
            .as_ref()
            .filter(|_| self.options.mode == Mode::Threaded)
        else {
            return Ok(());
        };
        // This number changes when, and only when, another connection committed.
        let version: i64 = connection
            .prepare_cached("pragma data_version")?
            .query_row([], |r| r.get(0))?;
        if self.data_version == Some(version) {
            return Ok(());
        }
        // One query for names and positions: between two, another commit could
        // be counted as seen without having woken anybody.
        let mut names = connection.prepare_cached(
            "select s.name, max(e.position), min(e.seq) from events e join streams s on s.id = e.stream
             where e.position > ?1 group by e.stream",
        )?;
        let (mut seen, mut has_opened) = (self.seen, false);
        let mut rows = names.query([self.seen])?;
        while let Some(row) = rows.next()? {
            let stream = StreamId::new(row.get::<_, String>(0)?);
            subscribers.wake(&stream);
            seen = seen.max(row.get(1)?);
            has_opened |= row.get::<_, u64>(2)? == 1 && stream == stream.session();
        }
        if has_opened {
            subscribers.wake_opened_elsewhere();
        }
        self.seen = seen;
        self.data_version = Some(version);
        Ok(())
    }
}

/// The answer to a job that was not reached.
fn refuse(job: Job) -> Answer {
    match job {
        Job::Append(.., reply)
        | Job::Renew(.., reply)
        | Job::Release(_, reply)
        | Job::Snapshot(.., reply) => fail(reply),
        Job::Admit(.., reply) => fail(reply),
        Job::Claim(.., reply) => fail(reply),
    }
}

/// Answers with the batch's failure.
fn fail<T: Send + 'static, E: From<LedgerError> + Send + 'static>(reply: Reply<T, E>) -> Answer {
    Box::new(move |commit| {
        let failure = commit.expect_err("a batch with an unfinished job is not committed");
        let _ = reply.send(Err(failure.into()));
    })
}

/// Answers with `value` if the commit succeeds, with its failure otherwise.
fn answer<T: Send + 'static, E: From<LedgerError> + Send + 'static>(
    reply: Reply<T, E>,
    value: T,
) -> Answer {
    Box::new(move |commit| {
        // The asker may have gone away; what it asked for has happened anyway.
        let _ = reply.send(commit.map(|()| value).map_err(E::from));
    })
}

/// Answers with a refusal of this one job, whatever becomes of the commit.
fn decline<T: Send + 'static, E: Send + 'static>(reply: Reply<T, E>, error: E) -> Answer {
    Box::new(move |_| {
        let _ = reply.send(Err(error));
    })
}

struct Batch<'a> {
    connection: &'a Connection,
    answers: &'a mut Vec<Answer>,
    touched: &'a mut Vec<StreamId>,
}

struct Head {
    id: i64,
    seq: Seq,
    hash: Hash,
}

impl Batch<'_> {
    /// Performs a job. Damage concerns the stream it is in, so the job is undone
    /// and declined; any other failure concerns the batch.
    fn perform(&mut self, job: Job) -> Result<(), rusqlite::Error> {
        self.cached("savepoint job")?.execute([])?;
        match job {
            Job::Append(append, stored, reply) => {
                let stream = append.stream.clone();
                let done = self.append(append, &stored);
                self.settle(&stream, reply, done)?;
            }
            Job::Admit(to, letter, reply) => {
                let done = self.admit(&to, letter).map(Ok);
                self.settle(&to.inbox(), reply, done)?;
            }
            Job::Claim(stream, holder, now, ttl, reply) => {
                let done = self.claim(&stream, &holder, now, ttl);
                self.settle(&stream, reply, done)?;
            }
            Job::Renew(holder, now, ttl, reply) => {
                let done = self.renew(&holder, now, ttl).map(Ok);
                self.settle(&StreamId::new("leases"), reply, done)?;
            }
            Job::Release(lease, reply) => {
                let done = self.release(&lease).map(Ok);
                self.settle(&lease.stream, reply, done)?;
            }
            Job::Snapshot(stream, snapshot, reply) => {
                let done = self.put_snapshot(&stream, &snapshot).map(Ok);
                self.settle(&stream, reply, done)?;
            }
        }
        self.cached("release job")?.execute([]).map(drop)
    }

    fn settle<T: Send + 'static, E: From<LedgerError> + Send + 'static>(
        &mut self,
        stream: &StreamId,
        reply: Reply<T, E>,
        done: Result<Result<T, E>, rusqlite::Error>,
    ) -> Result<(), rusqlite::Error> {
        let answer = match done {
            Ok(Ok(value)) => answer(reply, value),
            Ok(Err(refusal)) => decline(reply, refusal),
            Err(error) if is_damage(&error) => {
                self.cached("rollback to job")?.execute([])?;
                let damaged = LedgerError::Damaged {
                    stream: stream.clone(),
                    seq: None,
                    what: error.to_string(),
                };
                decline(reply, damaged.into())
            }
            Err(error) => {
                self.answers.push(fail(reply));
                return Err(error);
            }
        };
        self.answers.push(answer);
        Ok(())
    }

    fn cached(&self, sql: &str) -> Result<CachedStatement<'_>, rusqlite::Error> {
        self.connection.prepare_cached(sql)
    }

    fn head(&self, stream: &StreamId) -> Result<Option<Head>, rusqlite::Error> {
        self.cached("select id, head, head_hash from streams where name = ?1")?
            .query_row([stream.as_str()], |r| {
                let (id, seq) = (r.get(0)?, r.get(1)?);
                Ok(Head {
                    id,
                    seq,
                    hash: Hash(r.get(2)?),
                })
            })
            .optional()
    }

    fn append(
        &mut self,
        append: Append,
        stored: &[BlobId],
    ) -> Result<Result<(), LedgerError>, rusqlite::Error> {
        if let Some(fence) = &append.fence {
            let epoch: Option<u64> = self
                .cached("select epoch from leases where stream = ?1")?
                .query_row([fence.stream.as_str()], |r| r.get(0))
                .optional()?;
            if epoch != Some(fence.epoch) {
                return Ok(Err(LedgerError::Fenced {
                    stream: fence.stream.clone(),
                }));
            }
        }
        let head = self.head(&append.stream)?;
        let (actual, hash) = head.as_ref().map_or((0, Hash::ZERO), |h| (h.seq, h.hash));
        if actual != append.expected || hash != append.previous {
            let (stream, expected) = (append.stream, append.expected);
            return Ok(Err(LedgerError::Conflict {
                stream,
                expected,
                actual,
            }));
        }
        let id = match (head, append.open) {
            (Some(head), _) => head.id,
            (None, Some(new)) => {
                let opened = append.events.first().map_or(Time(0), |s| s.event.time);
                self.open(&append.stream, &new, opened)?
            }
            (None, None) => {
                return Ok(Err(LedgerError::NoStream {
                    stream: append.stream,
                }));
            }
        };
        self.insert(id, &append.events, stored)?;
        self.touched.push(append.stream);
        Ok(Ok(()))
    }

    fn open(&self, stream: &StreamId, new: &NewStream, time: Time) -> Result<i64, rusqlite::Error> {
        self.cached(
            "insert into streams (name, kind, session, parent, head, head_hash, opened, updated)
             values (?1, ?2, ?3, ?4, 0, ?5, ?6, ?6)",
        )?
        .insert(params![
            stream.as_str(),
            new.kind,
            stream.session().as_str(),
            new.parent.as_ref().map(StreamId::as_str),
            Hash::ZERO.0,
            time.0
        ])
    }

    /// Inserts events and their blobs, but for those that are `stored` already.
    fn insert(
        &self,
        stream: i64,
        events: &[Sealed],
        stored: &[BlobId],
    ) -> Result<(), rusqlite::Error> {
        let mut insert = self.cached(
            "insert into events (stream, seq, time, actor, kind, version, cause, data, hash)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        let mut last = None;
        for Sealed { event, blobs } in events {
            for blob in blobs.iter().filter(|blob| !stored.contains(&blob.id)) {
                self.cached("insert or ignore into blobs values (?1, ?2, ?3)")?
                    .execute(params![
                        blob.id.0,
                        blob.content.len() as u64,
                        blob.compressed()
                    ])?;
            }
            insert.execute(params![
                stream,
                event.seq,
                event.time.0,
                &*event.actor,
                &*event.kind,
                event.version,
                event.cause.as_deref(),
                event.data.get(),
                event.hash.0
            ])?;
            last = Some(event);
        }
        if let Some(last) = last {
            self.cached(
                "update streams set head = ?2, head_hash = ?3, updated = ?4 where id = ?1",
            )?
            .execute(params![stream, last.seq, last.hash.0, last.time.0])?;
        }
        Ok(())
    }

    fn admit(&mut self, to: &StreamId, letter: Letter) -> Result<Receipt, rusqlite::Error> {
        let inbox = to.inbox();
        let time = letter.event.time;
        let head = match self.head(&inbox)? {
            Some(head) => head,
            None => {
                let new = NewStream {
                    kind: "inbox".into(),
                    parent: Some(to.clone()),
                };
                let id = self.open(&inbox, &new, time)?;
                let opened =
                    NewEvent::new("StreamOpened", "ledger", time, &new).seal(&inbox, 1, Hash::ZERO);
                let hash = opened.event.hash;
                self.insert(id, &[opened], &[])?;
                Head { id, seq: 1, hash }
            }
        };
        let known: Option<Seq> = self
            .cached("select seq from letters where stream = ?1 and id = ?2")?
            .query_row(params![head.id, letter.id], |r| r.get(0))
            .optional()?;
        if let Some(seq) = known {
            return Ok(Receipt {
                seq,
                repeated: true,
            });
        }
        let seq = head.seq + 1;
        let sealed = letter
            .event
            .because(letter.id.as_str())
            .seal(&inbox, seq, head.hash);
        self.insert(head.id, &[sealed], &[])?;
        self.cached("insert into letters values (?1, ?2, ?3)")?
            .execute(params![head.id, letter.id, seq])?;
        self.touched.push(inbox);
        Ok(Receipt {
            seq,
            repeated: false,
        })
    }

    fn claim(
        &self,
        stream: &StreamId,
        holder: &Holder,
        now: Time,
        ttl_millis: i64,
    ) -> Result<Result<Lease, LeaseError>, rusqlite::Error> {
        let current: Option<(String, u64, i64)> = self
            .cached("select detail, epoch, expires from leases where stream = ?1")?
            .query_row([stream.as_str()], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))
            .optional()?;
        let mut epoch = 1;
        if let Some((detail, last_epoch, expires)) = current {
            let other: Option<Holder> = serde_json::from_str(&detail).ok();
            if let Some(other) =
                other.filter(|o| o.id != holder.id && expires > now.0 && !o.is_gone())
            {
                let (stream, expires) = (stream.clone(), Time(expires));
                return Ok(Err(LeaseError::Held {
                    stream,
                    holder: other,
                    expires,
                }));
            }
            epoch = last_epoch + 1;
        }
        let detail = serde_json::to_string(holder).expect("a holder is plain data");
        self.cached("insert or replace into leases values (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![
                stream.as_str(),
                holder.id,
                detail,
                epoch,
                now.0 + ttl_millis
            ])?;
        Ok(Ok(Lease {
            stream: stream.clone(),
            holder: holder.id.clone(),
            epoch,
        }))
    }

    fn renew(&self, holder: &str, now: Time, ttl_millis: i64) -> Result<(), rusqlite::Error> {
        // A lease given back (0) stays given back.
        self.cached("update leases set expires = ?2 where holder = ?1 and expires > 0")?
            .execute(params![holder, now.0 + ttl_millis])
            .map(drop)
    }

    fn release(&self, lease: &Lease) -> Result<(), rusqlite::Error> {
        self.cached("update leases set expires = 0 where stream = ?1 and epoch = ?2")?
            .execute(params![lease.stream.as_str(), lease.epoch])
            .map(drop)
    }

    fn put_snapshot(&self, stream: &StreamId, snapshot: &Snapshot) -> Result<(), rusqlite::Error> {
        self.cached("insert or replace into snapshots values (?1, ?2, ?3, ?4)")?
            .execute(params![
                stream.as_str(),
                snapshot.seq,
                snapshot.hash.0,
                pack(stream, snapshot)
            ])
            .map(drop)
    }
}
