//! What there is to know: domains, and the types of nodes and edges in them.
//!
//! The numbers are stored, so they are promises. Each domain has its own range, which
//! makes a type that does not belong to its domain visible at a glance. An edge is
//! stored in one direction only: its reverse is a question, not a second row that could
//! disagree with the first.

use serde::{Deserialize, Serialize};

/// Makes an enumeration with a stored number and a name for each member.
macro_rules! stored {
    (
        $(#[$about:meta])*
        $name:ident { $($(#[$doc:meta])* $member:ident = $code:literal $word:literal),+ $(,)? }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$doc])* $member = $code),+
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$member),+];

            /// The number it is stored under.
            pub fn code(self) -> i64 {
                self as i64
            }

            /// The one that is stored under a number.
            pub fn from_code(code: i64) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.code() == code)
            }

            /// Its name, as it is written in requests and answers.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$member => $word),+
                }
            }

            /// The one with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }
    };
}

stored! {
    /// What kind of knowledge it is.
    Domain {
        /// What exists: source code.
        Code = 0 "code",
        /// What was done: history.
        History = 1 "history",
        /// What could be done: documents.
        Academic = 2 "academic",
    }
}

stored! {
    /// What a node is.
    NodeType {
        /// A file.
        File = 0 "file",
        /// A package.
        Package = 1 "package",
        /// A function.
        Function = 2 "function",
        /// A function that belongs to a type.
        Method = 3 "method",
        /// A structure.
        Struct = 4 "struct",
        /// An interface.
        Interface = 5 "interface",
        /// A variable.
        Variable = 6 "variable",
        /// A constant.
        Constant = 7 "constant",
        /// An import.
        Import = 8 "import",
        /// A class.
        Class = 9 "class",
        /// A trait.
        Trait = 10 "trait",
        /// An enumeration.
        Enum = 11 "enum",
        /// Another name of a type.
        TypeAlias = 12 "type_alias",
        /// A module.
        Module = 13 "module",
        /// A piece of a file in no language that is known here.
        Passage = 14 "passage",
        /// A macro.
        Macro = 15 "macro",
        /// An entry of the chronicle.
        Entry = 100 "entry",
        /// A session.
        Session = 101 "session",
        /// A piece of work in several steps.
        Workflow = 102 "workflow",
        /// What became of it.
        Outcome = 103 "outcome",
        /// A decision.
        Decision = 104 "decision",
        /// A task that was done.
        TaskCompletion = 105 "task_completion",
        /// Something that did not work.
        Failure = 106 "failure",
        /// A way of doing things that came up more than once.
        Pattern = 107 "pattern",
        /// A change of shape.
        Refactoring = 108 "refactoring",
        /// A repair.
        BugFix = 109 "bug_fix",
        /// Something new.
        Feature = 110 "feature",
        /// A turn of a conversation.
        Message = 111 "message",
        /// A paper.
        Paper = 200 "paper",
        /// Documentation.
        Documentation = 201 "documentation",
        /// Advice that is widely agreed upon.
        BestPractice = 202 "best_practice",
        /// A standard.
        Rfc = 203 "rfc",
        /// An answer on a forum.
        Stackoverflow = 204 "stackoverflow",
        /// A post in somebody's blog.
        BlogPost = 205 "blog_post",
        /// A tutorial.
        Tutorial = 206 "tutorial",
    }
}

impl NodeType {
    /// The domain it belongs to.
    pub fn domain(self) -> Domain {
        match self.code() {
            0..100 => Domain::Code,
            100..200 => Domain::History,
            _ => Domain::Academic,
        }
    }

    /// Whether it is something that code defines and refers to by name.
    pub fn is_definition(self) -> bool {
        use NodeType as T;
        matches!(
            self,
            T::Function
                | T::Method
                | T::Struct
                | T::Interface
                | T::Constant
                | T::Variable
                | T::Class
                | T::Trait
                | T::Enum
                | T::TypeAlias
                | T::Module
                | T::Macro
        )
    }
}

