//! Calls on collections: list, create, show, change, delete.

use std::sync::Arc;

use axum::http::StatusCode;
use bytes::Bytes;
use lookalike_log::EntryKind;
use serde::Serialize;
use serde_json::json;

use crate::access::AccessScope;
use crate::api::replicated::{change_through_log, with_position};
use crate::api::responses::{self, in_background, look_up};
use crate::api::router::{ApiRequest, ApiResult};
use crate::collections::check_name;
use crate::collections::open_collection::OpenCollection;
use crate::json::settings::{SettingsJson, read_change, read_settings};
use crate::replication::Replica;
use crate::replication::proposals::EntryAnswer;
use crate::service::ServiceState;

/// Largest body, in bytes, of settings.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;

/// Lists the collections that the caller may see, by name.
pub(crate) async fn list_collections(api_request: ApiRequest) -> ApiResult {
    let states = api_request.service.collections.list_states();
    let caller = &api_request.caller;
    let is_shown = |name: &str| caller.may_read(AccessScope::Collection(&[name]));
    let shown = states.iter().filter(|(name, _)| is_shown(name));
    let collections: Vec<_> = shown
        .map(|(name, state)| json!({ "name": name, "state": state.status_name() }))
        .collect();
    let body = json!({ "collections": collections });
    Ok(responses::json_response(StatusCode::OK, &body))
}

#[derive(Serialize)]
pub(crate) struct CollectionJson<'a> {
    name: &'a str,
    recipe_id: String,
    settings: SettingsJson,
    /// Settings at the creation, if they have been changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<SettingsJson>,
}

impl<'a> From<&'a Arc<OpenCollection>> for CollectionJson<'a> {
    fn from(open: &'a Arc<OpenCollection>) -> Self {
        let settings = open.collection.collection_settings();
        let created = open.collection.created_settings();
        Self {
            name: &open.name,
            recipe_id: settings.recipe.recipe_id().to_string(),
            settings: SettingsJson::from(&*settings),
            created: created.as_deref().map(SettingsJson::from),
        }
    }
}

/// Returns a collection and its settings.
pub(crate) async fn get_collection(api_request: ApiRequest) -> ApiResult {
    let open = api_request.look_up_collection()?;
    Ok(responses::json_response(
        StatusCode::OK,
        &CollectionJson::from(&open),
    ))
}

/// Creates a collection.
pub(crate) async fn create_collection(api_request: ApiRequest) -> ApiResult {
    let (service, name) = (
        Arc::clone(&api_request.service),
        api_request.target_collection(),
    );
    check_name(&name)?;
    let (body, _room) = responses::read_json_body(api_request, MAX_SETTINGS_BYTES).await?;
    if let Some(replica) = service.replica.clone() {
        return create_through_log(replica, service, name, body).await;
    }
    in_background(move || {
        let _unchanged = service.recipes.keep_unchanged();
        let uploaded = |name: &str| service.recipes.load_recipe(name);
        let settings = read_settings(&body, &uploaded)?;
        let (open, made) = service.collections.create_collection(&name, &settings)?;
        let status = if made {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        Ok(responses::json_response(
            status,
            &CollectionJson::from(&open),
        ))
    })
    .await
}

/// Creates a collection through the log. Its settings are checked first, so that the log has no wrong ones.
async fn create_through_log(
    replica: Arc<Replica>,
    service: Arc<ServiceState>,
    name: String,
    body: Bytes,
) -> ApiResult {
    let (checked, settings) = (Arc::clone(&service), body.clone());
    in_background(move || {
        let uploaded = |name: &str| checked.recipes.load_recipe(name);
        read_settings(&settings, &uploaded).map(drop)
    })
    .await?;
    let change = change_through_log(&replica, EntryKind::CreateCollection, &name, body.to_vec());
    let (answer, record) = change.await?;
    let open = service.collections.look_up_collection(&name)?;
    let status = match answer {
        EntryAnswer::Created(true) => StatusCode::CREATED,
        _ => StatusCode::OK,
    };
    let response = responses::json_response(status, &CollectionJson::from(&open));
    Ok(with_position(response, record))
}

/// Changes the settings of a collection that can change.
pub(crate) async fn change_collection(api_request: ApiRequest) -> ApiResult {
    let (service, name) = (
        Arc::clone(&api_request.service),
        api_request.target_collection(),
    );
    let (body, _room) = responses::read_json_body(api_request, MAX_SETTINGS_BYTES).await?;
    if let Some(replica) = &service.replica {
        read_change(&body)?;
        let change = change_through_log(replica, EntryKind::ChangeSettings, &name, body.to_vec());
        let (_, record) = change.await?;
        let open = service.collections.look_up_collection(&name)?;
        let response = responses::json_response(StatusCode::OK, &CollectionJson::from(&open));
        return Ok(with_position(response, record));
    }
    in_background(move || {
        let change = read_change(&body)?;
        let open = service.collections.change_settings(&name, &change)?;
        Ok(responses::json_response(
            StatusCode::OK,
            &CollectionJson::from(&open),
        ))
    })
    .await
}

/// Deletes a collection.
pub(crate) async fn delete_collection(api_request: ApiRequest) -> ApiResult {
    let (service, name) = (
        Arc::clone(&api_request.service),
        api_request.target_collection(),
    );
    if let Some(replica) = &service.replica {
        let change = change_through_log(replica, EntryKind::DeleteCollection, &name, Vec::new());
        let (_, record) = change.await?;
        return Ok(with_position(responses::empty_response(), record));
    }
    in_background(move || {
        service.collections.delete_collection(&name)?;
        Ok(responses::empty_response())
    })
    .await
}

/// Returns the statistics of a collection.
pub(crate) async fn collection_stats(api_request: ApiRequest) -> ApiResult {
    let open = api_request.look_up_collection()?;
    look_up(move || {
        let stats = open
            .collection
            .collect_stats()
            .map_err(|error| open.to_problem(error))?;
        let passages =
            Some(("passages", open.passages.memory_bytes())).filter(|figure| figure.1 > 0);
        let memory: serde_json::Map<_, _> = stats
            .memory
            .iter()
            .chain(&passages)
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
        Ok(responses::json_response(StatusCode::OK, &body))
    })
    .await
}
