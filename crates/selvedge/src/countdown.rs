//! What is left of a wait, for the live line, which draws itself several times a
//! second.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use selvedge_ledger::{StreamId, Time};

use crate::text::duration;

/// Who waits, and until when. Clones are the same.
#[derive(Clone, Default)]
pub struct Countdown(Arc<Mutex<BTreeMap<StreamId, Time>>>);

impl Countdown {
    /// Counts down to `until`; `None` when `stream` does not wait any more.
    pub fn set(&self, stream: &StreamId, until: Option<Time>) {
        // What is shown is never the truth.
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match until {
            Some(until) => drop(waits.insert(stream.clone(), until)),
            None => drop(waits.remove(stream)),
        }
    }

    /// What is left of the longest wait, as words; nothing when nobody waits.
    pub fn show(&self, now: Time) -> String {
        let waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = waits.values().map(|until| until.millis_since(now)).max();
        let left = left.filter(|left| *left > 0).unwrap_or(0).unsigned_abs();
        // Whole seconds: tenths would flicker.
        match left.div_ceil(1000) {
            0 => String::new(),
            seconds @ 1..60 => format!(" · waiting {seconds} s"),
            seconds => format!(" · waiting {}", duration(seconds * 1000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_is_counted_down_second_by_second() {
        let countdown = Countdown::default();
        let (one, two) = (StreamId::new("s"), StreamId::new("s/t0.0"));
        assert_eq!(countdown.show(Time(0)), "");
        countdown.set(&one, Some(Time(7000)));
        countdown.set(&two, Some(Time(95_000)));
        assert_eq!(countdown.show(Time(0)), " · waiting 1 min 35 s");
        countdown.set(&two, None);
        assert_eq!(countdown.show(Time(0)), " · waiting 7 s");
        assert_eq!(countdown.show(Time(6001)), " · waiting 1 s");
        assert_eq!(countdown.show(Time(7000)), "");
    }
}
