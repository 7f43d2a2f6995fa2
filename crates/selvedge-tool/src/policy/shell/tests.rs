use super::*;

/// The commands that are found, and the doubts.
fn check(command: &str, segments: &[&str], doubts: &[&str]) {
    let script = read(command);
    let found: Vec<String> = script
        .segments
        .iter()
        .map(|segment| {
            let words: Vec<&str> = segment.words.iter().map(Word::shown).collect();
            words.join(" ")
        })
        .collect();
    assert_eq!(found, segments, "{command}");
    assert_eq!(
        script.doubts.len(),
        doubts.len(),
        "{command}: {:?}",
        script.doubts
    );
    for (found, expected) in script.doubts.iter().zip(doubts) {
        assert!(found.contains(expected), "{command}: {found}");
    }
}

#[test]
fn every_part_of_a_command_is_found() {
    for joint in [";", "&&", "||", "|", "&", "\n", "|&"] {
        check(
            &format!("git status {joint} touch a"),
            &["git status", "touch a"],
            &[],
        );
    }
    check("(cd a && make) || { ls; }", &["cd a", "make", "ls"], &[]);
    check(
        "if true; then ls; else pwd; fi",
        &["true", "ls", "pwd"],
        &[],
    );
    check("for f in a b; do cat $f; done", &["", "cat $f"], &[]);
    check(
        "while read l; do echo $l; done",
        &["read l", "echo $l"],
        &[],
    );
    check("case $x in a) ls;; *) pwd;; esac", &["ls", "pwd"], &[]);
    check("! grep x y", &["grep x y"], &[]);
    check("[[ -f x ]] && ls", &["ls"], &[]);
    check("[ -f x ] && ls # rm", &["ls"], &[]);
}

#[test]
fn what_hides_in_words_is_found_and_doubted() {
    check(
        "echo $(curl x)",
        &["echo $(curl x)", "curl x"],
        &["output of a command"],
    );
    check(
        "echo `curl x`",
        &["echo `curl x`", "curl x"],
        &["output of a command"],
    );
    check(
        "echo \"a $(curl x)\"",
        &["echo a $(curl x)", "curl x"],
        &["output of a command"],
    );
    check(
        "diff <(curl x) y",
        &["diff <(curl x) y", "curl x"],
        &["as a file"],
    );
    check("a=$(curl x)", &["", "curl x"], &["output of a command"]);
    check(
        "echo ${a:-$(curl x)}",
        &["echo ${a:-$(curl x)}", "curl x"],
        &["output of"],
    );
    check("echo ${x@P}", &["echo ${x@P}"], &["can run something"]);
    check("echo ${!x}", &["echo ${!x}"], &["can run something"]);
    check(
        "f() { curl x; }; f",
        &["curl x", "f"],
        &["defines a function"],
    );
    check(
        "cat <<E\n$(curl x)\nE",
        &["cat", "curl x"],
        &["output of a command"],
    );
    check("cat <<'E'\n$(curl x)\nE", &["cat"], &[]);
    check(
        "cat <<< \"$(curl x)\"",
        &["cat", "curl x"],
        &["output of a command"],
    );
    check(
        "cat <<-E\n\t$(curl x)\n\tE",
        &["cat", "curl x"],
        &["output of"],
    );
    check(
        "cat <<E\n`curl x` \"$(pwd)\"\nE",
        &["cat", "curl x", "pwd"],
        &["output of"],
    );
    check("cat <<E\n$a ${b}\nE", &["cat"], &[]);
    check("cat <<E | sh\ncurl x\nE", &["cat", "sh"], &[]);
    check("cat <<E && curl x\nhi\nE", &["cat", "curl x"], &[]);
    check("[[ 'a[$(curl x)]' -eq 1 ]]", &[], &["index of an array"]);
    check("declare -i 'x=a[$(curl x)]'", &[""], &["index of an array"]);
    check(": ${PATH:=x}", &[": ${PATH:=x}", ""], &[]);
    check(
        "ls > $(curl x)",
        &["ls", "curl x"],
        &["output of a command"],
    );
    check(
        "A=$(curl x) ls",
        &["ls", "curl x"],
        &["output of a command"],
    );
    check(
        "echo $((a[$(curl x)]))",
        &["echo $((a[$(curl x)]))", "curl x"],
        &["output of"],
    );
}

