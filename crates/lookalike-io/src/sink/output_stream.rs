//! Sequential output of bytes, compressed according to the extension.

use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression as GzipLevel;
use flate2::write::GzEncoder;
use lookalike_system::{FileNumber, StandardOutput, open_standard_output};
use zstd::stream::write::Encoder as ZstdEncoder;

use super::atomic::SealedFile;
use super::{AtomicFile, OutputTarget};
use crate::error::{Error, Result, display_path};
use crate::source::{
    CompressionKind, InputFile, InputFormat, InputSet, compression_by_extension,
    format_by_extension,
};

/// Compression level of gzip. It is below the usual 6, for speed.
const GZIP_LEVEL: u32 = 4;

/// Compression level of Zstandard. It is one below the default, at which compression would take half of
/// the time of a run over Chinese text.
const ZSTD_LEVEL: i32 = 2;

/// Bytes collected before a write.
const BUFFER_BYTES: usize = 256 << 10;

/// An open output.
pub(super) enum OpenOutput {
    File(AtomicFile),
    Stdout(StandardOutput),
}

impl OpenOutput {
    /// Opens an output. A file that is one of `inputs` is refused.
    pub(super) fn open_target(output: &OutputTarget, inputs: Option<&InputSet>) -> Result<Self> {
        match output {
            OutputTarget::Path(path) => {
                refuse_inputs(path, inputs)?;
                let scratch = inputs.and_then(InputSet::scratch_directory);
                AtomicFile::create_with_scratch(path, scratch).map(Self::File)
            }
            OutputTarget::Stdout => {
                let stdout = open_standard_output();
                let stdout = stdout.map_err(|cause| Error::write_error("open", output, cause))?;
                Ok(Self::Stdout(stdout))
            }
            OutputTarget::Memory(_) => Err(Error::usage_error(format!(
                "bytes cannot be written to {output}: give a file"
            ))),
        }
    }

    /// Returns the file, if the output is one.
    pub(super) fn as_file(&self) -> Option<&File> {
        match self {
            Self::File(file) => Some(file.as_file()),
            Self::Stdout(_) => None,
        }
    }

    /// Returns `true` if the output can be written at any offset.
    pub(super) fn is_regular(&self) -> bool {
        matches!(self, Self::File(file) if file.as_file().metadata().is_ok_and(|file| file.is_file()))
    }

    /// Syncs the output. After that it must not be written to.
    pub(super) fn sync_output(&mut self) -> Result<()> {
        match self {
            Self::File(file) => file.sync_file(),
            Self::Stdout(_) => Ok(()),
        }
    }

    /// Syncs and closes the output, so that it can be committed.
    pub(super) fn seal_output(self) -> Result<SealedFile> {
        match self {
            Self::File(file) => file.seal_file(),
            Self::Stdout(_) => Ok(SealedFile::without_name()),
        }
    }
}

/// Refuses to overwrite an input, whatever path leads to it.
pub(super) fn refuse_inputs(path: &Path, inputs: Option<&InputSet>) -> Result<()> {
    let metadata = std::fs::metadata(path).ok().filter(Metadata::is_file);
    let number = metadata
        .as_ref()
        .and_then(|metadata| FileNumber::of_file(path, metadata));
    let is_output = |file: &&InputFile| match number {
        Some(number) => file.has_number(number),
        None => file.is_object(path),
    };
    let mut files = inputs.into_iter().flat_map(InputSet::input_files);
    match files.find(is_output) {
        None => Ok(()),
        Some(input) => Err(Error::usage_error(format!(
            "the output {} is the input {}; it would be overwritten",
            display_path(path),
            input.display_name()
        ))),
    }
}

/// Extensions of compressed files that cannot be written.
const COMPRESSED_EXTENSIONS: [&str; 9] = [
    "7z", "br", "bz2", "lz4", "lzma", "rar", "snappy", "xz", "zip",
];

/// Extensions of tables that cannot be written.
const TABLE_EXTENSIONS: [&str; 11] = [
    "avro", "db", "html", "ods", "orc", "sqlite", "xls", "xlsx", "xml", "yaml", "yml",
];

/// Refuses a name whose extension stands for an unsupported compression or, for a table, an unsupported
/// format.
pub(super) fn refuse_extension(path: &Path, is_table: bool) -> Result<()> {
    let extension = path.extension().unwrap_or_default();
    let extension = extension.to_string_lossy().to_ascii_lowercase();
    let inner = path
        .file_stem()
        .map(Path::new)
        .and_then(format_by_extension);
    let is_compressed = compression_by_extension(path) != CompressionKind::None;
    if is_table && is_compressed && inner.is_some_and(InputFormat::is_columnar) {
        return Err(Error::usage_error(format!(
            "{} would be compressed twice",
            display_path(path)
        )));
    }
    let written = match &extension[..] {
        other if COMPRESSED_EXTENSIONS.contains(&other) => ".gz and .zst",
        other if is_table && TABLE_EXTENSIONS.contains(&other) => {
            ".tsv, .csv, .jsonl, .parquet and .arrow"
        }
        _ => return Ok(()),
    };
    Err(Error::usage_error(format!(
        "{} has the extension .{extension}, which cannot be written: give {written}",
        display_path(path)
    )))
}

