//! Domains: folders of knowledge that agents are given, and no code.
//!
//! `domain.toml` (name, description), `schema.json`, `vocabulary.toml`, `expertise.md`,
//! `rules.md` and `guidance.md`. The base domain always applies; others are chosen by
//! their description. A user's domain takes the place of a built-in one of its name; one
//! that is broken is named, and the others work.

mod built_in;
mod template;

pub use template::make_template;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::notes::Vocabulary;
use super::protocol::{ActiveDomainContext, DomainInfo};
use super::rows;

/// Files that are longer are no domain's.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// What is known of a field of life.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Its name.
    pub name: String,
    /// What it covers: it is chosen by this.
    pub description: String,
    /// Whether it always applies.
    pub is_base: bool,
    /// What a parsed entry looks like.
    pub schema: Value,
    /// Words and what they stand for.
    pub vocabulary: Vocabulary,
    /// What it knows, as Markdown.
    pub expertise: String,
    /// What an answer must keep to.
    pub rules: Vec<String>,
    /// What is worth remembering of the user.
    pub guidance: String,
}

/// All domains there are.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    all: Vec<Domain>,
    /// Those that are broken, and why.
    pub faults: Vec<String>,
}

/// The content of a `domain.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DomainFile {
    name: Option<String>,
    description: String,
    #[serde(default)]
    base: bool,
}

impl Domains {
    /// The built-in ones, and those in the folders below `folder`.
    pub fn load(folder: &Path) -> Self {
        let mut domains = Self::default();
        for files in built_in::ALL {
            let (name, files) = (files.0, files.1);
            let file = |wanted: &str| {
                let found = files.iter().find(|(name, _)| *name == wanted);
                Ok(found.map(|(_, text)| (*text).to_owned()))
            };
            domains.add(name, Domain::read(name, file));
        }
        let folders = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut folders: Vec<_> = folders
            .map(|entry| entry.path())
            .filter(|p| p.is_dir())
            .collect();
        folders.sort();
        for folder in folders {
            let name = folder
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if name.starts_with('.') {
                continue;
            }
            domains.add(&name, Domain::read(&name, |file| read(&folder.join(file))));
        }
        domains
    }

    fn add(&mut self, name: &str, domain: Result<Domain, String>) {
        match domain {
            Ok(domain) => {
                if domain.is_base {
                    // There is one base: the last that says it is.
                    self.all.iter_mut().for_each(|other| other.is_base = false);
                }
                self.all.retain(|other| other.name != domain.name);
                self.all.push(domain);
            }
            Err(why) => self
                .faults
                .push(format!("the domain `{name}` is left out: {why}")),
        }
    }

    /// All of them, as they are chosen by.
    pub fn infos(&self) -> Vec<DomainInfo> {
        let info = |domain: &Domain| DomainInfo {
            name: domain.name.clone(),
            description: domain.description.clone(),
        };
        self.all.iter().map(info).collect()
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<&Domain> {
        self.all.iter().find(|domain| domain.name == name)
    }

    /// The base and the selected ones, combined. What does not exist is noted.
    pub fn combine(&self, selected: &[String]) -> ActiveDomainContext {
        let mut context = ActiveDomainContext {
            notes: self.faults.clone(),
            ..ActiveDomainContext::default()
        };
        let base = self.all.iter().filter(|domain| domain.is_base);
        let mut chosen: Vec<&Domain> = base.collect();
        for name in selected {
            match self.get(name) {
                Some(domain) if chosen.iter().all(|c| c.name != domain.name) => chosen.push(domain),
                Some(_) => {}
                None => context
                    .notes
                    .push(format!("there is no domain `{name}`: ignored")),
            }
        }
        let (mut expertise, mut guidance) = (Vec::new(), Vec::new());
        for domain in &chosen {
            context.domains_loaded.push(domain.name.clone());
            // A selected domain means its own by a word, whatever the base means.
            context.vocabulary.extend(domain.vocabulary.clone());
            for (text, all) in [
                (&domain.expertise, &mut expertise),
                (&domain.guidance, &mut guidance),
            ] {
                if !text.trim().is_empty() {
                    all.push(format!("## {}\n\n{}", domain.name, text.trim()));
                }
            }
            for rule in &domain.rules {
                if !context.evaluation_rules.contains(rule) {
                    context.evaluation_rules.push(rule.clone());
                }
            }
            context
                .schemas
                .insert(domain.name.clone(), domain.schema.clone());
        }
        context.expertise = expertise.join("\n\n");
        context.context_guidance = guidance.join("\n\n");
        let is_left = |info: &DomainInfo| !context.domains_loaded.contains(&info.name);
        context.available_domains = self.infos().into_iter().filter(is_left).collect();
        context
    }
}

impl Domain {
    fn read(
        folder: &str,
        file: impl Fn(&str) -> Result<Option<String>, String>,
    ) -> Result<Self, String> {
        let text = file("domain.toml")?.ok_or("it has no `domain.toml`")?;
        let written: DomainFile =
            toml::from_str(&text).map_err(|e| format!("`domain.toml`: {}", e.message()))?;
        let name = written.name.unwrap_or_else(|| folder.to_owned());
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(format!(
                "`{name}` is no name: letters, digits, `-` and `_` are"
            ));
        }
        if written.description.trim().is_empty() {
            return Err("`domain.toml`: without a description it is never chosen".into());
        }
        let schema = file("schema.json")?.ok_or("it has no `schema.json`")?;
        let schema: Value =
            serde_json::from_str(&schema).map_err(|e| format!("`schema.json`: {e}"))?;
        if schema["type"] != "object" {
            return Err("`schema.json`: its type is not `object`".into());
        }
        jsonschema::validator_for(&schema).map_err(|e| format!("`schema.json`: {e}"))?;
        rows::rules(&schema).map_err(|why| format!("`schema.json`: {why}"))?;
        let vocabulary: BTreeMap<String, String> = match file("vocabulary.toml")? {
            Some(text) => {
                toml::from_str(&text).map_err(|e| format!("`vocabulary.toml`: {}", e.message()))?
            }
            None => BTreeMap::new(),
        };
        let rules = file("rules.md")?.unwrap_or_default();
        let rules = rules
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- "));
        Ok(Self {
            name,
            description: written.description.trim().to_owned(),
            is_base: written.base,
            schema,
            vocabulary,
            expertise: file("expertise.md")?.unwrap_or_default(),
            rules: rules.map(|rule| rule.trim().to_owned()).collect(),
            guidance: file("guidance.md")?.unwrap_or_default(),
        })
    }
}

