//! Words for people: escaped, shortened, counted, aligned.

use std::fmt::Write as _;

use selvedge_ledger::Time;

/// The text with control characters made visible. A model's words and a
/// command's output must not be able to steer the terminal that shows them.
pub fn escape(text: &str) -> String {
    selvedge_tool::visible(text)
}

/// One line of at most `chars_max` characters.
pub fn one_line(text: &str, chars_max: usize) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let safe = escape(&joined);
    if safe.chars().count() <= chars_max {
        return safe;
    }
    let kept: String = safe.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Which model is asked, after the name of whoever asks it.
pub fn on_model(model: &str) -> String {
    match model {
        "" => "without a model".to_owned(),
        model => format!("on {model}"),
    }
}

/// One line of the last `chars_max` characters, for words that are still coming.
pub fn last_words(text: &str, chars_max: usize) -> String {
    let line = one_line(text, usize::MAX);
    let chars = line.chars().count();
    if chars <= chars_max {
        return line;
    }
    let kept: String = line.chars().skip(chars - chars_max + 1).collect();
    format!("…{}", kept.trim_start())
}

/// The text with every line cut to `columns`, if there is such a limit.
pub fn fit(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else {
        return text.to_owned();
    };
    let cut = |line: &str| match line.chars().count() > columns {
        true => {
            let kept: String = line.chars().take(columns.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end_matches([' ', '…']))
        }
        false => line.to_owned(),
    };
    text.lines().map(cut).collect::<Vec<_>>().join("\n")
}

/// Every line with `indent` before it, empty ones left empty.
pub fn indented(text: &str, indent: &str) -> String {
    let lines = text.lines().map(|line| match line {
        "" => String::new(),
        line => format!("{indent}{line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A number that can be read at a glance: `950`, `5.4k`, `1.2M`.
pub fn count(number: u64) -> String {
    let value = number as f64;
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{:.1}k", value / 1e3),
        _ => format!("{:.1}M", value / 1e6),
    }
}

/// A length of time: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`.
pub fn duration(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..10 => format!("{:.1} s", millis as f64 / 1000.0),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// How long ago `then` was.
pub fn ago(now: Time, then: Time) -> String {
    let seconds = u64::try_from(now.millis_since(then) / 1000).unwrap_or(0);
    match seconds {
        0..5 => "just now".into(),
        5..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// A moment, in the time zone of the reader.
pub fn moment(time: Time) -> String {
    let Ok(timestamp) = jiff::Timestamp::from_millisecond(time.0) else {
        return time.0.to_string();
    };
    let zoned = timestamp.to_zoned(jiff::tz::TimeZone::system());
    zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// "1 turn", "3 turns".
pub fn plural(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{s}")
}

// Below this likeness a suggestion confuses more than it helps.
const LIKENESS_MIN: f64 = 0.72;

/// The one of `names` that is most like `wanted`, if one is.
pub fn nearest<'a>(wanted: &str, names: &[&'a str]) -> Option<&'a str> {
    let like = |name: &&str| strsim::jaro_winkler(wanted, name);
    let best = names.iter().max_by(|a, b| like(a).total_cmp(&like(b)))?;
    (like(best) >= LIKENESS_MIN).then_some(*best)
}

/// A hint that names what was probably meant.
pub fn did_you_mean(wanted: &str, names: &[&str]) -> Option<String> {
    nearest(wanted, names).map(|name| format!("did you mean `{name}`?"))
}

/// Rows in aligned columns, the first row as the heading. The last column is
/// left as it is.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut lines = Vec::with_capacity(rows.len());
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_shown_can_steer_a_terminal() {
        assert_eq!(escape("a\x1b[2Jb\r\n\tc"), "a\\u{1b}[2Jb\\r\n\tc");
        assert_eq!(escape("rm \u{202e}txt.exe"), "rm \\u{202e}txt.exe");
        assert_eq!(escape("naïve ✓"), "naïve ✓");
    }

    #[test]
    fn a_long_text_becomes_one_short_line() {
        assert_eq!(one_line("a\n  b   c", 20), "a b c");
        assert_eq!(one_line("abcdefghij", 5), "abcd…");
        assert_eq!(last_words("abcdefghij", 5), "…ghij");
        assert_eq!(last_words("a\nb", 5), "a b");
    }

    #[test]
    fn a_table_fits_into_its_terminal() {
        assert_eq!(fit("ID  REQUEST\n1   do it", Some(8)), "ID  REQ…\n1   do…");
        assert_eq!(fit("ID  REQUEST", None), "ID  REQUEST");
    }

    #[test]
    fn numbers_and_times_can_be_read_at_a_glance() {
        assert_eq!((count(950).as_str(), count(5400).as_str()), ("950", "5.4k"));
        assert_eq!(duration(400), "0.4 s");
        assert_eq!(duration(185_000), "3 min 5 s");
        assert_eq!(ago(Time(100_000), Time(30_000)), "1 min ago");
        assert_eq!(ago(Time(0), Time(30_000)), "just now");
    }

    #[test]
    fn a_typo_finds_its_name_and_a_stranger_none() {
        assert_eq!(nearest("sola", &["solo", "swarm"]), Some("solo"));
        assert_eq!(nearest("zzz", &["solo", "swarm"]), None);
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["ID", "STATE"], ["s_1", "ended"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "ID   STATE\ns_1  ended");
    }
}