stored! {
    /// How two nodes are related.
    EdgeType {
        /// Code calls code. Found by name, so approximate.
        Calls = 0 "calls",
        /// A file imports a symbol or a file.
        Imports = 2 "imports",
        /// A type implements an interface.
        Implements = 4 "implements",
        /// A type embeds another.
        Embeds = 6 "embeds",
        /// A type has a field of another type.
        HasField = 7 "has_field",
        /// A type has a method.
        HasMethod = 8 "has_method",
        /// A file or a type defines a symbol; a document has a section.
        Defines = 9 "defines",
        /// A function returns a type.
        Returns = 11 "returns",
        /// A function takes a type.
        Receives = 12 "receives",
        /// A type extends another.
        Extends = 13 "extends",
        /// An outcome comes from a piece of work.
        ProducedBy = 50 "produced_by",
        /// A piece of work led to an outcome.
        ResultedIn = 51 "resulted_in",
        /// Two entries are alike.
        SimilarTo = 52 "similar_to",
        /// One came after the other.
        FollowedBy = 53 "followed_by",
        /// The newer takes the place of the older.
        Supersedes = 54 "supersedes",
        /// History changed code.
        Modified = 100 "modified",
        /// History made code.
        Created = 101 "created",
        /// History removed code.
        Deleted = 102 "deleted",
        /// A decision rests on a document.
        BasedOn = 103 "based_on",
        /// One names the other.
        References = 104 "references",
        /// A document confirms a decision.
        ValidatedBy = 105 "validated_by",
        /// A document describes code.
        Documents = 106 "documents",
        /// Code uses a library that a document describes.
        UsesLibrary = 107 "uses_library",
        /// Code follows a pattern that a document describes.
        ImplementsPattern = 108 "implements_pattern",
        /// Code is named by an entry of history.
        ReferencedIn = 109 "referenced_in",
        /// History was inspired by a document.
        InspiredBy = 110 "inspired_by",
        /// A document cites another.
        Cites = 150 "cites",
        /// Two documents are about the same.
        RelatedTo = 151 "related_to",
    }
}

stored! {
    /// What a node was checked against.
    Verification {
        /// Nothing.
        Unchecked = 0 "none",
        /// The code.
        AgainstCode = 1 "against_code",
        /// History.
        AgainstHistory = 2 "against_history",
        /// A person vouched for it.
        ByUser = 3 "by_user",
    }
}

stored! {
    /// Where a piece of knowledge comes from.
    SourceType {
        /// It was read in code.
        Code = 0 "code",
        /// It was looked up in history.
        History = 1 "history",
        /// It was read in a document.
        Academic = 2 "academic",
        /// A model inferred it.
        LlmInference = 3 "llm_inference",
        /// A person said it.
        UserProvided = 4 "user_provided",
    }
}

stored! {
    /// How two nodes contradict one another.
    ConflictKind {
        /// The same subject at two times that are far apart.
        Temporal = 0 "temporal",
        /// History says what code does not.
        SourceMismatch = 1 "source_mismatch",
        /// Two statements that cannot both hold.
        Semantic = 2 "semantic",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_and_every_name_finds_its_member_again() {
        for one in NodeType::ALL {
            assert_eq!(NodeType::from_code(one.code()), Some(*one));
            assert_eq!(NodeType::named(one.name()), Some(*one));
        }
        for one in EdgeType::ALL {
            assert_eq!(EdgeType::from_code(one.code()), Some(*one));
            assert_eq!(EdgeType::named(one.name()), Some(*one));
        }
        assert_eq!(EdgeType::from_code(1), None, "no reverse edge is stored");
    }

    #[test]
    fn a_type_says_its_domain() {
        assert_eq!(NodeType::Macro.domain(), Domain::Code);
        assert_eq!(NodeType::BugFix.domain(), Domain::History);
        assert_eq!(NodeType::Rfc.domain(), Domain::Academic);
    }
}
