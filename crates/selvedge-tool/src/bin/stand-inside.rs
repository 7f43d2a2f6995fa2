//! Stands inside of a fence that bubblewrap has made, for tests: the program that runs
//! them has a `main` of its own.

fn main() {
    selvedge_tool::stand_inside();
    eprintln!("started by bubblewrap only");
}
