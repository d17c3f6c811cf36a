//! Applies records to collections, recipes and aliases.
//!
//! Everything here depends on the records alone, so that all replicas derive the same state. A refusal that every
//! replica makes, for example of an id with other content, is an answer. A failure of this machine, for example of its
//! disk, ends the application before the entry that failed, and the replica stops.
//!
//! After a crash, records are applied again from the [checkpoint](super::checkpoint) on. Each collection knows [which
//! entries it has](super::applied_entries), and skips them. Other entries, for example of aliases,
//! have the same effect when they are applied twice, but not together with later ones. So each of them is followed by a
//! checkpoint.

use lookalike::text::AnalysisScratch;
use lookalike_log::{EntryKind, LogEntry, LogRecord, RecordDigest};
use lookalike_store::{LogPosition, LoggedAdmission, PendingInsert};
use rayon::prelude::*;
use std::sync::{Arc, Weak};
use tokio::runtime::Handle;

use super::LogClock;
use super::proposals::{EntryAnswer, EntryOutcome, EntryReply, OwnEntry, PreparedInsert};
use super::restoration::DifferingCheck;
use super::state_check::CheckSchedule;
use crate::api::aliases::read_changes;
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::api::recipe_upload::RecipeUpload;
use crate::collections::open_collection::{OpenCollection, PreparationResult, RefusedDocument};
use crate::collections::{CollectionStatus, ServedCollections};
use crate::json::decisions::read_decision;
use crate::json::settings::{read_change, read_settings};
use crate::recipes::ServedRecipes;

/// Applies records, in the order of the log.
pub(crate) struct RecordApplier<'a> {
    pub(crate) collections: &'a ServedCollections,
    pub(crate) recipes: &'a ServedRecipes,
    pub(crate) clock: &'a LogClock,
    pub(super) checks: &'a CheckSchedule,
    /// Name of the snapshot from which this replica began.
    pub(super) first_snapshot: Option<String>,
    /// SHA-256 of the manifest of that snapshot, if it is known.
    pub(super) first_manifest: Option<RecordDigest>,
    /// Number of entries that are applied already, of a record that was being applied at a crash.
    pub(super) partial: Option<LogPosition>,
    /// Called after an entry that changed more than rows, with the position behind it. Everything is on disk when it
    /// returns, so that no such entry is applied again together with later ones.
    pub(super) note_service_change: &'a dyn Fn(LogPosition) -> Result<(), LocalFailure>,
    /// Called with each comparison that differs, so that a restoration goes on; `None` for a replica.
    pub(super) note_difference: Option<&'a dyn Fn(DifferingCheck)>,
    /// Runs the parser of uploads.
    pub(crate) runtime: &'a Handle,
}

/// Reason why this machine cannot apply an entry that others can.
pub(crate) type LocalFailure = String;

/// Result of an entry: the answer, or the refusal that all replicas make.
type EntryResult = Result<EntryAnswer, ApiProblem>;

/// An insert of a run, as far as this replica has it already.
struct RunInsert<'a> {
    position: LogPosition,
    sent: &'a [u8],
    prepared: Option<PreparedInsert>,
    reply: Option<EntryReply>,
}

