//! Objects below a prefix, and those that a pattern matches.
//!
//! Cost: one request for each 1,000 objects below the prefix; below the part of a pattern before its first
//! `*`, `?` or `[`.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream::TryStreamExt;
use glob::{MatchOptions, Pattern};
use object_store::path::Path as Key;
use object_store::{Error as StoreError, ObjectMeta, ObjectStore};

use super::ObjectSearch;
use super::client::{self, reason_of};
use super::first_answer::AnswerDeadline;
use super::stored_object::StoredObject;
use super::url::{ObjectUrl, StoreKind};
use crate::error::{Error, Result};
use crate::left_out_names::is_left_out_by_pattern;

/// `*` and `?` stay within one part of a key, as within one name of a path; `**` does not.
const GLOB_OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// Finds the objects that a URL names: an object, a prefix with or without `/` at its end, or a pattern.
///
/// # Errors
/// If there is none, if the store cannot be opened, or if access is denied.
pub(crate) fn find_objects(url: &ObjectUrl) -> Result<ObjectSearch> {
    find_objects_until(url, &AnswerDeadline::begin_wait())
}

/// Finds objects like [`find_objects`], with a deadline for the first answer.
pub(super) fn find_objects_until(
    url: &ObjectUrl,
    deadline: &AnswerDeadline,
) -> Result<ObjectSearch> {
    let missing = || Error::input_error(format!("cannot open {url}: there is no such object"));
    if url.kind == StoreKind::Https {
        let object = StoredObject::open_url(url, deadline)?;
        let found = object.map(|object| ObjectSearch::Single(Box::new(object)));
        return found.ok_or_else(missing);
    }
    if url.key.contains(['*', '?', '[']) {
        return find_by_pattern(url, deadline);
    }
    if !url.is_prefix()
        && let Some(object) = StoredObject::open_url(url, deadline)?
    {
        return Ok(ObjectSearch::Single(Box::new(object)));
    }
    let below = find_below(url, deadline)?;
    if below.is_empty() && !url.is_prefix() {
        Err(missing())
    } else {
        Ok(ObjectSearch::Prefix(below))
    }
}

/// Lists the objects below a prefix. Names that begin with `.` or `_` are hidden, as in directories. An empty
/// object whose name has no extension is the mark of a folder that some tools make.
fn find_below(url: &ObjectUrl, deadline: &AnswerDeadline) -> Result<Vec<(PathBuf, StoredObject)>> {
    let (store, prefix) = client::open_store(url, deadline)?;
    let mut below = Vec::new();
    for meta in list_sorted(url, &store, &prefix, deadline)? {
        let Some(parts) = meta.location.prefix_match(&prefix) else {
            continue;
        };
        let parts: Vec<_> = parts.map(|part| part.as_ref().to_owned()).collect();
        let is_hidden = parts.iter().any(|part| part.starts_with(['.', '_']));
        let is_mark = meta.size == 0 && parts.last().is_some_and(|name| !name.contains('.'));
        if !is_hidden && !is_mark {
            let object = object_of(url, &store, &meta);
            below.push((parts.iter().collect(), object));
        }
    }
    Ok(below)
}

fn find_by_pattern(url: &ObjectUrl, deadline: &AnswerDeadline) -> Result<ObjectSearch> {
    let pattern = Pattern::new(&url.key).map_err(|cause| {
        Error::usage_error(format!("`{url}` is not a valid pattern: {}", cause.msg))
            .with_source(cause)
    })?;
    let literal = url.key.find(['*', '?', '[']).unwrap_or(url.key.len());
    let folder = &url.key[..url.key[..literal].rfind('/').map_or(0, |at| at + 1)];
    let (store, prefix) = client::open_store(&url.with_key(folder), deadline)?;
    let listed = if url.key[literal..].contains('/') {
        list_sorted(url, &store, &prefix, deadline)?
    } else {
        list_directly(url, &store, &prefix, deadline)?
    };
    let matching = listed.iter().filter(|meta| {
        let key = meta.location.as_ref();
        pattern.matches_with(key, GLOB_OPTIONS) && !is_left_out_by_pattern(&url.key, Path::new(key))
    });
    let found: Vec<_> = matching.map(|meta| object_of(url, &store, meta)).collect();
    if found.is_empty() {
        Err(Error::input_error(format!(
            "no object matches `{url}`; `*` stops at `/`, and `**` does not"
        )))
    } else {
        Ok(ObjectSearch::Pattern(found))
    }
}

fn object_of(url: &ObjectUrl, store: &Arc<dyn ObjectStore>, meta: &ObjectMeta) -> StoredObject {
    let name = url.with_key(meta.location.as_ref()).to_string();
    StoredObject::from_listing(name, store, meta)
}

/// Lists all objects below a prefix.
fn list_sorted(
    url: &ObjectUrl,
    store: &Arc<dyn ObjectStore>,
    prefix: &Key,
    deadline: &AnswerDeadline,
) -> Result<Vec<ObjectMeta>> {
    let is_answered = AtomicBool::new(false);
    let listed = client::repeat_if_cut(|| {
        let objects = store.list(Some(prefix));
        let objects = objects.inspect_ok(|_| is_answered.store(true, Ordering::Relaxed));
        objects.try_collect::<Vec<_>>()
    });
    let listed = deadline.wait_with_mark(&is_answered, listed);
    sort_listing(url, listed.map_err(|cause| failed_listing(url, &cause))?)
}

/// Lists the objects below a prefix without those further below. All answers of a long listing come together, so one
/// more request has the deadline: for the first object below the prefix.
fn list_directly(
    url: &ObjectUrl,
    store: &Arc<dyn ObjectStore>,
    prefix: &Key,
    deadline: &AnswerDeadline,
) -> Result<Vec<ObjectMeta>> {
    let first = deadline.wait_for(client::repeat_if_cut(|| async {
        store.list(Some(prefix)).try_next().await
    }));
    let first = first.map_err(|cause| failed_listing(url, &cause))?;
    if let Err(cause) = first {
        return Err(failed_listing(url, &reason_of(&cause)));
    }
    let listed = client::wait_for(client::repeat_if_cut(|| {
        store.list_with_delimiter(Some(prefix))
    }));
    sort_listing(url, listed.map(|listed| listed.objects))
}

fn failed_listing(url: &ObjectUrl, reason: &impl Display) -> Error {
    Error::input_error(format!("cannot list {url}: {reason}"))
}

/// Sorts objects as the files of directories are sorted: by the parts of their keys.
fn sort_listing(
    url: &ObjectUrl,
    listed: Result<Vec<ObjectMeta>, StoreError>,
) -> Result<Vec<ObjectMeta>> {
    let mut listed = listed.map_err(|cause| failed_listing(url, &reason_of(&cause)))?;
    listed.sort_by(|one, other| {
        let parts = |meta: &ObjectMeta| {
            meta.location
                .as_ref()
                .split('/')
                .map(str::to_owned)
                .collect()
        };
        let (one, other): (Vec<String>, Vec<String>) = (parts(one), parts(other));
        one.cmp(&other)
    });
    Ok(listed)
}
