//! What is known of the user: Markdown with a line for each thing, kept small.

use jiff::civil::Date;

use crate::journal::protocol::{Category, Certainty, ContextUpdate};

/// About so many characters are a token.
const TOKEN_CHARS: usize = 4;
const TITLE: &str = "# Global Context";
const SECTIONS: [(Category, &str); 4] = [
    (Category::Preference, "Preferences"),
    (Category::Pattern, "Patterns"),
    (Category::Fact, "Facts"),
    (Category::Insight, "Insights"),
];

/// What is known of the user, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GlobalContext {
    version: u32,
    lines: Vec<Line>,
    /// What somebody wrote that is no item: kept as it is, at the end of its section.
    remarks: Vec<(Category, String)>,
}

/// One thing that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    category: Category,
    /// Empty for a line that somebody wrote without one.
    key: String,
    value: String,
    certainty: Certainty,
    since: Option<Date>,
    /// How often it was confirmed.
    seen: u32,
}

impl GlobalContext {
    /// Reads what is there. Lines that were written by hand are kept as they are.
    pub fn read(text: &str) -> Self {
        let mut context = Self::default();
        let mut section = Category::Insight;
        let (front, body) = selvedge_tool::front_matter(text).unwrap_or(("", text));
        let version = front.lines().find_map(|line| line.strip_prefix("version:"));
        context.version = version.and_then(|v| v.trim().parse().ok()).unwrap_or(0);
        for line in body.lines() {
            let title = line.strip_prefix("## ").map(str::trim);
            let named = title.and_then(|title| {
                let mut sections = SECTIONS.iter();
                sections.find(|(_, name)| title.starts_with(name))
            });
            if let Some((category, _)) = named {
                section = *category;
            } else if let Some(item) = line.strip_prefix("- ") {
                context.lines.push(Line::read(section, item));
            } else if !line.trim().is_empty() && line.trim() != TITLE {
                context.remarks.push((section, line.to_owned()));
            }
        }
        context
    }

    /// Takes updates in: a key that is known is updated, and never stands there twice.
    /// Returns whether anything changed.
    pub fn update(&mut self, updates: &[ContextUpdate], today: Date) -> bool {
        let before = self.lines.clone();
        for update in updates {
            let key = normal(&update.key);
            if key.is_empty() || update.value.trim().is_empty() {
                continue;
            }
            let value = one_line(&update.value);
            let known = self.lines.iter_mut().find(|line| normal(&line.key) == key);
            match known {
                Some(line) => {
                    let is_guess = update.confidence == Certainty::Tentative;
                    if is_guess && line.certainty == Certainty::Certain && line.value != value {
                        // A possibility takes nothing from what is known.
                        continue;
                    }
                    line.seen += 1;
                    let is_same = line.value == value;
                    if !is_same {
                        line.since = Some(today);
                    }
                    line.value = value;
                    line.category = update.category;
                    line.certainty = match (line.certainty, update.confidence) {
                        // Seen twice, it is more than a guess.
                        (Certainty::Tentative, Certainty::Tentative) => Certainty::Likely,
                        // Confirmed, it is no less sure than before.
                        (before, newer) if is_same => before.max(newer),
                        (_, newer) => newer,
                    };
                }
                None => self.lines.push(Line {
                    category: update.category,
                    key: one_line(&update.key),
                    value,
                    certainty: update.confidence,
                    since: Some(today),
                    seen: 1,
                }),
            }
        }
        let is_changed = before != self.lines;
        self.version += u32::from(is_changed);
        is_changed
    }

    /// Makes room: what is tentative and was never confirmed goes first, then what is
    /// oldest and least certain. Returns what left, for the archive.
    pub fn fit(&mut self, tokens_max: usize, today: Date) -> Vec<String> {
        let mut left = Vec::new();
        while self.render(today).len() / TOKEN_CHARS > tokens_max {
            let weight = |line: &Line| {
                let is_guess = line.certainty == Certainty::Tentative && line.seen <= 1;
                (!is_guess, line.certainty, line.seen, line.since)
            };
            let lightest = (0..self.lines.len()).min_by_key(|at| weight(&self.lines[*at]));
            let Some(at) = lightest else { break };
            left.push(self.lines.remove(at).render());
        }
        left
    }

    /// As it is written.
    pub fn render(&self, today: Date) -> String {
        let mut text = format!(
            "---\nlast_updated: {today}\nversion: {}\n---\n\n{TITLE}\n",
            self.version
        );
        for (category, name) in SECTIONS {
            text.push_str(&format!("\n## {name}\n"));
            let lines = self.lines.iter().filter(|line| line.category == category);
            for line in lines {
                text.push_str(&format!("- {}\n", line.render()));
            }
            let remarks = self.remarks.iter().filter(|(of, _)| *of == category);
            for (_, remark) in remarks {
                text.push_str(&format!("{remark}\n"));
            }
        }
        text
    }
}