impl RecordApplier<'_> {
    /// Applies the entries of a record in their order, and answers those of this replica.
    ///
    /// # Errors
    /// If this machine cannot apply an entry. The entries before it are applied.
    pub(crate) fn apply_record(
        &self,
        record: &LogRecord,
        own: Vec<OwnEntry>,
    ) -> Result<(), LocalFailure> {
        self.clock.set_time(record.time_us);
        let is_own = !own.is_empty();
        let mut own = own.into_iter();
        let partial = self
            .partial
            .filter(|partial| partial.record == record.number);
        let mut at = partial.map_or(0, |partial| partial.entry as usize);
        while let Some(entry) = record.entries.get(at) {
            let run = insert_run_length(&record.entries[at..]);
            if run == 0 {
                let own = own.next();
                let position = position_at(record, at);
                let result = self.apply_change(entry, position, record)?;
                at += 1;
                if changes_service(entry.kind) {
                    (self.note_service_change)(position_at(record, at))?;
                }
                send_reply(own.map(|own| own.reply), record.number, result);
                continue;
            }
            let inserts = record.entries[at..at + run].iter().enumerate();
            let inserts = inserts.map(|(offset, entry)| {
                let own = own.next();
                let (prepared, reply) = match own {
                    Some(own) => (own.prepared, Some(own.reply)),
                    None => (None, None),
                };
                RunInsert {
                    position: position_at(record, at + offset),
                    sent: &entry.body,
                    prepared,
                    reply,
                }
            });
            self.apply_inserts(&entry.subject, record.number, inserts.collect())?;
            at += run;
        }
        self.checks.note_record(record, is_own, self.collections)
    }

    /// Applies inserts into one collection.
    fn apply_inserts(
        &self,
        name: &str,
        record: u64,
        inserts: Vec<RunInsert<'_>>,
    ) -> Result<(), LocalFailure> {
        let open = match self.look_up_subject(name) {
            Ok(open) => open,
            Err(problem) => {
                let problem = refusal_of_all(problem)?;
                for insert in inserts {
                    send_reply(insert.reply, record, Err(problem.clone()));
                }
                return Ok(());
            }
        };
        let last = open.last_row_position()?;
        let inserts = inserts.into_iter();
        let inserts = inserts.filter(|insert| Some(insert.position) > last);
        let (documents, replies) = prepare_run(&open, inserts.collect());
        let mut ready: Vec<PendingInsert> = Vec::with_capacity(documents.len());
        let mut waiting = Vec::with_capacity(documents.len());
        for (prepared, reply) in documents.into_iter().zip(replies) {
            match prepared {
                Ok(document) => {
                    ready.push(document);
                    waiting.push(reply);
                }
                Err(refused) => {
                    let refused = RefusedDocument {
                        problem: refusal_of_all(refused.problem)?,
                        ..refused
                    };
                    send_outcome(reply, record, Err(refused));
                }
            }
        }
        let LoggedAdmission { answers, stopped } = open.collection.admit_logged(&mut ready);
        let admitted = ready.iter().zip(answers).zip(waiting);
        for ((document, answer), reply) in admitted {
            let answer = answer.map_err(|error| RefusedDocument {
                id: Some(document.id().to_owned()),
                problem: open.to_problem(error),
            });
            open.count_answer(&answer);
            send_outcome(reply, record, answer.map(EntryAnswer::Inserted));
        }
        match stopped {
            None => Ok(()),
            Some(error) => Err(format!(
                "the collection '{name}': {}",
                open.to_problem(error).detail
            )),
        }
    }

    /// Applies an entry that is no insert.
    fn apply_change(
        &self,
        entry: &LogEntry,
        position: LogPosition,
        record: &LogRecord,
    ) -> Result<EntryResult, LocalFailure> {
        let name = &entry.subject;
        let result = match entry.kind {
            EntryKind::Insert => unreachable!("inserts are applied in runs"),
            EntryKind::Delete => self.delete_document(name, &entry.body, position),
            EntryKind::Decide => self.decide(name, &entry.body, position),
            EntryKind::CreateCollection => self.create_collection(name, &entry.body, position),
            EntryKind::DeleteCollection => self.delete_collection(name, position),
            EntryKind::ChangeSettings => self.change_settings(name, &entry.body, position),
            EntryKind::ChangeAliases => self.change_aliases(&entry.body),
            EntryKind::PutRecipe => self.put_recipe(name, &entry.body),
            EntryKind::DeleteRecipe => self
                .recipes
                .delete_recipe(name, self.collections)
                .map(|()| EntryAnswer::Changed),
            EntryKind::AdvanceClock => {
                self.expire_documents(position)?;
                self.checks.note_advance(record.time_us);
                Ok(EntryAnswer::Changed)
            }
            EntryKind::CheckState => {
                match self.note_difference {
                    None => self.checks.compare_state(&entry.body, record)?,
                    Some(note_difference) => {
                        let found = self.checks.find_difference(&entry.body, record);
                        found.into_iter().for_each(note_difference);
                    }
                }
                Ok(EntryAnswer::Changed)
            }
            EntryKind::Begin => {
                self.check_beginning(name, &entry.body, &record.writer)?;
                Ok(EntryAnswer::Changed)
            }
        };
        match result {
            Ok(answer) => Ok(Ok(answer)),
            Err(problem) => refusal_of_all(problem).map(Err),
        }
    }

    /// Returns the collection of an entry that changes documents.
    ///
    /// # Errors
    /// If there is none, it is not open, or the alias of the entry leads elsewhere by now.
    fn look_up_subject(&self, subject: &str) -> Result<Arc<OpenCollection>, ApiProblem> {
        let Some((alias, collection)) = subject.split_once(ALIAS_SEPARATOR) else {
            return self.collections.look_up_collection(subject);
        };
        if self.collections.resolve_name(alias) != collection {
            let detail = format!(
                "the alias '{alias}' led to '{collection}' when the request came, and does not any more: send the same \
                 again"
            );
            return Err(ApiProblem::new(ProblemCode::Behind, detail));
        }
        self.collections.look_up_collection(collection)
    }

    fn delete_document(&self, name: &str, id: &[u8], position: LogPosition) -> EntryResult {
        let open = self.look_up_subject(name)?;
        let is_applied = open.has_rows_of(position);
        if is_applied.map_err(|error| disk_problem(&error))? {
            return Ok(EntryAnswer::Deleted(true));
        }
        let id = String::from_utf8_lossy(id);
        let deleted = open.collection.delete_logged(&id, position);
        let deleted = deleted.map_err(|error| open.to_problem(error))?;
        Ok(EntryAnswer::Deleted(deleted))
    }

    fn decide(&self, name: &str, line: &[u8], position: LogPosition) -> EntryResult {
        let open = self.look_up_subject(name)?;
        let is_applied = open.has_rows_of(position);
        if is_applied.map_err(|error| disk_problem(&error))? {
            return Ok(EntryAnswer::Changed);
        }
        let read = read_decision(line, &open.recipe_ids())?;
        let outcome = open.collection.decide_logged(&read.request, position);
        let outcome = outcome.map_err(|error| open.to_problem(error))?;
        Ok(EntryAnswer::Decided(Box::new(outcome)))
    }

    fn create_collection(&self, name: &str, body: &[u8], position: LogPosition) -> EntryResult {
        if self.is_created_later(name, position) {
            return Ok(EntryAnswer::Created(false));
        }
        let _unchanged = self.recipes.keep_unchanged();
        let uploaded = |name: &str| self.recipes.load_recipe(name);
        let settings = read_settings(body, &uploaded)?;
        let (_, was_created) =
            self.collections
                .create_collection_at(name, &settings, Some(position))?;
        self.checks.update_interval(self.collections);
        Ok(EntryAnswer::Created(was_created))
    }

    fn delete_collection(&self, name: &str, position: LogPosition) -> EntryResult {
        if !self.is_created_later(name, position) {
            self.collections.delete_at_once(name)?;
            self.checks.update_interval(self.collections);
        }
        Ok(EntryAnswer::Changed)
    }

    fn change_settings(&self, name: &str, body: &[u8], position: LogPosition) -> EntryResult {
        let open = self.collections.look_up_collection(name)?;
        if !open.has_settings_of(position) {
            let change = read_change(body)?;
            self.collections
                .change_settings_at(name, &change, position)?;
            self.checks.update_interval(self.collections);
        }
        Ok(EntryAnswer::Changed)
    }

    fn change_aliases(&self, body: &[u8]) -> EntryResult {
        self.collections.change_aliases(read_changes(body)?)?;
        Ok(EntryAnswer::Changed)
    }

    fn put_recipe(&self, name: &str, body: &[u8]) -> EntryResult {
        let (boundary, parts) = split_upload(body)?;
        let upload = RecipeUpload::read_parts(parts.to_vec().into(), boundary);
        let upload = self.runtime.block_on(upload)?;
        let read = || upload.read_recipe(name);
        let outcome = self.recipes.put_recipe(name, self.collections, read)?;
        Ok(EntryAnswer::Uploaded(outcome))
    }

    /// Checks that this replica began with the snapshot with which the log begins. `digest` is that of its manifest, and
    /// empty in entries of older versions.
    fn check_beginning(
        &self,
        snapshot: &str,
        digest: &[u8],
        writer: &str,
    ) -> Result<(), LocalFailure> {
        let first = self.first_snapshot.as_deref();
        if begins_with(snapshot, digest, first, self.first_manifest) {
            return Ok(());
        }
        Err(format!(
            "the shared log begins with the collections of the replica '{writer}', which this one did not have: start \
             it again with an empty directory"
        ))
    }

    /// Expires documents of all collections by the clock of the log.
    fn expire_documents(&self, position: LogPosition) -> Result<(), LocalFailure> {
        for (name, state) in self.collections.list_states() {
            let CollectionStatus::Open(open) = state else {
                continue;
            };
            if open.has_rows_of(position)? {
                continue;
            }
            let expired = open.collection.expire_logged();
            expired.map_err(|error| format!("the collection '{name}': {error}"))?;
        }
        Ok(())
    }

    /// Returns `true` if the collection of this name was created at this position or behind it, so that an entry is of
    /// an earlier collection of the same name.
    fn is_created_later(&self, name: &str, position: LogPosition) -> bool {
        let open = self.collections.look_up_collection(name);
        open.is_ok_and(|open| open.is_created_from(position))
    }
}

