//! A simulated world for tests.
