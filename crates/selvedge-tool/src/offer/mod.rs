//! Tools on offer: a run may have them, and does not begin with them.
//!
//! Every request to a model carries the schemas of its tools. An agent that uses
//! five of forty would pay for forty with every turn, so it is told of the others in
//! a line each, and asks for what it needs: by name, by bundle, or by what it wants
//! to do.

mod rank;

use serde::{Deserialize, Serialize};

pub(crate) use rank::rank;

/// A tool that can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// What it is for, in words for a model.
    pub description: String,
    /// The group of tools it came with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// These.
    Tools(Vec<String>),
    /// All that came together.
    Bundle(String),
    /// Whatever fits these words.
    Intent(String),
}

/// What a wish comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fulfilled {
    /// The names of those that are loaded.
    pub(crate) loaded: Vec<String>,
    /// The names of others that might have been meant.
    pub(crate) also: Vec<String>,
}

/// So many can be asked for by name: who wants more does not know what it wants.
const NAMES_MAX: usize = 10;
/// A bundle larger than this would be what lazy loading is there to avoid.
const BUNDLE_MAX: usize = 25;
/// So many are loaded for an intent, and so many more are mentioned.
const INTENT_MAX: usize = 5;
const ALSO_MAX: usize = 5;
/// What scores less than this part of the best is mentioned and not loaded.
const SCORE_PART_MIN: f64 = 0.5;

/// What `wish` comes to among `offers`, or why nothing is loaded.
pub(crate) fn fulfil(offers: &[Offer], wish: &Wish) -> Result<Fulfilled, String> {
    match wish {
        Wish::Tools(names) => by_name(offers, names),
        Wish::Bundle(bundle) => by_bundle(offers, bundle),
        Wish::Intent(intent) => by_intent(offers, intent),
    }
}

fn by_name(offers: &[Offer], names: &[String]) -> Result<Fulfilled, String> {
    if names.len() > NAMES_MAX {
        return Err(format!(
            "{} tools are too many at once; name at most {NAMES_MAX}, those that you need next",
            names.len()
        ));
    }
    let mut loaded: Vec<String> = Vec::new();
    for name in names {
        if !offers.iter().any(|offer| offer.name == *name) {
            let known = offers.iter().map(|offer| offer.name.as_str());
            return Err(unknown("tool", name, known));
        }
        if !loaded.contains(name) {
            loaded.push(name.clone());
        }
    }
    Ok(Fulfilled {
        loaded,
        ..Fulfilled::default()
    })
}

fn by_bundle(offers: &[Offer], bundle: &str) -> Result<Fulfilled, String> {
    let is_in = |offer: &&Offer| offer.bundle.as_deref() == Some(bundle);
    let loaded: Vec<String> = offers
        .iter()
        .filter(is_in)
        .map(|offer| offer.name.clone())
        .collect();
    match loaded.len() {
        0 => {
            let known = offers.iter().filter_map(|offer| offer.bundle.as_deref());
            Err(unknown("bundle", bundle, known))
        }
        1..=BUNDLE_MAX => Ok(Fulfilled {
            loaded,
            ..Fulfilled::default()
        }),
        many => Err(format!(
            "bundle `{bundle}` has {many} tools, and at most {BUNDLE_MAX} are loaded at once; \
             name those that you need, or say what you want to do"
        )),
    }
}

fn by_intent(offers: &[Offer], intent: &str) -> Result<Fulfilled, String> {
    let ranked = rank(intent, offers);
    let Some((_, best)) = ranked.first().copied() else {
        return Err(format!(
            "no tool on offer fits `{}`; use other words, or name tools from the list",
            crate::policy::compact(intent)
        ));
    };
    let name = |(at, _): &(usize, f64)| offers[*at].name.clone();
    let is_near = |(_, score): &&(usize, f64)| *score >= best * SCORE_PART_MIN;
    let near = ranked.iter().take_while(is_near).count().min(INTENT_MAX);
    Ok(Fulfilled {
        loaded: ranked[..near].iter().map(name).collect(),
        also: ranked[near..].iter().take(ALSO_MAX).map(name).collect(),
    })
}

/// That there is no such thing, with those there are or the nearest of them.
fn unknown<'a>(what: &str, wanted: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    let like = |name: &str| strsim::jaro_winkler(&wanted.to_lowercase(), name);
    let near = known.iter().max_by(|a, b| like(a).total_cmp(&like(b)));
    let words = match near {
        None => "there are none".to_owned(),
        Some(near) if like(near) > 0.7 => format!("did you mean `{near}`?"),
        Some(_) => {
            let shown: Vec<String> = known.iter().take(20).map(|n| format!("`{n}`")).collect();
            format!("there are {}", shown.join(", "))
        }
    };
    let wanted = wanted.escape_debug();
    format!("there is no {what} `{wanted}` on offer; {words}; nothing was loaded")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers() -> Vec<Offer> {
        let offer = |name: &str, description: &str, bundle: Option<&str>| Offer {
            name: name.into(),
            description: description.into(),
            bundle: bundle.map(str::to_owned),
        };
        vec![
            offer("discover_tools", "Find out which linter is used.", None),
            offer("git_blame", "Show who changed each line.", Some("git")),
            offer("git_log", "List commits, the newest first.", Some("git")),
        ]
    }

    fn check(wish: Wish, expected: Result<(&[&str], &[&str]), &str>) {
        let fulfilled = fulfil(&offers(), &wish);
        match (fulfilled, expected) {
            (Ok(fulfilled), Ok((loaded, also))) => {
                assert_eq!(fulfilled.loaded, loaded, "{wish:?}");
                assert_eq!(fulfilled.also, also, "{wish:?}");
            }
            (Err(why), Err(words)) => assert!(why.contains(words), "{why}"),
            (fulfilled, _) => panic!("{wish:?}: {fulfilled:?}"),
        }
    }

    fn names(names: &[&str]) -> Wish {
        Wish::Tools(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn tools_are_loaded_by_name_by_bundle_and_by_intent() {
        check(names(&["git_log", "git_log"]), Ok((&["git_log"], &[])));
        check(
            Wish::Bundle("git".into()),
            Ok((&["git_blame", "git_log"], &[])),
        );
        check(
            Wish::Intent("see the newest commits".into()),
            Ok((&["git_log"], &[])),
        );
    }

    #[test]
    fn an_unknown_name_an_unknown_bundle_and_too_many_load_nothing() {
        check(
            names(&["git_log", "git_lot"]),
            Err("no tool `git_lot` on offer; did you mean `git_log`?"),
        );
        check(Wish::Bundle("gitt".into()), Err("did you mean `git`?"));
        check(
            names(&["git_log"; 11]),
            Err("11 tools are too many at once; name at most 10"),
        );
        check(Wish::Intent("xyzzy".into()), Err("no tool on offer fits"));
        check(Wish::Intent("the of and".into()), Err("no tool on offer"));
        let many: Vec<Offer> = (0..26)
            .map(|n| Offer {
                name: format!("t{n}"),
                description: String::new(),
                bundle: Some("big".into()),
            })
            .collect();
        let why = fulfil(&many, &Wish::Bundle("big".into())).unwrap_err();
        assert!(why.contains("26 tools, and at most 25"), "{why}");
    }
}
