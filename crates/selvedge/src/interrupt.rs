//! Being told to stop: once politely, twice at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Exit, Result};

/// Set when the work must stop, and why.
#[derive(Clone)]
pub struct Interrupt {
    /// Set when the work must stop.
    pub cancel: CancellationToken,
    is_late: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens for Ctrl-C and SIGTERM, and for the end of the time that was
    /// given. The second signal ends the process without waiting for anything.
    /// What is to be said about it goes to `say`.
    pub fn listen(timeout: Option<Duration>, say: impl Fn(&str) + Send + 'static) -> Result<Self> {
        let cancel = CancellationToken::new();
        let is_late = Arc::new(AtomicBool::new(false));
        let this = Self { cancel, is_late };
        let failed = |error| Error::failed("signals cannot be listened for").cause(error);
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let told = this.clone();
        let until = timeout.map(|timeout| tokio::time::Instant::now() + timeout);
        tokio::spawn(async move {
            loop {
                let is_signal = tokio::select! {
                    _ = interrupt.recv() => true,
                    _ = terminate.recv() => true,
                    () = deadline(until), if !told.is_late() => false,
                };
                if is_signal && told.cancel.is_cancelled() {
                    std::process::exit(Exit::Interrupted as i32);
                }
                if is_signal {
                    say("stopping what is under way; once more to quit at once");
                } else {
                    say("the time is over: stopping what is under way");
                    told.is_late.store(true, Ordering::Relaxed);
                }
                told.cancel.cancel();
            }
        });
        Ok(this)
    }

    /// Whether the reason is that the time is over.
    pub fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }
}

async fn deadline(until: Option<tokio::time::Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// A length of time as people write it: `90`, `90s`, `5m`, `2h`.
pub fn parse_duration(text: &str) -> std::result::Result<Duration, String> {
    let wrong = || format!("`{text}` is not a length of time, such as `90s`, `5m` or `2h`");
    let digits = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit.trim() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        assert_eq!(parse_duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert!(parse_duration("soon").is_err());
        assert!(parse_duration("-1s").is_err());
    }
}
