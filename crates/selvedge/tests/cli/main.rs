//! The binary as a person and a script meet it: exit code, stdout, stderr.

mod bad_input;
mod config;
mod demo;
mod json;
mod questions;
mod run;
mod sessions;
mod stopping;
mod world;
