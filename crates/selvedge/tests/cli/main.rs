//! The binary as a person and a script meet it: exit code, stdout, stderr.

mod audit;
mod auth;
mod bad_input;
mod config;
mod crews;
mod demo;
mod gate;
mod hooks;
mod journal;
mod json;
mod knowledge;
mod lazy;
mod mcp;
mod policy;
mod providers;
mod questions;
mod run;
mod sandbox;
mod secrets;
mod sessions;
mod skills;
mod spending;
mod stopping;
mod swarm;
mod terminal;
mod world;
