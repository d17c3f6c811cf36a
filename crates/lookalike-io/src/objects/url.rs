//! URLs of objects.
//!
//! The key of `s3://bucket/key` is taken as it is: nothing in it is percent-encoded, and `?` belongs to it
//! (or to a pattern). Only in `https://` URLs a query begins with `?`. It is sent with every request, but
//! it is not part of the name of the input, because signed URLs carry their signature there.

use std::fmt;
use std::path::Path;

use crate::error::{Error, Result};

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StoreKind {
    S3,
    Google,
    Azure,
    Https,
}

/// The URL of an object, of a prefix, or of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectUrl {
    pub(super) kind: StoreKind,
    /// The part before the key, such as `s3://bucket`, as given.
    pub(super) root: String,
    /// Bucket, container or host; for Azure also `container@account.host`.
    pub(super) bucket: String,
    pub(super) key: String,
    /// The query of an `https://` URL, without `?`.
    pub(super) query: Option<String>,
}

/// Returns `true` if a path is a URL of whatever kind, and so not a path of this machine.
pub fn is_url(path: &Path) -> bool {
    split_scheme(path).is_some()
}

/// Returns `true` if two paths are URLs of the same object.
pub(crate) fn is_same_object(one: &Path, other: &Path) -> bool {
    let parse = |path| ObjectUrl::from_path(path)?.ok();
    match (parse(one), parse(other)) {
        (Some(one), Some(other)) => {
            (one.kind, &one.bucket, &one.key) == (other.kind, &other.bucket, &other.key)
        }
        _ => false,
    }
}

/// Divides a URL into its scheme and what comes after `://`.
fn split_scheme(path: &Path) -> Option<(&str, &str)> {
    let (scheme, rest) = path.to_str()?.split_once("://")?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    is_scheme.then_some((scheme, rest))
}

impl ObjectUrl {
    /// Parses a path if it is a URL; `None` if it is an ordinary path.
    ///
    /// # Errors
    /// If the scheme is not one that is read, if no bucket is named, or if a password stands in it.
    pub(crate) fn from_path(path: &Path) -> Option<Result<Self>> {
        let (scheme, rest) = split_scheme(path)?;
        Some(Self::from_parts(scheme, rest))
    }

    fn from_parts(scheme: &str, rest: &str) -> Result<Self> {
        let kind = store_kind(scheme, rest)?;
        let (address, query) = match kind {
            StoreKind::Https => match rest.split_once('?') {
                Some((address, query)) => (address, Some(query.to_owned())),
                None => (rest, None),
            },
            _ => (rest, None),
        };
        let (bucket, key) = address.split_once('/').unwrap_or((address, ""));
        if bucket.is_empty() {
            return Err(Error::usage_error(format!(
                "{scheme}://{address} names no bucket: give {scheme}://BUCKET/KEY"
            )));
        }
        if kind == StoreKind::Https && bucket.contains('@') {
            let host = bucket.rsplit('@').next().unwrap_or_default();
            return Err(Error::usage_error(format!(
                "the URL of https://{host}/{key} has a user or a password in it, which would stand in \
                 every result: give a signed URL, or pipe what a tool fetches, for example with \
                 `curl … | lookalike … -`"
            )));
        }
        Ok(Self {
            kind,
            root: format!("{scheme}://{bucket}"),
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            query,
        })
    }

    /// Returns `true` if objects can be written there.
    #[cfg(feature = "object-store")]
    pub(super) fn is_writable(&self) -> bool {
        self.kind != StoreKind::Https
    }

    /// Returns `true` if the URL ends like a directory.
    #[cfg(feature = "object-store")]
    pub(super) fn is_prefix(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/')
    }

    /// Returns the URL of another key of the same bucket.
    #[cfg(feature = "object-store")]
    pub(super) fn with_key(&self, key: &str) -> Self {
        Self {
            key: key.to_owned(),
            ..self.clone()
        }
    }
}

/// The URL as results and messages show it.
impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.root, self.key)
    }
}

fn store_kind(scheme: &str, rest: &str) -> Result<StoreKind> {
    match scheme.to_ascii_lowercase().as_str() {
        "s3" | "s3a" => Ok(StoreKind::S3),
        "gs" => Ok(StoreKind::Google),
        "az" | "abfs" | "abfss" => Ok(StoreKind::Azure),
        "https" => Ok(StoreKind::Https),
        "http" => Err(Error::usage_error(format!(
            "http://{} is not encrypted, so anyone on the way could change the texts: give the https:// \
             URL, or pipe what a tool fetches, for example with `curl … | lookalike … -`",
            rest.split('?').next().unwrap_or_default()
        ))),
        "file" => Err(Error::usage_error(format!(
            "file://{rest} is a file of this machine: give its path, {}",
            rest.trim_start_matches("localhost")
        ))),
        other => Err(Error::usage_error(format!(
            "{scheme}://{rest} has the unknown scheme `{other}`: known are s3://, gs://, az:// and, for \
             inputs, https://"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Result<ObjectUrl>> {
        ObjectUrl::from_path(Path::new(text))
    }

    #[test]
    fn urls_are_divided_into_bucket_and_key() {
        let cases = [
            ("s3://b/a/c.jsonl", "b", "a/c.jsonl", None),
            ("s3a://b/100%/a?.jsonl", "b", "100%/a?.jsonl", None),
            ("gs://b", "b", "", None),
            ("az://c/", "c", "", None),
            (
                "abfss://c@n.dfs.core.windows.net/k",
                "c@n.dfs.core.windows.net",
                "k",
                None,
            ),
            (
                "https://h:8443/a.csv?sig=x/y",
                "h:8443",
                "a.csv",
                Some("sig=x/y"),
            ),
        ];
        for (text, bucket, key, query) in cases {
            let url = parse(text).unwrap().unwrap();
            assert_eq!(
                (&url.bucket[..], &url.key[..], url.query.as_deref()),
                (bucket, key, query),
                "{text}"
            );
        }
        let shown = parse("https://h/a.csv?sig=secret").unwrap().unwrap();
        assert_eq!(shown.to_string(), "https://h/a.csv");
    }

    #[test]
    fn paths_are_no_urls() {
        for path in [
            "a.jsonl",
            "/a/b",
            "C:/a",
            "a:b//c",
            "./s3://b/c",
            "://b",
            "1s://b",
            "a b://c",
        ] {
            assert!(parse(path).is_none(), "{path}");
        }
    }

    #[test]
    fn other_urls_are_refused_with_what_to_do() {
        let cases = [
            ("http://h/a?sig=secret", "give the https:// URL"),
            ("file:///a/b", "give its path, /a/b"),
            ("hdfs://n/a", "unknown scheme `hdfs`"),
            ("s3:///a", "names no bucket"),
            ("https://user:secret@h/a", "a user or a password"),
        ];
        for (text, expected) in cases {
            let message = parse(text).unwrap().unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