/// What of a domain's data fits its schema, and the fields that do not.
pub fn fitting(schema: &Value, data: &Value) -> (Option<Value>, Vec<String>) {
    let Ok(validator) = jsonschema::validator_for(schema) else {
        return (None, vec![String::new()]);
    };
    if validator.is_valid(data) {
        return (Some(data.clone()), Vec::new());
    }
    let Value::Object(mut fields) = data.clone() else {
        return (None, vec![String::new()]);
    };
    let mut unfit = Vec::new();
    let places: Vec<String> = validator
        .iter_errors(data)
        .map(|e| e.instance_path().to_string())
        .collect();
    for place in places {
        let field = place.split('/').nth(1).unwrap_or_default().to_owned();
        fields.remove(&field);
        if !unfit.contains(&field) {
            unfit.push(field);
        }
    }
    // A field that the schema does not know is named by the error of the whole.
    if let (false, Some(known)) = (
        schema["additionalProperties"] == true,
        schema["properties"].as_object(),
    ) {
        let unknown: Vec<String> = fields
            .keys()
            .filter(|f| !known.contains_key(*f))
            .cloned()
            .collect();
        for field in unknown {
            fields.remove(&field);
            unfit.push(field);
        }
    }
    unfit.retain(|field| !field.is_empty());
    let kept = Value::Object(fields);
    match validator.is_valid(&kept) && kept.as_object().is_some_and(|f| !f.is_empty()) {
        true => (Some(kept), unfit),
        false => (
            None,
            if unfit.is_empty() {
                vec![String::new()]
            } else {
                unfit
            },
        ),
    }
}

