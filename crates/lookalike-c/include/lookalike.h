/* lookalike: near-duplicate texts, for programs in C and for languages that call C.
 *
 * Texts, ids, paths and JSON are UTF-8 with a length in bytes; they need not end with a NUL. The library copies what it
 * keeps, so arguments may be freed after a call. A function that can fail returns a status. Its last argument is a place
 * for an error object, which may be NULL: it becomes NULL after success, and otherwise has a message that names the value,
 * the limit and the place.
 *
 * Threads: every function may be called from several threads at once, on the same settings and the same stream, too.
 * A stream prepares documents side by side and inserts them in turn, so of two near-duplicates that arrive together
 * exactly one is kept. Nothing may be freed while another thread uses it. No call sets anything for the whole process.
 *
 * Ownership: what a function stores in a place of type TYPE ** or in a verdict belongs to the caller, who frees it with the
 * function that is named there. Those functions set the pointer to NULL and accept NULL. */

#ifndef LOOKALIKE_H
#define LOOKALIKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The interface of this header. Compare it with lookalike_abi_version() where the library is loaded at run time. */
#define LOOKALIKE_ABI_VERSION 1

/* The time of a document that has none: the clock of the machine. */
#define LOOKALIKE_NOW INT64_MIN

typedef enum lookalike_status {
  LOOKALIKE_OK = 0,
  LOOKALIKE_BAD_ARGUMENT = 1, /* a NULL, a length, a text that is not UTF-8, a time */
  LOOKALIKE_BAD_SETTING = 2,  /* a setting or a recipe */
  LOOKALIKE_BAD_FILE = 3,     /* a file that cannot be read or written, or has the wrong content */
  LOOKALIKE_LIMIT = 4,        /* more than the engine can hold or is allowed to compare */
  LOOKALIKE_INTERNAL = 5      /* a defect of the library */
} lookalike_status;

typedef struct lookalike_error lookalike_error;
typedef struct lookalike_settings lookalike_settings;
typedef struct lookalike_stream lookalike_stream;

uint32_t lookalike_abi_version(void);

/* The version of the library, such as "0.1.0"; it is never freed. */
const char *lookalike_version(void);

/* A sentence that lives as long as the error; "" for NULL. */
const char *lookalike_error_message(const lookalike_error *error);
void lookalike_error_free(lookalike_error **error);

/* ---- Settings -------------------------------------------------------------------------------------------------- */

/* Reads settings from a JSON object. Each field may be missing; {} has the defaults of `lookalike dedup --forms off`.
 *
 *   recipe            a name ("default"), a file ("mine.toml"), or TOML itself, which has line breaks
 *   changes           changes of the recipe, such as ["ngram=3", "simhash.bits=128"]
 *   threshold         least similarity of a match, from 0 to 1
 *   method, distance, candidates, sentences, verify, unit      as the options of `lookalike dedup`
 *   window            how far two documents may be apart in time: "2d", or seconds
 *   window_documents  in place of window: how many documents back one is compared
 *   skew              how far times may be ahead of the clock: "5m", or seconds
 *   refresh           true: a duplicate renews the window of its original
 *
 * Settings never change, and a stream copies them. Free them with lookalike_settings_free. */
lookalike_status lookalike_settings_read(const char *json, size_t length, lookalike_settings **settings,
                                         lookalike_error **error);
void lookalike_settings_free(lookalike_settings **settings);

/* ---- Sketches -------------------------------------------------------------------------------------------------- */

/* Bits of a fingerprint and slots of a signature under these settings; 0 for NULL. */
uint32_t lookalike_simhash_bits(const lookalike_settings *settings);
size_t lookalike_minhash_slots(const lookalike_settings *settings);

/* The SimHash of a text: fingerprint[0] has its lower 64 bits and fingerprint[1] the upper ones. A text without features,
 * such as "!?", has none. */
lookalike_status lookalike_simhash(const lookalike_settings *settings, const char *text, size_t length,
                                   uint64_t fingerprint[2], bool *has_fingerprint, lookalike_error **error);

/* The MinHash signature of a text. `capacity` is the room of `signature`: at least lookalike_minhash_slots numbers. */
lookalike_status lookalike_minhash(const lookalike_settings *settings, const char *text, size_t length,
                                   uint32_t *signature, size_t capacity, bool *has_signature,
                                   lookalike_error **error);

/* The number of bits in which two fingerprints differ. */
lookalike_status lookalike_hamming_distance(const uint64_t a[2], const uint64_t b[2], uint32_t *distance,
                                            lookalike_error **error);

