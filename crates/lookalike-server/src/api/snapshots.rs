//! Calls on snapshots: create, list, delete, and restore a collection from one.

use std::sync::Arc;

use axum::http::StatusCode;
use jiff::Timestamp;
use lookalike_store::{Disk, restore_collection};
use serde::Serialize;
use serde_json::json;

use crate::access::{AccessRole, AccessScope};
use crate::api::collections::CollectionJson;
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::api::responses::{self, QueryParameters, in_background};
use crate::api::router::{ApiRequest, ApiResult};
use crate::collections::check_name;
use crate::collections::open_collection::OpenCollection;
use crate::json::JsonFields;
use crate::service::ServiceState;
use crate::snapshots::schedule::is_scheduled_name;
use crate::snapshots::{SnapshotInfo, SnapshotRefusal, SnapshotStore};

/// Largest body, in bytes, of a request.
const MAX_REQUEST_BYTES: u64 = 1 << 16;

#[derive(Serialize)]
struct SnapshotJson<'a> {
    collection: &'a str,
    name: &'a str,
    bytes: u64,
    /// Time at which it was complete, in UTC.
    time: String,
}

impl<'a> From<&'a SnapshotInfo> for SnapshotJson<'a> {
    fn from(info: &'a SnapshotInfo) -> Self {
        let time = Timestamp::try_from(info.time).unwrap_or(Timestamp::UNIX_EPOCH);
        Self {
            collection: &info.collection,
            name: &info.name,
            bytes: info.bytes,
            time: time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        }
    }
}

/// Copies a collection to a new snapshot.
pub(crate) async fn make_snapshot(api_request: ApiRequest) -> ApiResult {
    let service = Arc::clone(&api_request.service);
    let collection = api_request.target_collection();
    api_request.look_up_collection()?;
    snapshot_store(&service)?;
    let (body, _held) = responses::read_json_body(api_request, MAX_REQUEST_BYTES).await?;
    in_background(move || {
        let mut fields = JsonFields::read_fields(&body)?;
        let name: String = fields.need_field("name")?;
        fields.refuse_rest()?;
        check_name(&name)?;
        refuse_scheduled_name(&name)?;
        let open = service.collections.look_up_collection(&collection)?;
        copy_collection(&open, snapshot_store(&service)?, &name)?;
        let body = json!({ "collection": open.name, "name": name });
        Ok(responses::json_response(StatusCode::CREATED, &body))
    })
    .await
}

/// Refuses a name that the schedule gives, because the schedule would delete the snapshot.
fn refuse_scheduled_name(name: &str) -> Result<(), ApiProblem> {
    if !is_scheduled_name(name) {
        return Ok(());
    }
    let detail = format!(
        "the name '{name}' is one that --snapshot-every gives, and the schedule would delete the snapshot: use \
         another name"
    );
    Err(ApiProblem::new(ProblemCode::BadName, detail))
}

/// Copies an open collection to a new snapshot.
pub(crate) fn copy_collection(
    open: &OpenCollection,
    snapshots: &SnapshotStore,
    name: &str,
) -> Result<(), ApiProblem> {
    let copied = snapshots.make_snapshot(&open.name, name, |disk| {
        // With a shared log, answers do not wait for the disk.
        if open.collection.pending_bytes() > 0 {
            open.collection.flush()?;
        }
        open.collection.copy_to_snapshot(disk)
    });
    copied.map_err(|refusal| match refusal {
        SnapshotRefusal::NotCopied(error) => open.to_problem(error),
        other => refusal_problem(name, other),
    })
}

/// Lists the snapshots of the collections that the caller may see; with `collection=NAME` those of one.
pub(crate) async fn list_snapshots(api_request: ApiRequest) -> ApiResult {
    let query = QueryParameters::parse_query(api_request.query.as_deref(), &["collection"])?;
    let only: Option<String> = query.get_parameter("collection", "the name of a collection")?;
    only.as_deref().map(check_name).transpose()?;
    in_background(move || {
        let snapshots = snapshot_store(&api_request.service)?;
        let listed = snapshots.list_snapshots(only.as_deref());
        let mut listed = listed.map_err(|error| {
            let detail = format!("the snapshots cannot be listed: {error}");
            ApiProblem::new(ProblemCode::Disk, detail)
        })?;
        let caller = &api_request.caller;
        listed.retain(|snapshot| caller.may_read(AccessScope::Collection(&[&snapshot.collection])));
        let listed: Vec<_> = listed.iter().map(SnapshotJson::from).collect();
        let body = json!({ "snapshots": listed });
        Ok(responses::json_response(StatusCode::OK, &body))
    })
    .await
}

