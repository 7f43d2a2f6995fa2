//! Hooks in their order, each seeing what those before it made of a call.

use std::sync::Arc;

use serde_json::Value;

use super::hooked::{Done, Hooked, Instead};
use super::reaction::{Moment, Occasion, Reaction, Seen};
use super::{Hook, Setting};

/// The hooks of a process.
#[derive(Clone, Default)]
pub struct Hooks {
    list: Vec<Arc<dyn Hook>>,
}

impl Hooks {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one, behind those of the same priority.
    pub fn with(mut self, hook: Arc<dyn Hook>) -> Self {
        let at = |earlier: &Arc<dyn Hook>| earlier.priority() <= hook.priority();
        let at = self.list.partition_point(at);
        self.list.insert(at, hook);
        self
    }

    /// Whether any is called at `moment` for `tool`.
    pub fn has(&self, moment: Moment, tool: Option<&str>) -> bool {
        self.called(moment, tool).next().is_some()
    }

    /// Calls those that are wanted, until one answers instead or stops the call.
    /// `occasion` has what became of arguments and result in the end.
    pub async fn call(&self, setting: Setting<'_>, occasion: &mut Occasion) -> Hooked {
        let mut hooked = Hooked::default();
        let hooks: Vec<_> = self
            .called(occasion.event, occasion.tool.as_deref())
            .cloned()
            .collect();
        for hook in hooks {
            let reaction = hook.react(setting, occasion).await;
            let reaction = reaction.and_then(|r| match occasion.event.misplaced(&r) {
                Some(field) => Err(format!("`{field}` means nothing at this moment")),
                None => Ok(r),
            });
            match reaction {
                Ok(reaction) => apply(hook.name(), reaction, occasion, &mut hooked),
                Err(why) if hook.is_required() => {
                    let why = format!("the hook `{}` is required and failed: {why}", hook.name());
                    hooked.note(hook.name(), Done::Stopped, why.as_str());
                    hooked.instead = Some(Instead::Stop(why));
                }
                Err(why) => {
                    tracing::warn!(hook = hook.name(), %why, "a hook failed");
                    hooked.note(hook.name(), Done::Failed, why);
                }
            }
            if hooked.instead.is_some() {
                break;
            }
        }
        hooked
    }

    fn called<'a>(
        &'a self,
        moment: Moment,
        tool: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<dyn Hook>> {
        self.list.iter().filter(move |hook| {
            let tools = hook.tools();
            let is_meant = |name: &str| tools.iter().any(|tool| tool == name);
            hook.moment() == moment && (tools.is_empty() || tool.is_some_and(is_meant))
        })
    }
}

fn apply(name: &str, reaction: Reaction, occasion: &mut Occasion, hooked: &mut Hooked) {
    let Reaction {
        arguments,
        text,
        warn,
        answer,
        stop,
    } = reaction;
    if let Some(arguments) = arguments.filter(|new| Some(new) != occasion.arguments.as_ref()) {
        hooked.note(name, Done::Changed, "");
        hooked.arguments = Some(arguments.to_string());
        occasion.arguments = Some(arguments);
    }
    if let Some(text) = text {
        hooked.note(name, Done::Changed, "");
        occasion.result.get_or_insert_with(Seen::default).text = text;
    }
    if let Some(warn) = warn {
        hooked.note(name, Done::Warned, warn.as_str());
        hooked.notes.push(warn);
    }
    // Of two that exclude each other the stricter holds.
    if let Some(stop) = stop {
        hooked.note(name, Done::Stopped, stop.as_str());
        let why = format!("the hook `{name}` says: {}", stop.trim());
        hooked.instead = Some(Instead::Stop(why));
    } else if let Some(answer) = answer {
        hooked.note(name, Done::Answered, "");
        hooked.instead = Some(Instead::Answer(answer));
    }
}