#[test]
fn quotes_do_not_hide_a_name() {
    for spelt in [
        "rm x",
        "\\rm x",
        "r\"m\" x",
        "'rm' x",
        "r''m x",
        "\"r\"'m' x",
    ] {
        check(spelt, &["rm x"], &[]);
    }
    for spelt in [r"$'\x72m' x", r"$'\162m' x", r"$'\u0072m' x", r"$'r'm x"] {
        check(spelt, &["rm x"], &["by number"]);
    }
    check("r\\\nm x", &["r m x"], &["breaks a word"]);
    check("ls \\\n  x", &["ls x"], &[]);
}

#[test]
fn a_program_that_is_known_only_later_has_no_name() {
    for command in [
        "$x a",
        "${x} a",
        "a$b c",
        "/usr/bin/cur? x",
        "{curl,x}",
        "~/x",
        "r{m,x}",
    ] {
        let script = read(command);
        let named = script.segments.first().and_then(Segment::program);
        assert!(
            named.is_none() || !script.doubts.is_empty(),
            "{command}: {named:?}"
        );
    }
}

#[test]
fn assignments_and_redirections_are_not_words() {
    let script = read("A=1 B=$x ls -l > out 2>&1 < in");
    let segment = &script.segments[0];
    assert_eq!(segment.assigns, ["A", "B"]);
    let targets: Vec<_> = segment
        .redirects
        .iter()
        .map(|r| match r {
            Redirect::To(word) => (true, word.shown()),
            Redirect::From(word) => (false, word.shown()),
            Redirect::Text => (false, ""),
        })
        .collect();
    assert_eq!(targets, [(true, "out"), (false, "in")]);
    assert_eq!(segment.words.len(), 2);
    for command in [
        "ls >| out",
        "ls &> out",
        "ls &>> out",
        "ls >> out",
        "ls 3<> out",
        "> out",
    ] {
        let script = read(command);
        let writes = script
            .segments
            .iter()
            .flat_map(|s| &s.redirects)
            .any(|r| matches!(r, Redirect::To(_)));
        assert!(writes || !script.doubts.is_empty(), "{command}");
    }
    for command in [
        "exec 3<>x",
        "cat <> x",
        "cat <>x y",
        "(exec 3<>x) && b",
        "<>x",
        "{ a; } 3<>x",
    ] {
        let script = read(command);
        let mut redirects = script.segments.iter().flat_map(|s| &s.redirects);
        let is_written = redirects.any(|r| matches!(r, Redirect::To(word) if word.shown() == "x"));
        assert!(
            is_written,
            "{command}: what is opened to be read and written is written"
        );
    }
    let script = read("export A=1 B; unset C");
    assert_eq!(script.segments[0].assigns, ["A", "B"]);
    assert_eq!(script.segments[1].assigns, ["C"]);
}

#[test]
fn a_pipe_tells_who_feeds_whom() {
    let script = read("ls; curl x | tee y | sh");
    let fed: Vec<_> = script.segments.iter().map(|s| s.fed_by).collect();
    assert_eq!(fed, [None, None, Some(1), Some(1)]);
}

#[test]
fn what_cannot_be_read_is_doubted() {
    let long = format!("echo {}", "x".repeat(COMMAND_BYTES_MAX));
    let deep = format!("{}ls{}", "(".repeat(200), ")".repeat(200));
    let many = "true; ".repeat(60) + "curl x";
    for command in [
        "ls (",
        "echo 'a",
        "if true",
        "ls\r",
        "ls \0 x",
        "a && && b",
        &long,
        &deep,
        &many,
    ] {
        assert!(!read(command).doubts.is_empty(), "{command}");
    }
    // Nothing is overlooked for all that.
    let last = read(&many).segments.pop().unwrap();
    assert_eq!(last.program(), Some("curl"));
}