/// Returns the compression that the output's name stands for.
pub(super) fn compression(output: &OutputTarget) -> CompressionKind {
    match output {
        OutputTarget::Path(path) => compression_by_extension(path),
        OutputTarget::Stdout | OutputTarget::Memory(_) => CompressionKind::None,
    }
}

struct CountedWriter {
    target: OpenOutput,
    bytes: u64,
}

impl Write for CountedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = match &mut self.target {
            OpenOutput::File(file) => file.as_file().write(bytes)?,
            OpenOutput::Stdout(stdout) => stdout.write(bytes)?,
        };
        self.bytes += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            OpenOutput::File(file) => file.as_file().flush(),
            OpenOutput::Stdout(stdout) => stdout.flush(),
        }
    }
}

type BufferedWriter = BufWriter<CountedWriter>;

enum StreamEncoder {
    Plain(BufferedWriter),
    Gzip(GzEncoder<BufferedWriter>),
    Zstd(ZstdEncoder<'static, BufferedWriter>),
}

/// An output that is written sequentially.
pub(super) struct OutputStream {
    name: String,
    encoder: StreamEncoder,
}

impl OutputStream {
    /// Starts an output. Zstandard compresses on `threads` threads.
    pub(super) fn new(output: &OutputTarget, target: OpenOutput, threads: usize) -> Result<Self> {
        let buffered = BufWriter::with_capacity(BUFFER_BYTES, CountedWriter { target, bytes: 0 });
        let encoder = match compression(output) {
            CompressionKind::None => Ok(StreamEncoder::Plain(buffered)),
            CompressionKind::Gzip => Ok(StreamEncoder::Gzip(GzEncoder::new(
                buffered,
                GzipLevel::new(GZIP_LEVEL),
            ))),
            CompressionKind::Zstd => zstd_encoder(buffered, threads).map(StreamEncoder::Zstd),
            // Their extensions were refused; see [`refuse_extension`].
            CompressionKind::Xz | CompressionKind::Bzip2 => Err(io::ErrorKind::Unsupported.into()),
        };
        let name = output.to_string();
        let encoder = encoder.map_err(|cause| Error::write_error("write", &name, cause))?;
        Ok(Self { name, encoder })
    }

    /// Writes some bytes.
    pub(super) fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes)
            .map_err(|cause| Error::write_error("write", &self.name, cause))
    }

    /// Ends the compressed stream. Returns the target, which is still to be sealed, and the bytes
    /// written.
    pub(super) fn finish_stream(self) -> Result<(OpenOutput, u64)> {
        let buffered = match self.encoder {
            StreamEncoder::Plain(buffered) => Ok(buffered),
            StreamEncoder::Gzip(encoder) => encoder.finish(),
            StreamEncoder::Zstd(encoder) => encoder.finish(),
        };
        let counted = buffered.and_then(|buffered| {
            buffered
                .into_inner()
                .map_err(io::IntoInnerError::into_error)
        });
        let counted = counted.map_err(|cause| Error::write_error("write", &self.name, cause))?;
        Ok((counted.target, counted.bytes))
    }
}

impl Write for OutputStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            StreamEncoder::Plain(writer) => writer.write(bytes),
            StreamEncoder::Gzip(writer) => writer.write(bytes),
            StreamEncoder::Zstd(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            StreamEncoder::Plain(writer) => writer.flush(),
            StreamEncoder::Gzip(writer) => writer.flush(),
            StreamEncoder::Zstd(writer) => writer.flush(),
        }
    }
}

fn zstd_encoder(
    buffered: BufferedWriter,
    threads: usize,
) -> io::Result<ZstdEncoder<'static, BufferedWriter>> {
    let mut encoder = ZstdEncoder::new(buffered, ZSTD_LEVEL)?;
    encoder.include_checksum(true)?;
    if threads > 1 {
        compress_on_threads(&mut encoder, threads)?;
    }
    Ok(encoder)
}

#[cfg(not(target_family = "wasm"))]
fn compress_on_threads(
    encoder: &mut ZstdEncoder<'static, BufferedWriter>,
    threads: usize,
) -> io::Result<()> {
    encoder.multithread(u32::try_from(threads).unwrap_or(u32::MAX).min(64))
}

/// Refuses, because a module has one thread.
#[cfg(target_family = "wasm")]
fn compress_on_threads(
    _encoder: &mut ZstdEncoder<'static, BufferedWriter>,
    _threads: usize,
) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
