//! Calls on recipes: list, upload, show, delete.

use std::sync::Arc;

use axum::http::StatusCode;
use lookalike_log::EntryKind;
use lookalike_store::{StoredRecipe, StoredRecipeFile};
use serde::Serialize;
use serde_json::json;
use tokio::runtime::Handle;

use crate::access::{AccessScope, ApiCaller};
use crate::api::problem::ApiProblem;
use crate::api::recipe_upload::{self, BODY_COPIES, MAX_UPLOAD_BYTES, RecipeUpload};
use crate::api::replicated::{change_through_log, with_position};
use crate::api::responses::{self, in_background};
use crate::api::router::{ApiRequest, ApiResult};
use crate::api::stream::queue_full;
use crate::recipes::{UploadOutcome, check_recipe_name};
use crate::replication::apply::upload_entry_body;
use crate::replication::proposals::EntryAnswer;
use crate::service::ServiceState;

/// Lists all uploaded recipes by name.
pub(crate) async fn list_recipes(api_request: ApiRequest) -> ApiResult {
    let recipes = api_request.service.recipes.list_recipes().into_iter();
    let one = |(name, found): (String, lookalike_store::Result<StoredRecipe>)| match found {
        Ok(about) => json!({
            "name": name,
            "state": "intact",
            "recipe_id": about.recipe_id,
            "bytes": about.file_bytes(),
        }),
        Err(_) => json!({ "name": name, "state": "damaged", "recipe_id": null, "bytes": null }),
    };
    let body = json!({ "recipes": recipes.map(one).collect::<Vec<_>>() });
    Ok(responses::json_response(StatusCode::OK, &body))
}

/// Returns a recipe, its files and the collections that use it.
pub(crate) async fn get_recipe(api_request: ApiRequest) -> ApiResult {
    let name = api_request.path_part("recipe");
    let body = describe_recipe(&api_request.service, &api_request.caller, &name)?;
    Ok(responses::json_response(StatusCode::OK, &body))
}

/// A recipe as it is returned.
#[derive(Serialize)]
struct RecipeJson<'a> {
    name: &'a str,
    recipe_id: String,
    files: Vec<StoredRecipeFile>,
    collections: Vec<String>,
    recipe: String,
}

/// Describes a recipe, with those of its collections that the caller may see.
fn describe_recipe<'a>(
    service: &ServiceState,
    caller: &ApiCaller,
    name: &'a str,
) -> Result<RecipeJson<'a>, ApiProblem> {
    let about = service.recipes.describe_recipe(name)?;
    let users = service.collections.open_users_of_recipe(name);
    let users = users.into_iter().filter(|(_, id)| *id == about.recipe_id);
    let users = users.map(|(user, _)| user);
    let is_shown = |user: &String| caller.may_read(AccessScope::Collection(&[user]));
    let collections = users.filter(is_shown).collect();
    Ok(RecipeJson {
        name,
        recipe_id: about.recipe_id,
        files: about.files,
        collections,
        recipe: about.recipe,
    })
}

/// Stores an uploaded recipe with its files.
pub(crate) async fn put_recipe(mut api_request: ApiRequest) -> ApiResult {
    let (service, client) = (Arc::clone(&api_request.service), api_request.client);
    let caller = api_request.caller.clone();
    let name = api_request.path_part("recipe");
    check_recipe_name(&name)?;
    let boundary = recipe_upload::find_boundary(&api_request.headers)?;
    let limits = &service.config.limits;
    let share = limits.client_share() / BODY_COPIES as u64;
    let reader = api_request.take_body_reader(MAX_UPLOAD_BYTES.min(limits.body).min(share))?;
    let (body, room) = responses::read_whole_body(reader, &service.waiting_budget, client).await?;
    let more = room.byte_count() * (BODY_COPIES - 1);
    let more = service.waiting_budget.try_take_bytes(client, more);
    let more = more.ok_or_else(queue_full)?;
    if let Some(replica) = &service.replica {
        let held = (room, more);
        let upload = upload_entry_body(&boundary, &body);
        // The upload is checked first, so that the log has no wrong one.
        let (checked, name_of_recipe) = (body, name.clone());
        in_background(move || {
            let upload =
                Handle::current().block_on(RecipeUpload::read_parts(checked, &boundary))?;
            upload.read_recipe(&name_of_recipe).map(drop)
        })
        .await?;
        let change = change_through_log(replica, EntryKind::PutRecipe, &name, upload);
        let (answer, record) = change.await?;
        drop(held);
        let status = match answer {
            EntryAnswer::Uploaded(UploadOutcome::Created) => StatusCode::CREATED,
            _ => StatusCode::OK,
        };
        let body = describe_recipe(&service, &caller, &name)?;
        return Ok(with_position(
            responses::json_response(status, &body),
            record,
        ));
    }
    in_background(move || {
        let upload = Handle::current().block_on(RecipeUpload::read_parts(body, &boundary))?;
        let read = || upload.read_recipe(&name);
        let outcome = service
            .recipes
            .put_recipe(&name, &service.collections, read)?;
        drop((room, more));
        let status = match outcome {
            UploadOutcome::Created => StatusCode::CREATED,
            UploadOutcome::Replaced | UploadOutcome::Unchanged => StatusCode::OK,
        };
        let body = describe_recipe(&service, &caller, &name)?;
        Ok(responses::json_response(status, &body))
    })
    .await
}

/// Deletes a recipe that no collection uses.
pub(crate) async fn delete_recipe(api_request: ApiRequest) -> ApiResult {
    let service = Arc::clone(&api_request.service);
    let name = api_request.path_part("recipe");
    if let Some(replica) = &service.replica {
        let change = change_through_log(replica, EntryKind::DeleteRecipe, &name, Vec::new());
        let (_, record) = change.await?;
        return Ok(with_position(responses::empty_response(), record));
    }
    in_background(move || {
        service.recipes.delete_recipe(&name, &service.collections)?;
        Ok(responses::empty_response())
    })
    .await
}
