/* The native methods of the package `lookalike`: each turns arrays into pointers and calls one function. */

#include <jni.h>
#include <lookalike.h>
#include <string.h>

/* The bytes of an array during a call; NULL for null, which the library refuses by name where it must not be. */
typedef struct {
  jbyteArray array;
  jbyte *bytes;
  size_t length;
} view;

static view open_view(JNIEnv *env, jbyteArray array) {
  if (!array) return (view){0};
  size_t length = (size_t)(*env)->GetArrayLength(env, array);
  return (view){array, (*env)->GetByteArrayElements(env, array, NULL), length};
}

static void close_view(JNIEnv *env, view open) {
  if (open.bytes) (*env)->ReleaseByteArrayElements(env, open.array, open.bytes, JNI_ABORT);
}

static const char *chars(view open) { return (const char *)open.bytes; }

static jbyteArray to_array(JNIEnv *env, const char *bytes, size_t length) {
  jbyteArray array = (*env)->NewByteArray(env, (jsize)length);
  if (array) (*env)->SetByteArrayRegion(env, array, 0, (jsize)length, (const jbyte *)bytes);
  return array;
}

/* Throws the error of a failed call, and frees it. */
static bool failed(JNIEnv *env, lookalike_status status, lookalike_error *error) {
  if (status == LOOKALIKE_OK) return false;
  const char *message = lookalike_error_message(error);
  jbyteArray bytes = to_array(env, message, strlen(message));
  lookalike_error_free(&error);
  jclass type = bytes ? (*env)->FindClass(env, "lookalike/LookalikeException") : NULL;
  jmethodID make = type ? (*env)->GetMethodID(env, type, "<init>", "([BI)V") : NULL;
  jobject thrown = make ? (*env)->NewObject(env, type, make, bytes, (jint)status) : NULL;
  if (thrown) (*env)->Throw(env, thrown);
  return true;
}

#define POINTER(type, number) ((type *)(intptr_t)(number))

static jclass verdict_class;
static jmethodID make_verdict;

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *machine, void *reserved) {
  JNIEnv *env = NULL;
  (void)reserved;
  if ((*machine)->GetEnv(machine, (void **)&env, JNI_VERSION_10) != JNI_OK) return JNI_ERR;
  if (lookalike_abi_version() != LOOKALIKE_ABI_VERSION) return JNI_ERR;
  jclass found = (*env)->FindClass(env, "lookalike/Verdict");
  if (!found) return JNI_ERR;
  verdict_class = (*env)->NewGlobalRef(env, found);
  make_verdict = (*env)->GetMethodID(env, verdict_class, "<init>", "(ZZJDLjava/lang/String;[B)V");
  return make_verdict ? JNI_VERSION_10 : JNI_ERR;
}

JNIEXPORT jlong JNICALL Java_lookalike_Lookalike_read(JNIEnv *env, jclass type, jbyteArray json) {
  (void)type;
  lookalike_settings *settings = NULL;
  lookalike_error *error = NULL;
  view open = open_view(env, json);
  lookalike_status status = lookalike_settings_read(chars(open), open.length, &settings, &error);
  close_view(env, open);
  return failed(env, status, error) ? 0 : (jlong)(intptr_t)settings;
}

JNIEXPORT void JNICALL Java_lookalike_Lookalike_release(JNIEnv *env, jclass type, jlong pointer) {
  (void)env, (void)type;
  lookalike_settings *settings = POINTER(lookalike_settings, pointer);
  lookalike_settings_free(&settings);
}

JNIEXPORT jlongArray JNICALL Java_lookalike_Lookalike_simhash(JNIEnv *env, jclass type, jlong pointer, jbyteArray text) {
  (void)type;
  uint64_t fingerprint[2];
  bool has_fingerprint = false;
  lookalike_error *error = NULL;
  view open = open_view(env, text);
  lookalike_status status = lookalike_simhash(POINTER(lookalike_settings, pointer), chars(open), open.length, fingerprint,
                                              &has_fingerprint, &error);
  close_view(env, open);
  if (failed(env, status, error) || !has_fingerprint) return NULL;
  jlongArray words = (*env)->NewLongArray(env, 2);
  if (words) (*env)->SetLongArrayRegion(env, words, 0, 2, (const jlong *)fingerprint);
  return words;
}

JNIEXPORT jintArray JNICALL Java_lookalike_Lookalike_minhash(JNIEnv *env, jclass type, jlong pointer, jbyteArray text) {
  (void)type;
  const lookalike_settings *settings = POINTER(lookalike_settings, pointer);
  jsize slots = (jsize)lookalike_minhash_slots(settings);
  jintArray array = (*env)->NewIntArray(env, slots);
  jint *signature = array ? (*env)->GetIntArrayElements(env, array, NULL) : NULL;
  if (!signature) return NULL;
  bool has_signature = false;
  lookalike_error *error = NULL;
  view open = open_view(env, text);
  lookalike_status status = lookalike_minhash(settings, chars(open), open.length, (uint32_t *)signature, (size_t)slots,
                                              &has_signature, &error);
  close_view(env, open);
  (*env)->ReleaseIntArrayElements(env, array, signature, 0);
  return failed(env, status, error) || !has_signature ? NULL : array;
}