/// Stands between the alias and the collection of a subject. No name has it.
const ALIAS_SEPARATOR: char = '@';

/// Returns the name of the collection in the subject of an entry that changes documents.
pub(super) fn collection_of_subject(subject: &str) -> &str {
    let parts = subject.split_once(ALIAS_SEPARATOR);
    parts.map_or(subject, |(_, collection)| collection)
}

/// Returns the subject of an entry for a collection that was named by an alias. All replicas refuse it if the alias leads
/// elsewhere before the entry.
pub(crate) fn alias_subject(alias: &str, collection: &str) -> String {
    format!("{alias}{ALIAS_SEPARATOR}{collection}")
}

/// Returns `true` if a log that begins with a snapshot begins with the one from which this replica began. `digest` is that of
/// its manifest, and empty in entries of older versions.
fn begins_with(
    snapshot: &str,
    digest: &[u8],
    first_snapshot: Option<&str>,
    first_manifest: Option<RecordDigest>,
) -> bool {
    let is_same_content = first_manifest.is_none_or(|own| digest.is_empty() || digest == own.0);
    first_snapshot == Some(snapshot) && is_same_content
}

/// Returns `true` for entries that change more than the rows of a collection.
fn changes_service(kind: EntryKind) -> bool {
    !matches!(
        kind,
        EntryKind::Insert
            | EntryKind::Delete
            | EntryKind::Decide
            | EntryKind::AdvanceClock
            | EntryKind::CheckState
    )
}