/* ---- Two texts ------------------------------------------------------------------------------------------------- */

typedef struct lookalike_pair_verdict {
  bool is_match;
  bool has_similarity; /* false where texts are too long for the measure */
  bool has_distance;   /* false where a text has no fingerprint */
  uint32_t distance;   /* between the fingerprints */
  double similarity;   /* what is compared with the threshold, whether it reaches it or not */
  const char *method;  /* how the pair was found, or NULL; never freed */
} lookalike_pair_verdict;

lookalike_status lookalike_compare(const lookalike_settings *settings, const char *a, size_t a_length, const char *b,
                                   size_t b_length, lookalike_pair_verdict *verdict, lookalike_error **error);

/* Every step of a comparison: the JSON of `lookalike compare --literal --json`, which ends with a NUL. Free it with
 * lookalike_string_free. */
lookalike_status lookalike_compare_json(const lookalike_settings *settings, const char *a, size_t a_length,
                                        const char *b, size_t b_length, char **json, lookalike_error **error);

/* The passages that the texts share: the field `shared` of that JSON. Free it with lookalike_string_free. */
lookalike_status lookalike_passages_json(const lookalike_settings *settings, const char *a, size_t a_length,
                                         const char *b, size_t b_length, char **json, lookalike_error **error);
void lookalike_string_free(char **string);

/* ---- The stream ------------------------------------------------------------------------------------------------ */

typedef struct lookalike_document {
  const char *text;
  size_t text_length;
  const char *id; /* NULL: the number of the document. Ids may repeat. */
  size_t id_length;
  int64_t time; /* microseconds since 1970, or LOOKALIKE_NOW; with window_documents always LOOKALIKE_NOW */
} lookalike_document;

/* The answer to a document. Free `of` with lookalike_verdicts_free, and change neither `of` nor its length before. */
typedef struct lookalike_verdict {
  bool is_duplicate;
  bool is_late;       /* older than the window: matched nothing and was not stored */
  bool has_seq;       /* false for a document that was not stored */
  uint64_t seq;       /* number of the document in the stream, from 0 */
  double similarity;  /* to the kept document */
  const char *method; /* how the pair was found, or NULL; never freed */
  char *of;           /* id of the kept document that this one repeats, with a NUL behind it, or NULL: its cluster */
  size_t of_length;
} lookalike_verdict;

/* An empty stream in memory. Free it with lookalike_stream_free. */
lookalike_status lookalike_stream_new(const lookalike_settings *settings, lookalike_stream **stream,
                                      lookalike_error **error);
void lookalike_stream_free(lookalike_stream **stream);

/* Checks a document and inserts it, in one atomic step. A document is kept if no kept one before it matches. */
lookalike_status lookalike_stream_insert(const lookalike_stream *stream, const lookalike_document *document,
                                         lookalike_verdict *verdict, lookalike_error **error);

/* Checks a document and changes nothing. */
lookalike_status lookalike_stream_query(const lookalike_stream *stream, const lookalike_document *document,
                                        lookalike_verdict *verdict, lookalike_error **error);

/* Inserts `count` documents in order; those of other threads may come between. All are checked before the first is
 * inserted. `inserted` is the number of verdicts that were given, also after a failure; the others are zero. */
lookalike_status lookalike_stream_insert_all(const lookalike_stream *stream, const lookalike_document *documents,
                                             size_t count, lookalike_verdict *verdicts, size_t *inserted,
                                             lookalike_error **error);
void lookalike_verdicts_free(lookalike_verdict *verdicts, size_t count);

/* Removes all kept documents with this id, and counts them. It reads every kept id. */
lookalike_status lookalike_stream_remove(const lookalike_stream *stream, const char *id, size_t length,
                                         uint64_t *removed, lookalike_error **error);

/* The documents that are kept, and all that were stored, which is the number of the next one. */
lookalike_status lookalike_stream_count(const lookalike_stream *stream, uint64_t *kept, uint64_t *stored,
                                        lookalike_error **error);

/* Writes settings and kept documents to a file, which appears when it is complete and on disk, and reads it.
 * `lookalike.Stream` in Python reads and writes the same files. Other threads wait while a stream is saved. */
lookalike_status lookalike_stream_save(const lookalike_stream *stream, const char *path, size_t length,
                                       lookalike_error **error);
lookalike_status lookalike_stream_open(const char *path, size_t length, lookalike_stream **stream,
                                       lookalike_error **error);

#ifdef __cplusplus
}
#endif

#endif