JNIEXPORT jbyteArray JNICALL Java_lookalike_Lookalike_compare(JNIEnv *env, jclass type, jlong pointer, jbyteArray a,
                                                              jbyteArray b) {
  (void)type;
  char *json = NULL;
  lookalike_error *error = NULL;
  view in_a = open_view(env, a), in_b = open_view(env, b);
  lookalike_status status = lookalike_compare_json(POINTER(lookalike_settings, pointer), chars(in_a), in_a.length,
                                                   chars(in_b), in_b.length, &json, &error);
  close_view(env, in_a);
  close_view(env, in_b);
  if (failed(env, status, error)) return NULL;
  jbyteArray bytes = to_array(env, json, strlen(json));
  lookalike_string_free(&json);
  return bytes;
}

JNIEXPORT jlong JNICALL Java_lookalike_Stream_create(JNIEnv *env, jclass type, jlong settings) {
  (void)type;
  lookalike_stream *stream = NULL;
  lookalike_error *error = NULL;
  lookalike_status status = lookalike_stream_new(POINTER(lookalike_settings, settings), &stream, &error);
  return failed(env, status, error) ? 0 : (jlong)(intptr_t)stream;
}

JNIEXPORT jlong JNICALL Java_lookalike_Stream_open___3B(JNIEnv *env, jclass type, jbyteArray path) {
  (void)type;
  lookalike_stream *stream = NULL;
  lookalike_error *error = NULL;
  view open = open_view(env, path);
  lookalike_status status = lookalike_stream_open(chars(open), open.length, &stream, &error);
  close_view(env, open);
  return failed(env, status, error) ? 0 : (jlong)(intptr_t)stream;
}

JNIEXPORT void JNICALL Java_lookalike_Stream_release(JNIEnv *env, jclass type, jlong pointer) {
  (void)env, (void)type;
  lookalike_stream *stream = POINTER(lookalike_stream, pointer);
  lookalike_stream_free(&stream);
}

JNIEXPORT jobject JNICALL Java_lookalike_Stream_check(JNIEnv *env, jclass type, jlong pointer, jbyteArray text,
                                                      jbyteArray id, jlong time, jboolean insert) {
  (void)type;
  view in_text = open_view(env, text);
  view in_id = in_text.bytes || !text ? open_view(env, id) : (view){0};
  /* Without memory, an exception is pending, and no bytes would mean a document without a text or an id. */
  if ((text && !in_text.bytes) || (id && !in_id.bytes)) {
    close_view(env, in_text);
    return NULL;
  }
  lookalike_document document = {chars(in_text), in_text.length, chars(in_id), in_id.length, time};
  lookalike_verdict verdict = {0};
  lookalike_error *error = NULL;
  const lookalike_stream *stream = POINTER(lookalike_stream, pointer);
  lookalike_status status = insert ? lookalike_stream_insert(stream, &document, &verdict, &error)
                                   : lookalike_stream_query(stream, &document, &verdict, &error);
  close_view(env, in_text);
  close_view(env, in_id);
  if (failed(env, status, error)) return NULL;
  jbyteArray of = verdict.of ? to_array(env, verdict.of, verdict.of_length) : NULL;
  jstring method = verdict.method && !(*env)->ExceptionCheck(env) ? (*env)->NewStringUTF(env, verdict.method) : NULL;
  jlong seq = verdict.has_seq ? (jlong)verdict.seq : -1;
  jdouble similarity = verdict.similarity;
  jboolean is_duplicate = verdict.is_duplicate, is_late = verdict.is_late;
  lookalike_verdicts_free(&verdict, 1);
  if ((*env)->ExceptionCheck(env)) return NULL;
  return (*env)->NewObject(env, verdict_class, make_verdict, is_duplicate, is_late, seq, similarity, method, of);
}

JNIEXPORT jlong JNICALL Java_lookalike_Stream_remove__J_3B(JNIEnv *env, jclass type, jlong pointer, jbyteArray id) {
  (void)type;
  uint64_t removed = 0;
  lookalike_error *error = NULL;
  view open = open_view(env, id);
  lookalike_status status =
      lookalike_stream_remove(POINTER(lookalike_stream, pointer), chars(open), open.length, &removed, &error);
  close_view(env, open);
  return failed(env, status, error) ? 0 : (jlong)removed;
}

JNIEXPORT jlong JNICALL Java_lookalike_Stream_size__J(JNIEnv *env, jclass type, jlong pointer) {
  (void)type;
  uint64_t kept = 0, stored = 0;
  lookalike_error *error = NULL;
  lookalike_status status = lookalike_stream_count(POINTER(lookalike_stream, pointer), &kept, &stored, &error);
  return failed(env, status, error) ? 0 : (jlong)kept;
}

JNIEXPORT void JNICALL Java_lookalike_Stream_save__J_3B(JNIEnv *env, jclass type, jlong pointer, jbyteArray path) {
  (void)type;
  lookalike_error *error = NULL;
  view open = open_view(env, path);
  lookalike_status status = lookalike_stream_save(POINTER(lookalike_stream, pointer), chars(open), open.length, &error);
  close_view(env, open);
  failed(env, status, error);
}