/// Returns the body of an entry that uploads a recipe: the boundary of the parts, a line feed, and the parts.
pub(crate) fn upload_entry_body(boundary: &str, parts: &[u8]) -> Vec<u8> {
    [boundary.as_bytes(), b"\n", parts].concat()
}

fn split_upload(body: &[u8]) -> Result<(&str, &[u8]), ApiProblem> {
    let malformed = || ApiProblem::new(ProblemCode::BadBody, "the upload has no boundary");
    let end = memchr::memchr(b'\n', body).ok_or_else(malformed)?;
    let boundary = std::str::from_utf8(&body[..end]).map_err(|_| malformed())?;
    Ok((boundary, &body[end + 1..]))
}

fn position_at(record: &LogRecord, at: usize) -> LogPosition {
    LogPosition {
        record: record.number,
        entry: at as u32,
    }
}

/// Returns how many of the first entries are inserts into one collection.
fn insert_run_length(entries: &[LogEntry]) -> usize {
    let first = &entries[0].subject;
    let is_of_run = |entry: &&LogEntry| entry.kind == EntryKind::Insert && entry.subject == *first;
    entries.iter().take_while(is_of_run).count()
}

/// Prepares the inserts of a run, on all threads, except those that this replica has prepared for the same collection.
fn prepare_run(
    open: &Arc<OpenCollection>,
    inserts: Vec<RunInsert<'_>>,
) -> (Vec<PreparationResult>, Vec<Option<EntryReply>>) {
    let mut replies = Vec::with_capacity(inserts.len());
    let inserts: Vec<_> = inserts
        .into_iter()
        .map(|insert| {
            replies.push(insert.reply);
            (insert.position, insert.sent, insert.prepared)
        })
        .collect();
    let own = Arc::downgrade(open);
    let prepare = |scratch: &mut AnalysisScratch, (position, sent, prepared)| {
        let usable = PreparedInsert::is_for(prepared, &own);
        let document = match usable {
            Some(document) => Ok(*document),
            None => open.prepare_document(sent, scratch),
        };
        document.map(|mut document| {
            document.set_log_position(position);
            document
        })
    };
    let is_prepared = inserts.iter().all(|(_, _, prepared)| prepared.is_some());
    let prepared = if is_prepared || inserts.len() == 1 {
        let mut scratch = AnalysisScratch::default();
        let inserts = inserts.into_iter();
        inserts
            .map(|insert| prepare(&mut scratch, insert))
            .collect()
    } else {
        let inserts = inserts.into_par_iter();
        inserts
            .map_init(AnalysisScratch::default, prepare)
            .collect()
    };
    (prepared, replies)
}

