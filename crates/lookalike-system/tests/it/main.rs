//! Tests of the calls of the operating system.

mod files;
mod processes;
mod room;
