/* Calls every function with NULL, wrong lengths, text that is not UTF-8 and a closed stream. Each call must be refused with
 * its reason, write nothing beyond its answer, and lose no memory: the test compiles this with sanitizers. */

#include <inttypes.h>
#include <lookalike.h>
#include <stdio.h>
#include <string.h>

static lookalike_error *error;
static int wrong;

static void expect(const char *call, lookalike_status got, lookalike_status wanted, const char *part) {
  const char *message = lookalike_error_message(error);
  if (got != wanted || (error == NULL) != (wanted == LOOKALIKE_OK) || !strstr(message, part)) {
    fprintf(stderr, "%s: status %d, \"%s\"; wanted %d, \"%s\"\n", call, got, message, wanted, part);
    wrong++;
  }
  lookalike_error_free(&error);
  if (error) wrong++;
}

#define REFUSED(call, part) expect(#call, call, LOOKALIKE_BAD_ARGUMENT, part)
#define FAILS(call, status, part) expect(#call, call, status, part)
#define DONE(call) expect(#call, call, LOOKALIKE_OK, "")
#define TEXT(text) text, strlen(text)
#define HUGE_LENGTH SIZE_MAX

static void misuse_settings(lookalike_settings **settings) {
  REFUSED(lookalike_settings_read(TEXT("{}"), NULL, &error), "settings is NULL");
  REFUSED(lookalike_settings_read(NULL, 2, settings, &error), "json is NULL");
  REFUSED(lookalike_settings_read("{}", HUGE_LENGTH, settings, &error), "the length of json is 18446744073709551615");
  REFUSED(lookalike_settings_read("{\xff}", 3, settings, &error), "json is not valid UTF-8: byte 1 is 0xff");
  static const char *const bad[][2] = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"{\"window\": []}", "give window and skew as 2d, 36h or 15m, or as seconds"},
      {"{\"treshold\": 1}", "unknown field `treshold`"},
      {"{\"threshold\": 2}", "threshold"},
      {"{\"method\": \"magic\"}", "method is 'magic', which is not one of auto"},
      {"{\"distance\": 3}", "distance=3 is for fingerprints"},
      {"{\"window\": \"2 moons\"}", "window is '2 moons': give a number with a unit"},
      {"{\"window\": -1}", "window is -1"},
      {"{\"window\": \"1d\", \"window_documents\": 9}", "leave one of them out"},
      {"{\"window_documents\": 0}", "give at least 1"},
      {"{\"recipe\": \"nothing\"}", "nothing"},
      {"{\"changes\": [\"ngram=99\"]}", "ngram is 99"},
  };
  for (size_t at = 0; at < sizeof bad / sizeof *bad; at++) {
    FAILS(lookalike_settings_read(TEXT(bad[at][0]), settings, &error), LOOKALIKE_BAD_SETTING, bad[at][1]);
    if (*settings) wrong++;
  }
  lookalike_settings_free(NULL);
  lookalike_settings_free(settings);
  DONE(lookalike_settings_read(TEXT("{\"window_documents\": 2}"), settings, &error));
}

