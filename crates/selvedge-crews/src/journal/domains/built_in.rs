//! The domains of Swealog, which come with the program.

/// A domain's files, by name.
type Files = (&'static str, [(&'static str, &'static str); 6]);

macro_rules! domain {
    ($name:literal) => {
        (
            $name,
            [
                (
                    "domain.toml",
                    include_str!(concat!(
                        "../../../crews/journal/domains/",
                        $name,
                        "/domain.toml"
                    )),
                ),
                (
                    "schema.json",
                    include_str!(concat!(
                        "../../../crews/journal/domains/",
                        $name,
                        "/schema.json"
                    )),
                ),
                (
                    "vocabulary.toml",
                    include_str!(concat!(
                        "../../../crews/journal/domains/",
                        $name,
                        "/vocabulary.toml"
                    )),
                ),
                (
                    "expertise.md",
                    include_str!(concat!(
                        "../../../crews/journal/domains/",
                        $name,
                        "/expertise.md"
                    )),
                ),
                (
                    "rules.md",
                    include_str!(concat!(
                        "../../../crews/journal/domains/",
                        $name,
                        "/rules.md"
                    )),
                ),
                (
                    "guidance.md",
                    include_str!(concat!(
                        "../../../crews/journal/domains/",
                        $name,
                        "/guidance.md"
                    )),
                ),
            ],
        )
    };
}

/// Those that come with the program, the base first.
pub(super) const ALL: [Files; 5] = [
    domain!("general"),
    domain!("strength"),
    domain!("running"),
    domain!("swimming"),
    domain!("nutrition"),
];