impl PreparedInsert {
    /// Returns the document, if it was prepared for this open collection.
    fn is_for(prepared: Option<Self>, open: &Weak<OpenCollection>) -> Option<Box<PendingInsert>> {
        let prepared = prepared?;
        prepared.open.ptr_eq(open).then_some(prepared.document)
    }
}

/// Returns a refusal that every replica makes.
///
/// The list is complete, so that a new code must be decided. A code that no entry can meet counts as a failure of this
/// machine: a replica that stops is noticed, and one that alone refuses an entry differs from the others without a word.
///
/// # Errors
/// If it is a failure of this machine.
fn refusal_of_all(problem: ApiProblem) -> Result<ApiProblem, LocalFailure> {
    match problem.code {
        // The content of the entry and the entries before it decide these.
        ProblemCode::BadRequest
        | ProblemCode::BadJson
        | ProblemCode::BadBody
        | ProblemCode::BadName
        | ProblemCode::BadSettings
        | ProblemCode::BadDocument
        | ProblemCode::BadDecision
        | ProblemCode::TooLarge
        | ProblemCode::UnsupportedType
        | ProblemCode::NoCollection
        | ProblemCode::NoAlias
        | ProblemCode::NoRecipe
        | ProblemCode::NoDocument
        | ProblemCode::IdConflict
        | ProblemCode::CollectionConflict
        | ProblemCode::RecipeConflict
        // A replica proposed it before it knew where an alias leads.
        | ProblemCode::Behind => Ok(problem),
        // The disk, or the state of a file of this machine.
        ProblemCode::Disk
        | ProblemCode::DiskFull
        | ProblemCode::Damaged
        | ProblemCode::Stopped
        | ProblemCode::NotReady
        | ProblemCode::Deleting
        // Limits on time and work, none of which holds for entries.
        | ProblemCode::TooSlow
        | ProblemCode::TooCostly
        | ProblemCode::Busy
        | ProblemCode::TooManyRequests
        | ProblemCode::PassagesNotReady
        | ProblemCode::PassageMemory
        // Requests alone meet these.
        | ProblemCode::Unauthenticated
        | ProblemCode::Forbidden
        | ProblemCode::NoSuchPlace
        | ProblemCode::NoSnapshot
        | ProblemCode::NoCluster
        | ProblemCode::NoDecision
        | ProblemCode::MethodNotAllowed
        | ProblemCode::SnapshotConflict
        | ProblemCode::UnsupportedEncoding
        | ProblemCode::WrongHost
        | ProblemCode::HeadTooLarge
        | ProblemCode::LogUnavailable
        | ProblemCode::LogStopped
        | ProblemCode::CatchingUp
        | ProblemCode::Stopping => Err(problem.detail),
    }
}