static void misuse_sketches(const lookalike_settings *settings) {
  uint64_t fingerprint[2] = {0};
  uint32_t signature[1024], distance;
  bool has = false;
  REFUSED(lookalike_simhash(NULL, TEXT("a"), fingerprint, &has, &error), "settings is NULL");
  REFUSED(lookalike_simhash(settings, NULL, 0, fingerprint, &has, &error), "text is NULL");
  REFUSED(lookalike_simhash(settings, TEXT("a"), NULL, &has, &error), "fingerprint is NULL");
  REFUSED(lookalike_simhash(settings, TEXT("a"), fingerprint, NULL, &error), "has_fingerprint is NULL");
  REFUSED(lookalike_simhash(settings, TEXT("\xe6\xb8"), fingerprint, &has, &error), "byte 0 is 0xe6");
  DONE(lookalike_simhash(settings, "", 0, fingerprint, &has, &error));
  if (has || lookalike_simhash_bits(NULL) || lookalike_minhash_slots(NULL)) wrong++;
  REFUSED(lookalike_minhash(NULL, TEXT("a"), signature, 1024, &has, &error), "settings is NULL");
  REFUSED(lookalike_minhash(settings, NULL, 1, signature, 1024, &has, &error), "text is NULL");
  REFUSED(lookalike_minhash(settings, TEXT("a"), NULL, 1024, &has, &error), "signature is NULL");
  REFUSED(lookalike_minhash(settings, TEXT("a"), signature, 127, &has, &error), "capacity is 127: a signature");
  REFUSED(lookalike_minhash(settings, TEXT("a"), signature, 1024, NULL, &error), "has_signature is NULL");
  REFUSED(lookalike_hamming_distance(NULL, fingerprint, &distance, &error), "a is NULL");
  REFUSED(lookalike_hamming_distance(fingerprint, NULL, &distance, &error), "b is NULL");
  REFUSED(lookalike_hamming_distance(fingerprint, fingerprint, NULL, &error), "distance is NULL");
}

static void misuse_comparisons(const lookalike_settings *settings) {
  lookalike_pair_verdict verdict;
  char *json = NULL;
  REFUSED(lookalike_compare(NULL, TEXT("a"), TEXT("b"), &verdict, &error), "settings is NULL");
  REFUSED(lookalike_compare(settings, NULL, 0, TEXT("b"), &verdict, &error), "a is NULL");
  REFUSED(lookalike_compare(settings, TEXT("a"), NULL, 0, &verdict, &error), "b is NULL");
  REFUSED(lookalike_compare(settings, TEXT("a"), TEXT("b"), NULL, &error), "verdict is NULL");
  REFUSED(lookalike_compare_json(NULL, TEXT("a"), TEXT("b"), &json, &error), "settings is NULL");
  REFUSED(lookalike_compare_json(settings, TEXT("a"), TEXT("b"), NULL, &error), "json is NULL");
  REFUSED(lookalike_compare_json(settings, TEXT("a"), TEXT("b\x80"), &json, &error), "b is not valid UTF-8");
  REFUSED(lookalike_passages_json(NULL, TEXT("a"), TEXT("b"), &json, &error), "settings is NULL");
  REFUSED(lookalike_passages_json(settings, TEXT("a"), TEXT("b"), NULL, &error), "json is NULL");
  REFUSED(lookalike_passages_json(settings, "a", HUGE_LENGTH, TEXT("b"), &json, &error), "the length of a");
  if (json) wrong++;
  lookalike_string_free(NULL);
  lookalike_string_free(&json);
}