impl Line {
    fn read(category: Category, item: &str) -> Self {
        let (said, marks) = match item.rsplit_once(" (") {
            Some((said, marks)) if marks.ends_with(')') => (said, marks.trim_end_matches(')')),
            _ => (item, ""),
        };
        let mut marks = marks.split(", ");
        let certainty = match marks.next() {
            Some("certain") => Some(Certainty::Certain),
            Some("likely") => Some(Certainty::Likely),
            Some("tentative") => Some(Certainty::Tentative),
            _ => None,
        };
        // A remark in brackets that is not ours belongs to what is said.
        let said = if certainty.is_some() { said } else { item };
        let (key, value) = match said.split_once(": ") {
            Some((key, value)) => (key.trim(), value.trim()),
            None => ("", said.trim()),
        };
        let rest: Vec<&str> = marks.collect();
        let after = |word: &str| rest.iter().find_map(|mark| mark.strip_prefix(word));
        Self {
            category,
            key: key.to_owned(),
            value: value.to_owned(),
            certainty: certainty.unwrap_or(Certainty::Certain),
            since: after("since ").and_then(|date| date.parse().ok()),
            seen: after("seen ").and_then(|n| n.parse().ok()).unwrap_or(1),
        }
    }

    fn render(&self) -> String {
        let certainty = match self.certainty {
            Certainty::Certain => "certain",
            Certainty::Likely => "likely",
            Certainty::Tentative => "tentative",
        };
        let key = match self.key.is_empty() {
            true => String::new(),
            false => format!("{}: ", self.key),
        };
        let since = self
            .since
            .map_or(String::new(), |date| format!(", since {date}"));
        let seen = match self.seen {
            0 | 1 => String::new(),
            seen => format!(", seen {seen}"),
        };
        format!("{key}{} ({certainty}{since}{seen})", self.value)
    }
}

fn normal(key: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() { c } else { '_' };
    key.trim().to_lowercase().chars().map(plain).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn update(key: &str, value: &str, confidence: Certainty) -> ContextUpdate {
        ContextUpdate {
            category: Category::Fact,
            key: key.into(),
            value: value.into(),
            confidence,
            source: "test".into(),
        }
    }

    #[test]
    fn a_known_key_is_updated_instead_of_added() {
        let day = date(2026, 1, 4);
        let mut context = GlobalContext::default();
        context.update(&[update("bench_pr", "185 lb", Certainty::Likely)], day);
        context.update(&[update("Bench PR", "195 lb", Certainty::Certain)], day);
        let text = context.render(day);
        assert!(
            text.contains("- bench_pr: 195 lb (certain, since 2026-01-04, seen 2)"),
            "{text}"
        );
        assert_eq!(text.matches("bench").count(), 1);
        assert!(text.contains("version: 2"));
        assert_eq!(GlobalContext::read(&text), context);
    }

    #[test]
    fn a_guess_takes_nothing_from_what_is_known() {
        let day = date(2026, 1, 4);
        let mut context = GlobalContext::default();
        context.update(&[update("units", "metric", Certainty::Certain)], day);
        assert!(!context.update(&[update("units", "miles", Certainty::Tentative)], day));
        context.update(&[update("units", "metric", Certainty::Tentative)], day);
        let text = context.render(day);
        assert!(
            text.contains("- units: metric (certain, since 2026-01-04, seen 2)"),
            "{text}"
        );
        assert!(context.update(&[update("units", "imperial", Certainty::Certain)], day));
    }

    #[test]
    fn what_was_written_by_hand_stays() {
        let text = "---\nversion: 3\n---\n# Global Context\n\n## Preferences\n- metric please (no miles)\n- units: metric\nAsk me in German.\n\n## Equipment\nA bench.\n";
        let mut context = GlobalContext::read(text);
        context.update(&[update("x", "y", Certainty::Likely)], date(2026, 1, 4));
        let text = context.render(date(2026, 1, 4));
        assert!(
            text.contains("- metric please (no miles) (certain)"),
            "{text}"
        );
        assert!(text.contains("- units: metric (certain)"), "{text}");
        for words in ["Ask me in German.", "## Equipment\nA bench."] {
            assert!(text.contains(words), "{text}");
        }
        // Read and written once more, nothing is there twice.
        let again = GlobalContext::read(&text).render(date(2026, 1, 4));
        assert_eq!(again, text);
    }

    #[test]
    fn it_stays_small_and_unconfirmed_guesses_go_first() {
        let day = date(2026, 1, 4);
        let mut context = GlobalContext::default();
        let long = "x".repeat(300);
        let updates: Vec<ContextUpdate> = (0..40)
            .map(|n| {
                let certainty = if n % 2 == 0 {
                    Certainty::Tentative
                } else {
                    Certainty::Certain
                };
                update(&format!("key{n}"), &long, certainty)
            })
            .collect();
        context.update(&updates, day);
        let left = context.fit(2000, day);
        assert!(context.render(day).len() / TOKEN_CHARS <= 2000);
        let guesses = left
            .iter()
            .take_while(|line| line.contains("tentative"))
            .count();
        assert!(guesses >= left.len().min(20), "{guesses} of {}", left.len());
        assert!(context.render(day).contains("certain"));
    }
}