fn disk_problem(error: &str) -> ApiProblem {
    ApiProblem::new(ProblemCode::Disk, error)
}

fn send_reply(reply: Option<EntryReply>, record: u64, result: EntryResult) {
    send_outcome(reply, record, result.map_err(RefusedDocument::from));
}

fn send_outcome(
    reply: Option<EntryReply>,
    record: u64,
    result: Result<EntryAnswer, RefusedDocument>,
) {
    if let Some(reply) = reply {
        reply(EntryOutcome { record, result });
    }
}

#[cfg(test)]
mod tests {
    use lookalike_log::simulation::MemoryStore;
    use lookalike_log::{AppendOutcome, LogTail, SharedLog};
    use lookalike_store::CollectionOptions;
    use tokio::runtime::Runtime;

    use super::*;
    use crate::service::follower_options;

    /// Returns a record with entries.
    fn record_of(entries: Vec<LogEntry>) -> LogRecord {
        let store = Arc::new(MemoryStore::new());
        let mut log = SharedLog::open(store, "a", LogTail::default());
        match log.append(entries, 1_000_000).unwrap() {
            AppendOutcome::Appended(record) => record,
            AppendOutcome::Overtaken { .. } => unreachable!("nobody else writes"),
        }
    }

    fn entry(kind: EntryKind, subject: &str, body: &[u8]) -> LogEntry {
        LogEntry {
            kind,
            subject: subject.to_owned(),
            body: body.to_vec(),
        }
    }

    /// Applies entries to the collections of a directory, with a headroom that no disk has.
    fn apply_entries(
        folder: &std::path::Path,
        entries: Vec<LogEntry>,
    ) -> (Result<(), LocalFailure>, Vec<String>) {
        apply_proposed(folder, entries, Vec::new())
    }

    /// The same, of entries that this replica has proposed.
    fn apply_proposed(
        folder: &std::path::Path,
        entries: Vec<LogEntry>,
        own: Vec<OwnEntry>,
    ) -> (Result<(), LocalFailure>, Vec<String>) {
        let runtime = Runtime::new().unwrap();
        let clock = LogClock::default();
        let options = CollectionOptions {
            headroom: u64::MAX / 2,
            ..CollectionOptions::default()
        };
        let options = follower_options(options, &clock);
        let collections = ServedCollections::new(folder, options).unwrap();
        let recipes = ServedRecipes::open(folder, 0, 1 << 20).unwrap();
        let applier = RecordApplier {
            collections: &collections,
            recipes: &recipes,
            clock: &clock,
            checks: &CheckSchedule::new("a"),
            first_snapshot: None,
            first_manifest: None,
            partial: None,
            note_service_change: &|_| Ok(()),
            note_difference: None,
            runtime: runtime.handle(),
        };
        let applied = applier.apply_record(&record_of(entries), own);
        (applied, collections.open_names())
    }