static void misuse_stream(const lookalike_settings *settings) {
  lookalike_stream *stream = NULL;
  lookalike_verdict verdicts[3];
  lookalike_document documents[3] = {{.text = "one text", .text_length = 8, .time = LOOKALIKE_NOW},
                                     {.text = "one text", .text_length = 8, .time = LOOKALIKE_NOW},
                                     {.text = "\x80", .text_length = 1, .time = LOOKALIKE_NOW}};
  const lookalike_document *document = documents;
  uint64_t kept, stored, removed;
  size_t inserted = 9;
  REFUSED(lookalike_stream_new(NULL, &stream, &error), "settings is NULL");
  REFUSED(lookalike_stream_new(settings, NULL, &error), "stream is NULL");
  DONE(lookalike_stream_new(settings, &stream, &error));
  REFUSED(lookalike_stream_insert(stream, NULL, verdicts, &error), "document is NULL");
  REFUSED(lookalike_stream_insert(stream, document, NULL, &error), "verdict is NULL");
  REFUSED(lookalike_stream_query(stream, NULL, verdicts, &error), "document is NULL");
  REFUSED(lookalike_stream_query(stream, document, NULL, &error), "verdict is NULL");
  REFUSED(lookalike_stream_insert_all(stream, NULL, 1, verdicts, &inserted, &error), "documents is NULL");
  REFUSED(lookalike_stream_insert_all(stream, documents, 1, NULL, &inserted, &error), "verdicts is NULL");
  REFUSED(lookalike_stream_insert_all(stream, documents, 1, verdicts, NULL, &error), "inserted is NULL");
  REFUSED(lookalike_stream_insert_all(stream, documents, HUGE_LENGTH, verdicts, &inserted, &error), "the length of verdicts");
  REFUSED(lookalike_stream_insert_all(stream, documents, 3, verdicts, &inserted, &error), "document 2: text is not valid UTF-8");
  if (inserted) wrong++;
  lookalike_document timed = *document;
  timed.time = 5;
  FAILS(lookalike_stream_insert(stream, &timed, verdicts, &error), LOOKALIKE_BAD_SETTING, "reaches back by documents");
  timed.time = INT64_MAX;
  REFUSED(lookalike_stream_insert(stream, &timed, verdicts, &error), "time is 9223372036854775807");
  DONE(lookalike_stream_insert_all(stream, documents, 2, verdicts, &inserted, &error));
  if (inserted != 2 || !verdicts[1].is_duplicate || strcmp(verdicts[1].of, "0")) wrong++;
  lookalike_verdicts_free(NULL, 2);
  lookalike_verdicts_free(verdicts, 2);
  lookalike_verdicts_free(verdicts, 2);
  REFUSED(lookalike_stream_remove(stream, NULL, 0, &removed, &error), "id is NULL");
  REFUSED(lookalike_stream_remove(stream, TEXT("0"), NULL, &error), "removed is NULL");
  REFUSED(lookalike_stream_count(stream, NULL, &stored, &error), "kept is NULL");
  REFUSED(lookalike_stream_count(stream, &kept, NULL, &error), "stored is NULL");
  REFUSED(lookalike_stream_save(stream, NULL, 0, &error), "path is NULL");
  FAILS(lookalike_stream_save(stream, TEXT("/"), &error), LOOKALIKE_BAD_FILE, "is a directory");
  lookalike_stream *other = NULL;
  REFUSED(lookalike_stream_open(NULL, 0, &other, &error), "path is NULL");
  REFUSED(lookalike_stream_open(TEXT("a"), NULL, &error), "stream is NULL");
  FAILS(lookalike_stream_open(TEXT("missing"), &other, &error), LOOKALIKE_BAD_FILE, "missing");
  FAILS(lookalike_stream_open(TEXT("/dev/null"), &other, &error), LOOKALIKE_BAD_FILE, "not a stream that was saved");
  if (other) wrong++;
  DONE(lookalike_stream_remove(stream, TEXT("0"), &removed, &error));
  DONE(lookalike_stream_count(stream, &kept, &stored, &error));
  if (removed != 1 || kept || stored != 2) wrong++;
  lookalike_stream_free(&stream);
  lookalike_stream_free(&stream);
  lookalike_stream_free(NULL);
  REFUSED(lookalike_stream_insert(stream, document, verdicts, &error), "stream is NULL");
  REFUSED(lookalike_stream_query(stream, document, verdicts, &error), "stream is NULL");
  REFUSED(lookalike_stream_insert_all(stream, document, 1, verdicts, &inserted, &error), "stream is NULL");
  REFUSED(lookalike_stream_remove(stream, TEXT("0"), &removed, &error), "stream is NULL");
  REFUSED(lookalike_stream_count(stream, &kept, &stored, &error), "stream is NULL");
  REFUSED(lookalike_stream_save(stream, TEXT("a"), &error), "stream is NULL");
}

int main(void) {
  lookalike_settings *settings = NULL;
  if (lookalike_abi_version() != LOOKALIKE_ABI_VERSION || !strchr(lookalike_version(), '.')) wrong++;
  lookalike_error_free(NULL);
  misuse_settings(&settings);
  misuse_sketches(settings);
  misuse_comparisons(settings);
  misuse_stream(settings);
  if (lookalike_stream_new(NULL, NULL, NULL) != LOOKALIKE_BAD_ARGUMENT) wrong++;
  lookalike_settings_free(&settings);
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
