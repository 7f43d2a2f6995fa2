//! Missions in process: with a model that says anything that fits, and with one whose
//! every request is written down beside the record.

mod chance;
mod record;
mod rig;
