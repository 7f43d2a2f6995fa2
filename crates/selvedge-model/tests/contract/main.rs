//! The contract of every provider, kept against a server that breaks it.
//!
//! Each case runs over every protocol: a complete answer or an error that says
//! what to do, whatever happens on the way.

mod answers;
mod faults;
mod gate;
mod images;
mod prefix;
mod pressure;
mod reasoning;
mod requests;
mod servers;
mod world;