/// Deletes a snapshot.
pub(crate) async fn delete_snapshot(api_request: ApiRequest) -> ApiResult {
    let (collection, name) = (
        api_request.target_collection(),
        api_request.path_part("snapshot"),
    );
    check_name(&collection)?;
    check_name(&name)?;
    in_background(move || {
        let snapshots = snapshot_store(&api_request.service)?;
        let deleted = snapshots.delete_snapshot(&collection, &name);
        if deleted.map_err(|refusal| refusal_problem(&name, refusal))? {
            tracing::info!(collection, snapshot = name, "snapshot deleted");
            Ok(responses::empty_response())
        } else {
            Err(no_snapshot(&collection, &name))
        }
    })
    .await
}

/// Creates a collection from a snapshot, of this or another collection.
pub(crate) async fn restore_snapshot(api_request: ApiRequest) -> ApiResult {
    let (service, collection) = (
        Arc::clone(&api_request.service),
        api_request.target_collection(),
    );
    let caller = api_request.caller.clone();
    check_name(&collection)?;
    if service.replica.is_some() {
        let detail = "a service with a shared log restores no single collection, because other replicas would not \
            have it: restore the log with `lookalike store restore`";
        return Err(ApiProblem::new(ProblemCode::BadRequest, detail));
    }
    snapshot_store(&service)?;
    let (body, _held) = responses::read_json_body(api_request, MAX_REQUEST_BYTES).await?;
    in_background(move || {
        let mut fields = JsonFields::read_fields(&body)?;
        let name: String = fields.need_field("snapshot")?;
        let from: Option<String> = fields.take_field("from")?;
        fields.refuse_rest()?;
        let from = from.unwrap_or_else(|| collection.clone());
        check_name(&name)?;
        check_name(&from)?;
        caller.check_access(AccessRole::Admin, AccessScope::Collection(&[&from]))?;
        let snapshots = snapshot_store(&service)?;
        let headroom = service.config.limits.headroom;
        let copy = |to: &dyn Disk| {
            let read = snapshots.read_snapshot(&from, &name, |snapshot| {
                restore_collection(snapshot, to, headroom)
            });
            let read = read.map_err(|refusal| refusal_problem(&name, refusal))?;
            let copied = read.ok_or_else(|| no_snapshot(&from, &name))?;
            copied.map_err(ApiProblem::from)
        };
        let open = service.collections.restore_collection(&collection, copy)?;
        Ok(responses::json_response(
            StatusCode::CREATED,
            &CollectionJson::from(&open),
        ))
    })
    .await
}

/// Returns the snapshots of the service.
///
/// # Errors
/// If it has no place for them.
fn snapshot_store(service: &ServiceState) -> Result<&SnapshotStore, ApiProblem> {
    service.snapshots.as_ref().ok_or_else(|| {
        let detail = "the service has no directory for snapshots: start it with --snapshots PLACE";
        ApiProblem::new(ProblemCode::BadRequest, detail)
    })
}

fn no_snapshot(collection: &str, name: &str) -> ApiProblem {
    let detail = format!("the collection '{collection}' has no snapshot '{name}'");
    ApiProblem::new(ProblemCode::NoSnapshot, detail)
}

fn refusal_problem(name: &str, refusal: SnapshotRefusal) -> ApiProblem {
    match refusal {
        SnapshotRefusal::Exists => ApiProblem::new(
            ProblemCode::SnapshotConflict,
            format!("the snapshot '{name}' exists already: use another name"),
        ),
        SnapshotRefusal::InUse => ApiProblem::new(
            ProblemCode::SnapshotConflict,
            format!("the snapshot '{name}' is being created, deleted or restored: try again later"),
        ),
        SnapshotRefusal::Failed(error) => {
            ApiProblem::new(ProblemCode::Disk, format!("the snapshot '{name}': {error}"))
        }
        SnapshotRefusal::NotCopied(error) => error.into(),
    }
}
