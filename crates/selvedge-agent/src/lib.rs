//! The agent loop as a machine, its context and its files.
