//! When it is bubblewrap that puts the fence up.

use selvedge_tool::Fence;

use crate::ground::{Ground, SECRET, is_root};

/// A machine that grants namespaces to bubblewrap alone, as some do to all but a few
/// programs: here, one with root's rights, in a view of the files that only this test has.
#[test]
fn where_only_bubblewrap_may_make_namespaces_it_puts_the_fence_up() {
    if !is_root() {
        eprintln!("skipped: only root can lay out such a machine");
        return;
    }
    if crate::ground::fenced().fence != Fence::Bubblewrap {
        return;
    }
    let mut ground = Ground::new().with_namespaces_for_bubblewrap_alone();
    ground.sandbox.fence = Fence::Own;
    let answer = ground.run("touch ran");
    assert!(answer.is_error && !ground.at("app/ran").exists());
    let words = "making namespaces failed";
    assert!(answer.text.contains(words), "{}", answer.text);
    ground.sandbox.fence = Fence::Auto;
    let secret = ground.at("outside/secret").display().to_string();
    let attack = format!("echo $$; touch ran; cat {secret}; echo changed > {secret}");
    let answer = ground.run(&attack);
    let number = answer
        .text
        .lines()
        .next()
        .and_then(|line| line.parse().ok());
    assert!(
        number.is_some_and(|n: u32| n < 10),
        "its own world: {}",
        answer.text
    );
    assert!(!answer.text.contains(SECRET), "{}", answer.text);
    assert_eq!(ground.read("outside/secret"), SECRET);
    assert!(ground.at("app/ran").exists());
}
