//! Candidate pairs: documents that share a bucket key.
//!
//! A match plan says which bucket keys a document has: bands of its signature, rare features, blocks of its
//! fingerprint, the key of its text. Documents with a key in common share a bucket, and only pairs within a
//! bucket are verified. A bucket that is too dense to compare pair by pair gets a bitmap filter.

pub(crate) mod bitmap_filter;
pub(crate) mod buckets;
mod containment_filter;
mod feature_counters;
mod key_choice;
mod key_combiner;
mod prefix_filter;
mod seen_twice_filter;
mod sketch_keys;
mod union_find;

pub(crate) use buckets::BucketSide;
pub(crate) use containment_filter::{ContainmentFilter, PrefixHits};
pub(crate) use feature_counters::FeatureCounters;
pub(crate) use key_choice::{KEY_SAMPLE, KeyChoice, KeyPrices, RarestSource};
pub(crate) use key_combiner::KeyBuffer;
pub(crate) use prefix_filter::{PrefixLengths, PrefixTable, RarestFeatures, feature_key};
pub(crate) use seen_twice_filter::{MAX_SEEN_TWICE, SeenTwiceFilter};
pub(crate) use sketch_keys::{KeyPortion, SketchKeys, band_key, equal_text_key};
pub(crate) use union_find::UnionFind;
