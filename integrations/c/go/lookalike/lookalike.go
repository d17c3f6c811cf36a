// Package lookalike keeps the new documents of a stream, by the library liblookalike.
//
// CGO_CFLAGS and CGO_LDFLAGS say where header and library are, unless they are installed.
package lookalike

/*
#cgo LDFLAGS: -llookalike
#include <lookalike.h>
#include <stdlib.h>

// Builds the document in C, because memory of Go that holds pointers cannot be passed.
static lookalike_status insert(const lookalike_stream *stream, const char *text, size_t text_length, const char *id,
                               size_t id_length, int64_t time, lookalike_verdict *verdict, lookalike_error **error) {
  lookalike_document document = {text, text_length, id, id_length, time};
  return lookalike_stream_insert(stream, &document, verdict, error);
}
*/
import "C"

import (
	"errors"
	"time"
	"unsafe"
)

// Stream checks documents one after another. Any number of goroutines can insert; none may be at work during Close.
type Stream struct{ pointer *C.lookalike_stream }

// Verdict is the answer to a document. Of is the id of the kept document that a duplicate repeats.
type Verdict struct {
	IsDuplicate, IsLate bool
	Of, Method          string
	Similarity          float64
}

// NewStream returns an empty stream. Settings are JSON, as lookalike.h describes.
func NewStream(settings string) (*Stream, error) {
	var failed *C.lookalike_error
	var read *C.lookalike_settings
	json := []byte(settings)
	if status := C.lookalike_settings_read(pointer(json), C.size_t(len(json)), &read, &failed); status != C.LOOKALIKE_OK {
		return nil, failure(failed)
	}
	defer C.lookalike_settings_free(&read)
	var made *C.lookalike_stream
	if status := C.lookalike_stream_new(read, &made, &failed); status != C.LOOKALIKE_OK {
		return nil, failure(failed)
	}
	return &Stream{made}, nil
}

// Close frees the stream. Later calls fail.
func (stream *Stream) Close() { C.lookalike_stream_free(&stream.pointer) }

// Insert checks a document and inserts it. Its time is that of the clock if it is zero.
func (stream *Stream) Insert(text, id []byte, at time.Time) (Verdict, error) {
	moment := C.int64_t(C.LOOKALIKE_NOW)
	if !at.IsZero() {
		moment = C.int64_t(at.UnixMicro())
	}
	var verdict C.lookalike_verdict
	var failed *C.lookalike_error
	status := C.insert(stream.pointer, pointer(text), C.size_t(len(text)), pointer(id), C.size_t(len(id)), moment, &verdict, &failed)
	if status != C.LOOKALIKE_OK {
		return Verdict{}, failure(failed)
	}
	defer C.lookalike_verdicts_free(&verdict, 1)
	answer := Verdict{IsDuplicate: bool(verdict.is_duplicate), IsLate: bool(verdict.is_late)}
	if answer.IsDuplicate {
		answer.Of = C.GoStringN(verdict.of, C.int(verdict.of_length))
		answer.Method = C.GoString(verdict.method)
		answer.Similarity = float64(verdict.similarity)
	}
	return answer, nil
}

// Returns the first byte, and some byte for an empty text, because the library refuses NULL.
func pointer(bytes []byte) *C.char {
	if len(bytes) == 0 {
		bytes = []byte{0}
	}
	return (*C.char)(unsafe.Pointer(&bytes[0]))
}

func failure(failed *C.lookalike_error) error {
	defer C.lookalike_error_free(&failed)
	return errors.New(C.GoString(C.lookalike_error_message(failed)))
}
