/* Prints the lines of standard input that repeat no earlier line: dedup '{"threshold": 0.8}' <lines */

#define _POSIX_C_SOURCE 200809L
#include <lookalike.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(lookalike_status status, lookalike_error **error) {
  if (status != LOOKALIKE_OK) {
    fprintf(stderr, "error: %s\n", lookalike_error_message(*error));
    exit(2);
  }
}

int main(int count, char **arguments) {
  const char *json = count > 1 ? arguments[1] : "{}";
  lookalike_error *error = NULL;
  lookalike_settings *settings = NULL;
  lookalike_stream *stream = NULL;
  check(lookalike_settings_read(json, strlen(json), &settings, &error), &error);
  check(lookalike_stream_new(settings, &stream, &error), &error);
  char *line = NULL;
  size_t room = 0;
  for (ssize_t length; (length = getline(&line, &room, stdin)) >= 0;) {
    lookalike_document document = {.text = line, .text_length = (size_t)length, .time = LOOKALIKE_NOW};
    lookalike_verdict verdict;
    check(lookalike_stream_insert(stream, &document, &verdict, &error), &error);
    if (!verdict.is_duplicate) fwrite(line, 1, (size_t)length, stdout);
    lookalike_verdicts_free(&verdict, 1);
  }
  free(line);
  lookalike_stream_free(&stream);
  lookalike_settings_free(&settings);
}