fn read(path: &Path) -> Result<Option<String>, String> {
    let shown = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
            return Err(format!("`{shown}` is longer than {FILE_BYTES_MAX} bytes"));
        }
        _ => {}
    }
    std::fs::read_to_string(path)
        .map(Some)
        .map_err(|e| format!("`{shown}`: {e}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::journal::rows::Units;

    #[test]
    fn the_built_in_domains_are_whole_and_general_is_the_base() {
        let domains = Domains::load(Path::new("/nowhere"));
        assert!(domains.faults.is_empty(), "{:?}", domains.faults);
        let names: Vec<String> = domains.infos().into_iter().map(|info| info.name).collect();
        assert_eq!(
            names,
            ["general", "strength", "running", "swimming", "nutrition"]
        );
        for domain in &domains.all {
            assert_eq!(domain.is_base, domain.name == "general");
            assert!(domain.vocabulary.len() >= 10, "{}", domain.name);
            assert!(domain.expertise.len() > 800, "{}", domain.name);
            assert!(domain.rules.len() >= 4, "{}", domain.name);
            assert!(domain.guidance.len() > 150, "{}", domain.name);
            assert!(
                !rows::rules(&domain.schema).unwrap().is_empty(),
                "{}",
                domain.name
            );
        }
    }

    #[test]
    fn the_schemas_take_what_people_write() {
        let domains = Domains::load(Path::new("/nowhere"));
        for (name, data, rows_expected) in [
            (
                "general",
                json!({ "sleep": { "duration": 4, "unit": "h" }, "energy": 3 }),
                2,
            ),
            (
                "strength",
                json!({ "exercises": [
                { "name": "bench press", "weight": 185, "weight_unit": "lb", "sets": 3, "reps": 5, "feeling": "heavy" }
            ] }),
                3,
            ),
            (
                "running",
                json!({ "runs": [{ "distance": 5, "distance_unit": "km", "duration": 25, "duration_unit": "min" }] }),
                2,
            ),
            (
                "swimming",
                json!({ "swims": [{ "distance": 1500, "distance_unit": "m", "stroke": "freestyle" }] }),
                1,
            ),
            (
                "nutrition",
                json!({ "meals": [{ "meal": "lunch", "items": [{ "name": "rice" }], "protein": 30 }] }),
                1,
            ),
        ] {
            let domain = domains.get(name).unwrap();
            let (kept, unfit) = fitting(&domain.schema, &data);
            assert!(unfit.is_empty(), "{name}: {unfit:?}");
            let rows = rows::rows(name, &domain.schema, &kept.unwrap(), Units::Metric);
            assert_eq!(rows.len(), rows_expected, "{name}: {rows:?}");
        }
    }

    #[test]
    fn a_word_of_everyday_speech_stands_for_nothing_else() {
        // A sore back is no backstroke, and `if` no fasting.
        let everyday = [
            "if", "im", "back", "rest", "pull", "push", "max", "half", "free", "ow", "a", "i",
            "and", "or", "no", "not", "day", "week", "good", "bad", "hard", "easy",
        ];
        for domain in &Domains::load(Path::new("/nowhere")).all {
            for word in everyday {
                let meaning = domain.vocabulary.get(word);
                assert_eq!(meaning, None, "`{word}` in {}", domain.name);
            }
            for (word, meaning) in &domain.vocabulary {
                assert_ne!(word, meaning, "{}", domain.name);
            }
        }
    }

    #[test]
    fn a_pace_in_yards_is_not_taken_for_one_in_metres() {
        let domains = Domains::load(Path::new("/nowhere"));
        let schema = &domains.get("swimming").unwrap().schema;
        let pace = |data: Value, units| rows::rows("swimming", schema, &data, units)[0].value;
        let yards = json!({ "swims": [{ "pace_per_100": 90, "pace_unit": "s/100yd" }] });
        assert!((pace(yards, Units::Metric) - 98.425).abs() < 1e-3);
        let open = json!({ "swims": [{ "pace_per_100": 90 }] });
        assert!((pace(open.clone(), Units::Metric) - 90.0).abs() < 1e-9);
        assert!((pace(open, Units::Imperial) - 98.425).abs() < 1e-3);
    }

    #[test]
    fn a_selected_domain_means_its_own_by_a_word_and_rules_are_united() {
        let folder = tempfile::tempdir().unwrap();
        let make = |file: &str, text: &str| {
            std::fs::create_dir_all(folder.path().join("cooking")).unwrap();
            std::fs::write(folder.path().join("cooking").join(file), text).unwrap();
        };
        make("domain.toml", "description = 'Cooking'");
        make("schema.json", r#"{"type": "object"}"#);
        make("vocabulary.toml", "rpe = 'rice per eater'");
        make("rules.md", "Rules:\n- Taste first.\n");
        let domains = Domains::load(folder.path());
        let context = domains.combine(&["cooking".into(), "astrology".into()]);
        assert_eq!(context.domains_loaded, ["general", "cooking"]);
        assert_eq!(context.vocabulary["rpe"], "rice per eater");
        assert!(
            context
                .evaluation_rules
                .contains(&"Taste first.".to_owned())
        );
        assert_eq!(context.notes, ["there is no domain `astrology`: ignored"]);
        assert!(context.expertise.starts_with("## general\n"));
    }

    #[test]
    fn a_broken_domain_is_named_and_the_others_work() {
        let folder = tempfile::tempdir().unwrap();
        for (name, file, text, why) in [
            ("one", "domain.toml", "descriptoin = 'x'", "domain.toml"),
            ("two", "schema.json", "{", "domain.toml"),
        ] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join(file), text).unwrap();
            let domains = Domains::load(folder.path());
            let fault = domains
                .faults
                .iter()
                .find(|fault| fault.contains(name))
                .unwrap();
            assert!(fault.contains(why), "{fault}");
            assert!(domains.get("strength").is_some());
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_named() {
        let schema = json!({ "type": "object", "additionalProperties": false, "properties": {
            "energy": { "type": "integer" }, "mood": { "type": "string" } } });
        let (kept, unfit) = fitting(&schema, &json!({ "energy": "low", "mood": "fine", "x": 1 }));
        assert_eq!(kept.unwrap(), json!({ "mood": "fine" }));
        assert_eq!(unfit, ["energy", "x"]);
        assert_eq!(fitting(&schema, &json!([])).0, None);
    }
}
