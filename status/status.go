// Package status defines the canonical error codes, and the coded error that all packages of Weft
// use.
//
// The codes are those of TensorFlow and gRPC. A program that matches on code and message sees the
// same values, whether an error was created by a kernel, by a pass of the master, or by a peer. An
// error is created once, with the constructor of its code, where the cause is known. Callers add
// context with [Error.Annotate] or %w, which keep the code.
package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Code is a canonical error code. Its numbers are part of the wire protocol.
type Code int32

// The canonical codes, numbered as in google.rpc.Code.
const (
	OK                 Code = 0
	Cancelled          Code = 1
	Unknown            Code = 2
	InvalidArgument    Code = 3
	DeadlineExceeded   Code = 4
	NotFound           Code = 5
	AlreadyExists      Code = 6
	PermissionDenied   Code = 7
	ResourceExhausted  Code = 8
	FailedPrecondition Code = 9
	Aborted            Code = 10
	OutOfRange         Code = 11
	Unimplemented      Code = 12
	Internal           Code = 13
	Unavailable        Code = 14
	DataLoss           Code = 15
	Unauthenticated    Code = 16
)

var codeNames = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
	"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// String returns TensorFlow's spelling of the code, as in "INVALID_ARGUMENT".
func (c Code) String() string {
	if c >= 0 && int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("CODE_%d", int32(c))
}

// Keys of the payloads that TensorFlow's runtime attaches to errors.
const (
	// PayloadDerived marks an error that follows from another one, such as the cancellation of a
	// task after a step has failed on another task. Aggregation prefers errors without it.
	PayloadDerived = "type.googleapis.com/tensorflow.DerivedStatus"
	// PayloadWorkerRestarted marks an error that the restart of a worker explains.
	PayloadWorkerRestarted = "type.googleapis.com/tensorflow.distributed_runtime.WorkerPossiblyRestarted"
)

// Error is an error with a canonical code. The zero value is not an error: use the constructors.
type Error struct {
	Code     Code
	Message  string
	Payloads map[string][]byte // opaque details that travel with the error, by type URL
	cause    error
}

// Error returns the message, without the code.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause of the error, if it was created by wrapping.
func (e *Error) Unwrap() error { return e.cause }

// New returns an error with the given code and message.
func New(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// maxQuoted bounds the text of an argument in an error, in bytes. An error that quotes a large
// string as a whole is copied several times on its way to a client.
const maxQuoted = 64 << 10

// shortened returns args with long texts cut.
func shortened(args []any) []any {
	for i, arg := range args {
		switch text := arg.(type) {
		case string:
			if len(text) > maxQuoted {
				args = slices.Clone(args)
				args[i] = text[:maxQuoted] + "..."
			}
		case []byte:
			if len(text) > maxQuoted {
				args = slices.Clone(args)
				args[i] = append(slices.Clone(text[:maxQuoted]), "..."...)
			}
		}
	}
	return args
}

// Errorf returns an error with the given code. A %w verb keeps its argument as the cause. An
// argument that is a string of more than 64 KiB is cut.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, shortened(args)...)
	return &Error{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// InvalidArgumentf reports input that is wrong in any state of the system.
func InvalidArgumentf(format string, args ...any) *Error {
	return Errorf(InvalidArgument, format, args...)
}

// NotFoundf reports an object that does not exist.
func NotFoundf(format string, args ...any) *Error { return Errorf(NotFound, format, args...) }

// AlreadyExistsf reports that an object to be created exists.
func AlreadyExistsf(format string, args ...any) *Error { return Errorf(AlreadyExists, format, args...) }

// FailedPreconditionf reports that the system is in the wrong state for the operation.
func FailedPreconditionf(format string, args ...any) *Error {
	return Errorf(FailedPrecondition, format, args...)
}

// Abortedf reports that the operation was given up. It may succeed if a higher level starts over.
func Abortedf(format string, args ...any) *Error { return Errorf(Aborted, format, args...) }

// OutOfRangef reports an access beyond the valid range.
func OutOfRangef(format string, args ...any) *Error { return Errorf(OutOfRange, format, args...) }

// Unimplementedf reports an operation that is not supported.
func Unimplementedf(format string, args ...any) *Error { return Errorf(Unimplemented, format, args...) }

// Internalf reports a violated invariant of Weft.
func Internalf(format string, args ...any) *Error { return Errorf(Internal, format, args...) }

// Unavailablef reports that a task cannot be reached now.
func Unavailablef(format string, args ...any) *Error { return Errorf(Unavailable, format, args...) }

// ResourceExhaustedf reports that memory or another quota is exhausted.
func ResourceExhaustedf(format string, args ...any) *Error {
	return Errorf(ResourceExhausted, format, args...)
}

// DataLossf reports data that is irrecoverably damaged.
func DataLossf(format string, args ...any) *Error { return Errorf(DataLoss, format, args...) }

// Cancelledf reports that the caller gave up.
func Cancelledf(format string, args ...any) *Error { return Errorf(Cancelled, format, args...) }

// DeadlineExceededf reports that the deadline has passed.
func DeadlineExceededf(format string, args ...any) *Error {
	return Errorf(DeadlineExceeded, format, args...)
}

// CodeOf returns the code of err: OK for nil, that of the first *Error in its chain, Cancelled or
// DeadlineExceeded for the errors of package context, and Unknown for anything else.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	}
	return Unknown
}

// From returns err as an *Error: nil for nil, and err itself if it is one. Any other error becomes
// an *Error with the text of err, and the code and payloads found in its chain.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok { //nolint:errorlint // only the outermost error may be passed on as it is
		return e
	}
	out := &Error{Code: CodeOf(err), Message: err.Error(), cause: err}
	if e, ok := errors.AsType[*Error](err); ok {
		out.Payloads = e.Payloads
	}
	return out
}

// FromContext returns the error of a context that has ended. The text says what was waited for,
// unless the cause of the context is an *Error.
func FromContext(ctx context.Context, what string) *Error {
	err := context.Cause(ctx)
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return DeadlineExceededf("Deadline exceeded while %s", what)
	}
	return Cancelledf("Cancelled while %s", what)
}

// WithPayload returns a copy of e that carries a payload.
func (e *Error) WithPayload(key string, value []byte) *Error {
	out := *e
	out.Payloads = make(map[string][]byte, len(e.Payloads)+1)
	maps.Copy(out.Payloads, e.Payloads)
	out.Payloads[key] = value
	return &out
}

// Derive returns a copy of e that is marked as derived from another error.
func (e *Error) Derive() *Error { return e.WithPayload(PayloadDerived, nil) }

// derivedPrefix is the mark of derived errors in the text, in TensorFlow up to 2.6.
const derivedPrefix = "[_Derived_]"

// IsDerived reports whether err follows from another error.
func IsDerived(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	if _, ok := e.Payloads[PayloadDerived]; ok {
		return true
	}
	return strings.HasPrefix(e.Message, derivedPrefix)
}

// Annotate returns a copy of e with text appended to its message.
func (e *Error) Annotate(format string, args ...any) *Error {
	out := *e
	out.Message += fmt.Sprintf(format, args...)
	return &out
}

// AtNode appends the name of a graph node, [[{{node x}}]], in the form that TensorFlow's clients
// search for. It does nothing if the message already names a node.
func AtNode(err error, node string) *Error {
	e := From(err)
	if strings.Contains(e.Message, "[[{{node ") {
		return e
	}
	return e.Annotate("\n\t [[{{node %s}}]]", node)
}
