//! Calls on collections: list, create, show, delete, snapshot.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::json;

use super::api::{Answered, Asked};
use super::collections::check_name;
use super::desk::Open;
use super::problem::{Code, Problem};
use super::reply::{self, in_background};
use super::wire::{self, Chosen, Fields};
use crate::snapshots::{Refusal, Snapshots};

/// Largest body, in bytes, of settings.
const LONGEST_SETTINGS: u64 = 1 << 20;

/// Lists all collections by name.
pub(super) async fn list(asked: Asked) -> Answered {
    let states = asked.service.collections.states();
    let one = |(name, state): &(String, super::collections::State)| json!({ "name": name, "state": state.name() });
    let collections: Vec<_> = states.iter().map(one).collect();
    let body = json!({ "collections": collections });
    Ok(reply::json(StatusCode::OK, &body))
}

#[derive(Serialize)]
struct About<'a> {
    name: &'a str,
    recipe_id: String,
    settings: Chosen,
}

impl<'a> From<&'a Arc<Open>> for About<'a> {
    fn from(open: &'a Arc<Open>) -> Self {
        let settings = open.collection.settings();
        Self {
            name: &open.name,
            recipe_id: settings.recipe.id().to_string(),
            settings: Chosen::from(settings),
        }
    }
}

/// Returns a collection and its settings.
pub(super) async fn get(asked: Asked) -> Answered {
    let open = asked.service.collections.get(&asked.collection())?;
    Ok(reply::json(StatusCode::OK, &About::from(&open)))
}

/// Creates a collection.
pub(super) async fn put(asked: Asked) -> Answered {
    let (service, name) = (Arc::clone(&asked.service), asked.collection());
    check_name(&name)?;
    let (body, _room) = reply::body(asked, LONGEST_SETTINGS).await?;
    in_background(move || {
        let settings = wire::settings(&body)?;
        let (open, made) = service.collections.put(&name, &settings)?;
        let status = if made {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        Ok(reply::json(status, &About::from(&open)))
    })
    .await
}

/// Deletes a collection.
pub(super) async fn delete(asked: Asked) -> Answered {
    let (service, name) = (Arc::clone(&asked.service), asked.collection());
    in_background(move || {
        service.collections.delete(&name)?;
        Ok(reply::empty())
    })
    .await
}

/// Returns the statistics of a collection.
pub(super) async fn stats(asked: Asked) -> Answered {
    let open = asked.service.collections.get(&asked.collection())?;
    in_background(move || {
        let stats = open.collection.stats().map_err(|it| open.problem(it))?;
        let memory: serde_json::Map<_, _> = stats
            .memory
            .iter()
            .map(|(part, bytes)| ((*part).to_owned(), (*bytes).into()))
            .collect();
        let body = json!({
            "rows": stats.rows,
            "dead_rows": stats.dead_rows,
            "kept": stats.kept,
            "partitions": stats.partitions,
            "last_durable_row": stats.durable,
            "memory": memory,
            "stopped": stats.stopped,
        });
        Ok(reply::json(StatusCode::OK, &body))
    })
    .await
}

/// Copies a collection to a new snapshot.
pub(super) async fn snapshot(asked: Asked) -> Answered {
    let (service, collection) = (Arc::clone(&asked.service), asked.collection());
    service.collections.get(&collection)?;
    if service.snapshots.is_none() {
        let detail = "the service has no directory for snapshots: start it with --snapshots PLACE";
        return Err(Problem::new(Code::BadRequest, detail));
    }
    let (body, _room) = reply::body(asked, LONGEST_SETTINGS).await?;
    in_background(move || {
        let mut fields = Fields::read(&body)?;
        let name: String = fields.need("name")?;
        fields.end()?;
        check_name(&name)?;
        let open = service.collections.get(&collection)?;
        if let Some(snapshots) = &service.snapshots {
            copy(&open, snapshots, &name)?;
        }
        let body = json!({ "collection": open.name, "name": name });
        Ok(reply::json(StatusCode::CREATED, &body))
    })
    .await
}

fn copy(open: &Open, snapshots: &Snapshots, name: &str) -> Result<(), Problem> {
    let copied = snapshots.make(&open.name, name, |disk| open.collection.snapshot(disk));
    copied.map_err(|refusal| match refusal {
        Refusal::Exists => Problem::new(
            Code::SnapshotConflict,
            format!("the snapshot '{name}' exists already: use another name"),
        ),
        Refusal::Failed(error) => {
            Problem::new(Code::Disk, format!("the snapshot '{name}': {error}"))
        }
        Refusal::NotCopied(error) => open.problem(error),
    })
}
