//! Arguments of the service.

mod serve;

pub(crate) use serve::{ByteSize, LogFormat, LogLevel, PeriodArg, ServeArgs};
