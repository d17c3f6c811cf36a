/* Answers for each row of standard input: id, seconds since 1970 (or nothing) and text, separated by tabs.
 *
 *   stream '{"window": "2d"}' <rows              prints id, kept id, similarity and method of each duplicate
 *   stream '{"window": "2d"}' 100000 <rows       the same, with so many rows at a time; prints inserts a second */

#define _POSIX_C_SOURCE 200809L
#include <lookalike.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void check(lookalike_status status, lookalike_error **error) {
  if (status != LOOKALIKE_OK) {
    fprintf(stderr, "error: %s\n", lookalike_error_message(*error));
    exit(2);
  }
}

/* Reads a row, which the document points into. */
static bool read_row(lookalike_document *row) {
  char *line = NULL;
  size_t room = 0;
  ssize_t length = getline(&line, &room, stdin);
  if (length < 0) return free(line), false;
  if (length > 0 && line[length - 1] == '\n') line[--length] = '\0';
  char *time = strchr(line, '\t');
  char *text = time ? strchr(time + 1, '\t') : NULL;
  if (!text) return fprintf(stderr, "error: a row is not id, time and text\n"), exit(2), false;
  *row = (lookalike_document){
      .id = line,
      .id_length = (size_t)(time - line),
      .time = time + 1 == text ? LOOKALIKE_NOW : strtoll(time + 1, NULL, 10) * 1000000,
      .text = text + 1,
      .text_length = (size_t)(line + length - text - 1),
  };
  return true;
}

int main(int count, char **arguments) {
  const char *json = count > 1 ? arguments[1] : "{}";
  size_t most = count > 2 ? strtoul(arguments[2], NULL, 10) : 1;
  lookalike_error *error = NULL;
  lookalike_settings *settings = NULL;
  lookalike_stream *stream = NULL;
  check(lookalike_settings_read(json, strlen(json), &settings, &error), &error);
  check(lookalike_stream_new(settings, &stream, &error), &error);
  lookalike_document *rows = calloc(most, sizeof *rows);
  lookalike_verdict *verdicts = calloc(most, sizeof *verdicts);
  double seconds = 0, all = 0;
  for (size_t read = most; read == most;) {
    for (read = 0; read < most && read_row(&rows[read]);) read++;
    size_t inserted = 0;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    check(lookalike_stream_insert_all(stream, rows, read, verdicts, &inserted, &error), &error);
    clock_gettime(CLOCK_MONOTONIC, &end);
    seconds += (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    all += (double)read;
    for (size_t at = 0; at < read; at++) {
      const lookalike_verdict *verdict = &verdicts[at];
      if (verdict->is_duplicate) {
        printf("%.*s\t%s\t%.17g\t%s\n", (int)rows[at].id_length, rows[at].id, verdict->of, verdict->similarity,
               verdict->method);
      }
      free((char *)rows[at].id);
    }
    lookalike_verdicts_free(verdicts, read);
  }
  if (most > 1) fprintf(stderr, "%.0f\n", all / seconds);
  free(rows);
  free(verdicts);
  lookalike_stream_free(&stream);
  lookalike_settings_free(&settings);
}
