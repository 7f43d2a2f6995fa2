//! What ten years of notes cost: a month of them, and a word in all of them.

use std::time::Instant;

use jiff::ToSpan;
use jiff::civil::{Date, date};
use selvedge_crews::journal::Notes;

use crate::figures::{Figures, median};
use crate::rig::scratch;

const DAYS: i64 = 3650;
const ROUNDS: usize = 20;
const FIRST: Date = date(2016, 1, 1);

/// Measures both.
pub fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    let folder = scratch()?;
    for day in 0..DAYS {
        let date = FIRST.checked_add(day.days())?;
        let path = folder
            .path()
            .join(format!("{:04}/{:02}", date.year(), date.month()));
        std::fs::create_dir_all(&path)?;
        let id = format!("{date}T08:00-{day:06}");
        let word = if day % 100 == 0 {
            "personal record"
        } else {
            "easy day"
        };
        let text = format!(
            "## 08:00\n<!-- id: {id} -->\nSlept {} hours, bench {}x5, {word}. Lunch was rice and \
             beans, a walk in the evening, nothing hurts.\n",
            5 + day % 4,
            60 + day % 40
        );
        std::fs::write(path.join(format!("{date}.md")), text)?;
        let parsed = format!(
            "{{\"version\":1,\"entries\":{{\"{id}\":{{\"parse\":\"done\",\"text_hash\":\"x\",\
             \"domain_data\":{{\"general\":{{\"sleep\":{{\"duration\":7}}}}}}}}}}}}\n"
        );
        std::fs::write(path.join(format!("{date}.json")), parsed)?;
    }
    let notes = Notes::at(folder.path());
    let mut timed =
        |name: &str, goal: f64, count: usize, act: &dyn Fn() -> anyhow::Result<usize>| {
            let mut costs = Vec::new();
            for _ in 0..ROUNDS {
                let begun = Instant::now();
                anyhow::ensure!(act()? == count, "{name} found something else");
                costs.push(begun.elapsed().as_secs_f64() * 1e3);
            }
            figures.add(name, median(&mut costs), "ms", Some(goal));
            Ok(())
        };
    timed("a month of ten years of notes", 20.0, 31, &|| {
        let found = notes.get_entries_by_date_range(date(2020, 3, 1), date(2020, 3, 31))?;
        Ok(found.entries.len())
    })?;
    let words = [vec!["personal record".to_owned(), "pr".to_owned()]];
    timed("a word in ten years of notes", 200.0, 37, &|| {
        Ok(notes.search_entries(&words, None, false)?.entries.len())
    })
}
