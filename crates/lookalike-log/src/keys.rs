//! Keys of the objects of a log.
//!
//! | key | object |
//! |---|---|
//! | `log/NNNNNNNNNNNNNNNN` | record, by its number in 16 hexadecimal digits |
//! | `pruned` | number before which records may have been removed ([`prune_log`](crate::prune_log)) |
//! | `replicas/NAME` | [mark of a replica](crate::ReplicaMark) |
//! | `checks/NAME` | object with which a replica [checks the store](crate::check_exclusive_creation) |
//! | `replaced/NNNNNNNNNNNNNNNN-DIGEST` | record that a repair has replaced by another one |
//! | `snapshots/NAME/…` | snapshot of the state; of its manifest the log reads places alone |

use crate::store::StoreError;

/// Prefix of the keys of records.
pub const RECORD_PREFIX: &str = "log/";

/// Prefix of the keys of marks.
pub const REPLICA_PREFIX: &str = "replicas/";

/// Prefix of the keys of snapshots.
pub const SNAPSHOT_PREFIX: &str = "snapshots/";

/// Name of the object, below the prefix of a snapshot, that makes the snapshot complete.
pub const SNAPSHOT_MANIFEST: &str = "manifest.json";

/// Prefix of the keys of records that a repair has replaced.
const REPLACED_PREFIX: &str = "replaced/";

/// Key of the object that says which records may have been removed.
pub(crate) const PRUNED_KEY: &str = "pruned";

/// Longest name of a replica, in bytes.
pub const MAX_REPLICA_NAME: usize = 64;

/// Returns the key of a record.
pub fn record_key(number: u64) -> String {
    format!("{RECORD_PREFIX}{number:016x}")
}

/// Returns the key under which a repair keeps a record that it has replaced, by the text of its digest.
pub(crate) fn replaced_key(number: u64, digest: &str) -> String {
    format!("{REPLACED_PREFIX}{number:016x}-{}", &digest[..16])
}

/// Names a record for people, by its number and its object: `record 18 (object 'log/0000000000000012')`.
pub fn describe_record(number: u64) -> String {
    format!("record {number} (object '{}')", record_key(number))
}

/// Returns the number of a record by its key; `None` if the key is not that of a record.
pub fn parse_record_key(key: &str) -> Option<u64> {
    let digits = key.strip_prefix(RECORD_PREFIX)?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (number > 0 && record_key(number) == key).then_some(number)
}

/// Checks the name of a replica: 1 to 64 lower-case letters, digits, `-` and `_`, beginning with a letter or digit, as
/// the names of collections.
///
/// # Errors
/// If the name is another one.
pub fn check_replica_name(name: &str) -> Result<(), StoreError> {
    let is_of_alphabet = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
    };
    let begins_well = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    if begins_well && name.len() <= MAX_REPLICA_NAME && name.bytes().all(is_of_alphabet) {
        return Ok(());
    }
    let shown: String = name.chars().take(MAX_REPLICA_NAME).collect();
    Err(StoreError::permanent(format!(
        "'{shown}' is not a valid name of a replica: a name has 1 to {MAX_REPLICA_NAME} of the letters a to z, digits, \
         - and _, and begins with a letter or digit"
    )))
}
