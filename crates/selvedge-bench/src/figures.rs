//! Figures: printed as they come, and once more as a table.

use std::io::Write;
use std::time::Instant;

use serde_json::{Value, json};

/// The figures so far.
#[derive(Default)]
pub struct Figures(Vec<(String, f64, &'static str, Option<f64>)>);

impl Figures {
    /// Adds a figure; `goal` is the most it should be.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        goal: Option<f64>,
    ) {
        let name = name.into();
        let mut line = json!({ "figure": name, "value": value, "unit": unit });
        if let Some(goal) = goal {
            line["goal"] = goal.into();
            line["reached"] = (value <= goal).into();
        }
        print_line(&line);
        self.0.push((name, value, unit, goal));
    }

    /// What one appended and synced page costs on this disk: the floor of all.
    pub fn disk_floor(&mut self) -> anyhow::Result<()> {
        let mut file = tempfile::tempfile_in(crate::rig::scratch()?.path())?;
        let mut costs = Vec::new();
        for _ in 0..200 {
            let begun = Instant::now();
            file.write_all(&[0; 4096])?;
            file.sync_data()?;
            costs.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        self.add(
            "one synced append of 4 KB, the floor",
            median(&mut costs),
            "ms",
            None,
        );
        Ok(())
    }

    /// Prints all figures for people.
    pub fn table(&self) {
        eprintln!("\n{:<58} {:>12}  {:<6} goal", "figure", "value", "unit");
        for (name, value, unit, goal) in &self.0 {
            let goal = match goal {
                Some(goal) if value <= goal => format!("≤ {goal}  reached"),
                Some(goal) => format!("≤ {goal}  MISSED"),
                None => String::new(),
            };
            eprintln!("{name:<58} {value:>12.3}  {unit:<6} {goal}");
        }
    }
}

#[allow(clippy::print_stdout)]
fn print_line(line: &Value) {
    println!("{line}");
}

/// The middle value.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// CPU time of this process so far, in milliseconds.
pub fn cpu_ms() -> f64 {
    let usage = usage();
    let of = |t: libc::timeval| t.tv_sec as f64 * 1e3 + t.tv_usec as f64 / 1e3;
    of(usage.ru_utime) + of(usage.ru_stime)
}

/// Resident memory of this process now, in kilobytes.
pub fn resident_kb() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm
        .split(' ')
        .nth(1)
        .and_then(|p| p.parse().ok())
        .unwrap_or(0.0);
    pages * 4.0
}

/// The most resident memory that this process ever had, in kilobytes.
pub fn peak_kb() -> f64 {
    // Linux counts it in kilobytes.
    usage().ru_maxrss as f64
}

#[allow(unsafe_code)]
fn usage() -> libc::rusage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole `rusage`, which the call fills; zeroes
    // are a valid value for it in any case.
    unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    }
}
