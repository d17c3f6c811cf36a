//! Candidate pairs: documents that share a bucket key.
//!
//! A match plan says which bucket keys a document has: bands of its signature, rare features, blocks of its
//! fingerprint, the key of its text. Documents with a key in common share a bucket, and only pairs within a
//! bucket are verified. A bucket that is too dense to compare pair by pair gets a bitmap filter.

pub(crate) mod bitmap_filter;
pub(crate) mod bucket_keys;
pub(crate) mod buckets;
mod union_find;

pub(crate) use bucket_keys::{
    FeatureCounters, PrefixLengths, RarestFeatures, band_key, block_key, equal_text_key,
    feature_key, smallest_key,
};
pub(crate) use buckets::BucketSide;
pub(crate) use union_find::UnionFind;
