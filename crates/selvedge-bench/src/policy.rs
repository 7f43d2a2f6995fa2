//! What it costs to decide about a command.

use std::path::PathBuf;
use std::time::Instant;

use selvedge_tool::{Act, Craft, Deed, Pattern, Policy, Rules, Site, Source, World, judge};

use crate::figures::{Figures, median};

const ROUNDS: usize = 2000;

/// Commands as agents write them, from a word to a script.
const COMMANDS: [(&str, &str); 3] = [
    ("a plain command", "git status --short"),
    (
        "a command of eight parts",
        "cd sub && RUST_BACKTRACE=1 cargo test --workspace 2>&1 | tail -50; \
         for f in *.rs; do wc -l \"$f\"; done; cat <<'E' > notes\nhello\nE\n\
         rg -n 'fn main' src | head; [ -d out ] || mkdir out; timeout 60 make check",
    ),
    (
        "a command that quotes others",
        "sh -c 'find . -name \"*.rs\" -exec sh -c \"grep -n main {}\" \\;' && echo $(date)",
    ),
];

/// Measures decisions.
pub fn measure(figures: &mut Figures) {
    let deny: Vec<Pattern> = (0..100)
        .map(|n| Pattern::new(format!("deny{n} *")))
        .collect();
    let rules = Rules {
        deny,
        ..Rules::default()
    };
    let policy = Policy {
        crafts: vec![Craft::Engineer],
        fenced: true,
        ..Policy::default()
    };
    let policy = policy.with(Source::User, rules);
    let site = Site::of(&PathBuf::from("/srv/app"));
    for (name, command) in COMMANDS {
        let act = Act {
            tool: "run_command",
            world: World::Runs,
            deed: Deed::Command {
                command: command.to_owned(),
                cwd: String::new(),
            },
        };
        let mut costs: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let begun = Instant::now();
                std::hint::black_box(judge(&policy, &site, &act));
                begun.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        let figure = format!("deciding about {name}, 100 rules");
        figures.add(figure, median(&mut costs), "ms", Some(1.0));
    }
}