    /// A replica stops at a beginning with another snapshot than its own, or with another one of the same name.
    #[test]
    fn beginning_names_the_content_of_its_snapshot() {
        let own = RecordDigest([7; 32]);
        assert!(begins_with("s", &own.0, Some("s"), Some(own)));
        assert!(!begins_with("s", &[8; 32], Some("s"), Some(own)));
        assert!(!begins_with("s", &own.0, Some("t"), Some(own)));
        assert!(!begins_with("s", &own.0, None, None));
        // Logs and checkpoints of older versions have the name alone.
        assert!(begins_with("s", b"", Some("s"), Some(own)));
        assert!(begins_with("s", &own.0, Some("s"), None));
    }

    /// The room on the disk of one replica does not decide whether a collection exists.
    #[test]
    fn headroom_refuses_no_collection_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let create = entry(EntryKind::CreateCollection, "a", b"{}");
        let (applied, names) = apply_entries(folder.path(), vec![create]);
        assert_eq!((applied, names), (Ok(()), vec!["a".to_owned()]));
    }

    /// Files of others in the directory of a new collection stop this replica, because the others create it.
    #[test]
    fn files_of_others_are_no_refusal_of_all() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/notes.txt"), "mine").unwrap();
        let create = entry(EntryKind::CreateCollection, "a", b"{}");
        let (applied, names) = apply_entries(folder.path(), vec![create]);
        let reason = applied.unwrap_err();
        assert!(reason.contains("notes.txt"), "{reason}");
        assert!(names.is_empty());
    }

    /// An entry for an alias is refused once that leads elsewhere, and taken before.
    #[test]
    fn entries_follow_no_alias_that_was_switched() {
        let folder = tempfile::tempdir().unwrap();
        let document = br#"{"id": "1", "text": "The ferry leaves at seven in the morning."}"#;
        let insert = || entry(EntryKind::Insert, &alias_subject("news", "a"), document);
        let aliases = |collection: &str| {
            let body = format!(r#"{{"set": {{"news": "{collection}"}}, "remove": []}}"#);
            entry(EntryKind::ChangeAliases, "", body.as_bytes())
        };
        let entries = vec![
            entry(EntryKind::CreateCollection, "a", b"{}"),
            entry(EntryKind::CreateCollection, "b", b"{}"),
            aliases("a"),
            insert(),
            aliases("b"),
            insert(),
            entry(EntryKind::Delete, &alias_subject("news", "a"), b"1"),
        ];
        let (sender, outcomes) = std::sync::mpsc::channel();
        let own = entries.iter().map(|_| {
            let sender = sender.clone();
            let reply = move |outcome: EntryOutcome| {
                let code = outcome.result.err().map(|refused| refused.problem.code);
                sender.send(code).unwrap();
            };
            OwnEntry::new(Box::new(reply))
        });
        let own = own.collect();
        let (applied, _) = apply_proposed(folder.path(), entries, own);
        assert_eq!(applied, Ok(()));
        drop(sender);
        let behind = Some(ProblemCode::Behind);
        let expected = [None, None, None, None, None, behind, behind];
        assert_eq!(Vec::from_iter(outcomes), expected);
    }

    /// A collection that does not exist is none for every replica, and the entries behind it are applied.
    #[test]
    fn refusals_of_all_let_the_record_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let entries = vec![
            entry(EntryKind::DeleteCollection, "a", b""),
            entry(EntryKind::Delete, "a", b"id"),
            entry(EntryKind::ChangeSettings, "a", b"{}"),
            entry(EntryKind::DeleteRecipe, "own", b""),
            entry(EntryKind::CreateCollection, "b", b"{}"),
        ];
        let (applied, names) = apply_entries(folder.path(), entries);
        assert_eq!((applied, names), (Ok(()), vec!["b".to_owned()]));
    }
}