impl Occasion {
    /// The arguments of a call, as far as they are JSON.
    pub(crate) fn read_arguments(text: &str) -> Option<Value> {
        match text.trim().is_empty() {
            true => Some(Value::Object(serde_json::Map::new())),
            false => serde_json::from_str(text).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use selvedge_tool::Workspace;
    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    struct Fixed {
        name: &'static str,
        priority: u8,
        tools: Vec<String>,
        is_required: bool,
        reaction: Result<Reaction, String>,
    }

    fn fixed(name: &'static str, priority: u8, reaction: Reaction) -> Fixed {
        Fixed {
            name,
            priority,
            tools: Vec::new(),
            is_required: false,
            reaction: Ok(reaction),
        }
    }

    #[async_trait]
    impl Hook for Fixed {
        fn name(&self) -> &str {
            self.name
        }
        fn moment(&self) -> Moment {
            Moment::PreTool
        }
        fn tools(&self) -> &[String] {
            &self.tools
        }
        fn priority(&self) -> u8 {
            self.priority
        }
        fn is_required(&self) -> bool {
            self.is_required
        }
        async fn react(&self, _: Setting<'_>, seen: &Occasion) -> Result<Reaction, String> {
            let mut reaction = self.reaction.clone()?;
            if let (Some(new), Some(old)) = (&mut reaction.arguments, &seen.arguments) {
                new["before"] = old.clone();
            }
            Ok(reaction)
        }
    }

    async fn call(hooks: Vec<Fixed>) -> Hooked {
        let scratch = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(scratch.path()).unwrap();
        let cancel = CancellationToken::new();
        let setting = Setting {
            workspace: &workspace,
            cancel: &cancel,
        };
        let mut occasion = Occasion {
            event: Moment::PreTool,
            session: "s".into(),
            call: "t0.0".into(),
            agent: "engineer".into(),
            workspace: "/work".into(),
            tool: Some("run_command".into()),
            arguments: Some(json!({"command": "ls"})),
            model: None,
            result: None,
        };
        let hooks = hooks
            .into_iter()
            .fold(Hooks::new(), |hooks, hook| hooks.with(Arc::new(hook)));
        hooks.call(setting, &mut occasion).await
    }

    fn names(hooked: &Hooked) -> Vec<&str> {
        hooked.did.iter().map(|did| did.hook.as_str()).collect()
    }

    #[tokio::test]
    async fn hooks_are_called_by_priority_and_equals_in_their_order() {
        let word = |name, priority| fixed(name, priority, Reaction::warn(name));
        let hooked = call(vec![
            word("last", 100),
            word("one", 50),
            word("first", 0),
            word("two", 50),
        ])
        .await;
        assert_eq!(names(&hooked), ["first", "one", "two", "last"]);
        assert_eq!(hooked.notes, ["first", "one", "two", "last"]);
    }

    #[tokio::test]
    async fn each_hook_sees_what_those_before_it_changed() {
        let change = |n| Reaction {
            arguments: Some(json!({"n": n})),
            ..Reaction::default()
        };
        let hooked = call(vec![fixed("b", 2, change(2)), fixed("a", 1, change(1))]).await;
        let arguments: Value = serde_json::from_str(&hooked.arguments.unwrap()).unwrap();
        assert_eq!(
            arguments,
            json!({"n": 2, "before": {"n": 1, "before": {"command": "ls"}}})
        );
    }

    #[tokio::test]
    async fn after_a_stop_nobody_else_is_called() {
        let hooked = call(vec![
            fixed("gate", 10, Reaction::stop("not on a Friday")),
            fixed("later", 20, Reaction::warn("unheard")),
        ])
        .await;
        assert_eq!(names(&hooked), ["gate"]);
        let why = "the hook `gate` says: not on a Friday";
        assert_eq!(hooked.instead, Some(Instead::Stop(why.into())));
    }

    #[tokio::test]
    async fn a_hook_that_fails_stops_the_call_only_if_it_is_required() {
        let failing = |is_required| Fixed {
            is_required,
            reaction: Err("no luck".into()),
            ..fixed("x", 50, Reaction::default())
        };
        let hooked = call(vec![failing(false), fixed("y", 50, Reaction::warn("go"))]).await;
        assert_eq!(names(&hooked), ["x", "y"]);
        assert_eq!(hooked.instead, None);
        let hooked = call(vec![failing(true), fixed("y", 50, Reaction::warn("go"))]).await;
        assert_eq!(names(&hooked), ["x"]);
        assert!(matches!(hooked.instead, Some(Instead::Stop(why)) if why.contains("no luck")));
    }

    #[tokio::test]
    async fn a_hook_for_another_tool_is_not_called_and_a_misplaced_word_is_a_failure() {
        let other = Fixed {
            tools: vec!["write_file".into()],
            ..fixed("other", 50, Reaction::stop("no"))
        };
        assert!(call(vec![other]).await.is_empty());
        let misplaced = Reaction {
            text: Some("x".into()),
            ..Reaction::default()
        };
        let hooked = call(vec![fixed("odd", 50, misplaced)]).await;
        assert_eq!(hooked.did[0].did, Done::Failed);
        assert!(hooked.did[0].says.contains("`text`"), "{hooked:?}");
    }
}
