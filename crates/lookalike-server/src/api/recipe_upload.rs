//! An uploaded recipe: `multipart/form-data` with the recipe as TOML and the files that it names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use lookalike::Recipe;
use multer::{Field, Multipart};

use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};
use crate::json::bad_settings;

/// Largest body, in bytes, of an upload.
pub(crate) const MAX_UPLOAD_BYTES: u64 = 32 << 20;

/// Largest number of parts: the recipe and its files.
pub(crate) const MAX_PARTS: usize = 32;

/// Longest file name, in bytes.
const LONGEST_FILE_NAME: usize = 255;

/// Most copies of a body that are in memory while it is parsed: the body, its parts, and the tables made of them.
pub(crate) const BODY_COPIES: usize = 4;

/// Name of the part with the recipe.
const RECIPE_PART: &str = "recipe";

/// Name of the parts with files.
const FILE_PART: &str = "file";

/// The parts of an upload.
#[derive(Debug, Default)]
pub(crate) struct RecipeUpload {
    toml: Option<String>,
    /// Contents by file name.
    files: BTreeMap<String, Arc<[u8]>>,
}

/// Returns the boundary between the parts of a body.
///
/// # Errors
/// If the `Content-Type` is not `multipart/form-data` with a boundary.
pub(crate) fn find_boundary(headers: &HeaderMap) -> Result<String, ApiProblem> {
    let stated = headers.get(header::CONTENT_TYPE);
    let stated = stated.map_or("", |header| header.to_str().unwrap_or("?"));
    multer::parse_boundary(stated).map_err(|_| {
        let detail = format!(
            "the Content-Type is '{}': give multipart/form-data with a boundary, with the recipe as \
             the part `{RECIPE_PART}` and each of its files as a part `{FILE_PART}`",
            shorten_text(stated)
        );
        ApiProblem::new(ProblemCode::UnsupportedType, detail)
    })
}

impl RecipeUpload {
    /// Takes a body apart.
    ///
    /// # Errors
    /// If it is malformed or incomplete, or has a part that is unknown, repeated or too many.
    pub(crate) async fn read_parts(body: Bytes, boundary: &str) -> Result<Self, ApiProblem> {
        let mut parts = Multipart::new(Body::from(body).into_data_stream(), boundary);
        let mut upload = Self::default();
        while let Some(part) = parts.next_field().await.map_err(malformed_body)? {
            upload.add_part(part).await?;
        }
        Ok(upload)
    }

    async fn add_part(&mut self, part: Field<'_>) -> Result<(), ApiProblem> {
        let count = self.files.len() + usize::from(self.toml.is_some());
        if count >= MAX_PARTS {
            let detail = format!("the body has more than {MAX_PARTS} parts, the limit");
            return Err(ApiProblem::new(ProblemCode::TooLarge, detail));
        }
        match part.name() {
            Some(RECIPE_PART) if self.toml.is_some() => {
                Err(bad_part("the part `recipe` is repeated"))
            }
            Some(RECIPE_PART) => {
                let bytes = part.bytes().await.map_err(malformed_body)?;
                self.toml = Some(decode_toml(&bytes)?);
                Ok(())
            }
            Some(FILE_PART) => {
                let name = self.check_file_name(part.file_name())?;
                let content = part.bytes().await.map_err(malformed_body)?;
                self.files.insert(name, (&*content).into());
                Ok(())
            }
            name => Err(bad_part(format!(
                "the part `{}` is unknown: send the recipe as the part `{RECIPE_PART}` and each of its \
                 files as a part `{FILE_PART}`",
                shorten_text(name.unwrap_or_default())
            ))),
        }
    }

    fn check_file_name(&self, name: Option<&str>) -> Result<String, ApiProblem> {
        let name = name.unwrap_or_default();
        if !(1..=LONGEST_FILE_NAME).contains(&name.len()) {
            return Err(bad_part(format!(
                "a part `{FILE_PART}` has a filename of {} bytes: give the name that the recipe has for \
                 the file, of 1 to {LONGEST_FILE_NAME} bytes",
                name.len()
            )));
        }
        if self.files.contains_key(name) {
            Err(bad_part(format!(
                "the file '{}' is sent twice",
                shorten_text(name)
            )))
        } else {
            Ok(name.to_owned())
        }
    }

    /// Returns the recipe with its files, under the name of the upload.
    ///
    /// # Errors
    /// If it is not a valid recipe, a file is missing, invalid, not the one whose digest the recipe has, or not
    /// named by the recipe.
    pub(crate) fn read_recipe(self, name: &str) -> Result<Recipe, ApiProblem> {
        let toml = self.toml.ok_or_else(|| {
            bad_part(format!(
                "the part `{RECIPE_PART}` with the TOML of the recipe is missing"
            ))
        })?;
        let missing = RefCell::new(None);
        let find = |file: &str| {
            let found = self.files.get(file).cloned();
            if found.is_none() {
                missing.replace(Some(file.to_owned()));
            }
            found
        };
        let read = Recipe::read_with_files(&toml, &find);
        if let Some(file) = missing.into_inner() {
            return Err(bad_settings(format!(
                "the recipe names the file '{0}', which is not sent: send it as a part `{FILE_PART}` with \
                 the filename '{0}'",
                shorten_text(&file)
            )));
        }
        let mut recipe = read.map_err(bad_settings)?;
        let named = recipe.file_names();
        let is_named = |file: &&String| named.iter().any(|(_, known)| known == *file);
        if let Some(stray) = self.files.keys().find(|file| !is_named(file)) {
            return Err(bad_settings(format!(
                "the file '{}' is sent, but the recipe does not name it: leave it out, or name it in \
                 the recipe",
                shorten_text(stray)
            )));
        }
        name.clone_into(&mut recipe.name);
        Ok(recipe)
    }
}

fn decode_toml(bytes: &[u8]) -> Result<String, ApiProblem> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        bad_part(format!(
            "the part `{RECIPE_PART}` is not UTF-8 at byte {at}"
        ))
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned())
}

fn bad_part(detail: impl Into<String>) -> ApiProblem {
    ApiProblem::new(ProblemCode::BadBody, detail)
}

fn malformed_body(error: multer::Error) -> ApiProblem {
    bad_part(format!(
        "the body is not valid multipart/form-data: {error}"
    ))
}
