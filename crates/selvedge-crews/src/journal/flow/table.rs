//! The states of the conversation, and what may follow each: the one table that the
//! machine, the drawing and the tests share.

use selvedge_flow::{Row, State, Table, Transition};

use super::JournalFlow;

/// How often an answer that failed its evaluation is tried again.
pub const RETRIES_MAX: u32 = 2;
/// How often is planned anew because something was missing.
pub const REPLANS_MAX: u32 = 2;
/// More domains than this are not loaded while a question is answered.
const EXPANSIONS_MAX: u32 = 12;

/// A state of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the table says what each is for")]
pub enum JournalState {
    Route,
    BuildContext,
    Plan,
    Retrieve,
    Analyze,
    ExpandDomain,
    Clarify,
    WaitUser,
    Synthesize,
    Evaluate,
    Parse,
    Store,
    Observe,
    Complete,
}

use JournalState::{
    Analyze, BuildContext, Clarify, Complete, Evaluate, ExpandDomain, Observe, Parse, Plan,
    Retrieve, Route, Store, Synthesize, WaitUser,
};

impl State for JournalState {
    fn name(self) -> &'static str {
        match self {
            Route => "route",
            BuildContext => "build_context",
            Plan => "plan",
            Retrieve => "retrieve",
            Analyze => "analyze",
            ExpandDomain => "expand_domain",
            Clarify => "clarify",
            WaitUser => "wait_user",
            Synthesize => "synthesize",
            Evaluate => "evaluate",
            Parse => "parse",
            Store => "store",
            Observe => "observe",
            Complete => "complete",
        }
    }
}

/// Everything but the last two states.
const ALL_WORK: &[JournalState] = &[
    Route,
    BuildContext,
    Plan,
    Retrieve,
    Analyze,
    ExpandDomain,
    Clarify,
    WaitUser,
    Synthesize,
    Evaluate,
    Parse,
    Store,
];

const fn row(state: JournalState, purpose: &'static str) -> Row<JournalState> {
    Row {
        state,
        purpose,
        waits_for: &[],
        forks: false,
        human: false,
    }
}

const fn to(
    from: JournalState,
    to: JournalState,
    when: &'static str,
    guard: fn(&JournalFlow) -> bool,
) -> Transition<JournalFlow> {
    Transition {
        from,
        to,
        when,
        guard,
        limit: None,
    }
}

const fn at_most(limit: u32, transition: Transition<JournalFlow>) -> Transition<JournalFlow> {
    Transition {
        limit: Some(limit),
        ..transition
    }
}

const fn always(_: &JournalFlow) -> bool {
    true
}

/// The table.
pub static TABLE: Table<JournalFlow> = Table {
    start: Route,
    end: Complete,
    rows: &[
        row(Route, "what kind of input it is, and which domains fit"),
        Row {
            forks: true,
            ..row(BuildContext, "the knowledge of the domains, combined")
        },
        row(Plan, "what to search, load or ask"),
        Row {
            // So that an answer can use the note that was just logged.
            waits_for: &[Parse, Store],
            ..row(Retrieve, "entries from the notes, and numbers")
        },
        row(Analyze, "what they say, and whether it is enough"),
        row(ExpandDomain, "another domain is needed"),
        row(Clarify, "what only the user can say"),
        Row {
            human: true,
            ..row(WaitUser, "the user's answer, whenever it comes")
        },
        row(Synthesize, "the answer"),
        row(Evaluate, "whether the answer may be given"),
        row(Parse, "structured data from the note"),
        row(Store, "the note, written down"),
        Row {
            waits_for: ALL_WORK,
            ..row(Observe, "what is worth remembering")
        },
        row(Complete, "the end"),
    ],
    transitions: &[
        to(Route, BuildContext, "always", always),
        to(BuildContext, Plan, "it asks something", JournalFlow::asks),
        to(
            BuildContext,
            Parse,
            "it records something that is not recorded yet",
            JournalFlow::records,
        ),
        at_most(
            EXPANSIONS_MAX,
            to(
                Plan,
                ExpandDomain,
                "the plan wants a domain that is not loaded",
                JournalFlow::plan_expands,
            ),
        ),
        to(
            Plan,
            Clarify,
            "only the user knows, or it was searched and not found",
            JournalFlow::may_clarify,
        ),
        to(
            Plan,
            Synthesize,
            "what was found is enough",
            JournalFlow::plan_is_enough,
        ),
        to(Plan, Retrieve, "otherwise: search first", always),
        to(Retrieve, Analyze, "always", always),
        to(
            Analyze,
            Synthesize,
            "sufficient",
            JournalFlow::is_sufficient,
        ),
        at_most(
            EXPANSIONS_MAX,
            to(
                Analyze,
                ExpandDomain,
                "a gap lies outside of the loaded domains",
                JournalFlow::gaps_expand,
            ),
        ),
        at_most(REPLANS_MAX, to(Analyze, Plan, "insufficient", always)),
        to(
            Analyze,
            Synthesize,
            "insufficient, and planned anew often enough: partial",
            always,
        ),
        to(ExpandDomain, BuildContext, "always", always),
        to(
            Clarify,
            WaitUser,
            "there is something to ask",
            JournalFlow::has_questions,
        ),
        to(Clarify, Synthesize, "nothing is left to ask", always),
        to(
            WaitUser,
            Store,
            "the entry to be corrected was named",
            JournalFlow::is_target_named,
        ),
        to(
            WaitUser,
            Observe,
            "no entry was named: nothing is changed",
            JournalFlow::corrects,
        ),
        to(WaitUser, Synthesize, "declined", JournalFlow::is_declined),
        to(WaitUser, Analyze, "answered", always),
        to(Synthesize, Evaluate, "always", always),
        to(Evaluate, Observe, "pass", JournalFlow::passes),
        at_most(
            RETRIES_MAX,
            to(
                Evaluate,
                ExpandDomain,
                "fail, and a gap lies outside of the loaded domains",
                JournalFlow::retry_expands,
            ),
        ),
        at_most(
            RETRIES_MAX,
            to(Evaluate, Plan, "fail, retries left", JournalFlow::may_retry),
        ),
        to(Evaluate, Observe, "fail, retries used up: partial", always),
        to(
            Parse,
            WaitUser,
            "more than one entry may be meant",
            JournalFlow::is_target_unclear,
        ),
        to(Parse, Store, "otherwise", always),
        to(Store, Observe, "always", always),
        to(Observe, Complete, "always", always),
    ],
};
