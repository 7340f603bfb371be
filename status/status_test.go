package status_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/status"
)

func TestCodes(t *testing.T) {
	names := map[status.Code]string{
		0: "OK", 1: "CANCELLED", 2: "UNKNOWN", 3: "INVALID_ARGUMENT", 4: "DEADLINE_EXCEEDED", 5: "NOT_FOUND", 6: "ALREADY_EXISTS",
		7: "PERMISSION_DENIED", 8: "RESOURCE_EXHAUSTED", 9: "FAILED_PRECONDITION", 10: "ABORTED", 11: "OUT_OF_RANGE",
		12: "UNIMPLEMENTED", 13: "INTERNAL", 14: "UNAVAILABLE", 15: "DATA_LOSS", 16: "UNAUTHENTICATED", 17: "CODE_17", -1: "CODE_-1",
	}
	for code, want := range names {
		if got := code.String(); got != want {
			t.Errorf("code %d is %s, want %s", int(code), got, want)
		}
	}
}

func TestConstructors(t *testing.T) {
	for _, test := range []struct {
		make func(string, ...any) *status.Error
		want status.Code
	}{
		{status.InvalidArgumentf, status.InvalidArgument}, {status.NotFoundf, status.NotFound}, {status.AlreadyExistsf, status.AlreadyExists},
		{status.FailedPreconditionf, status.FailedPrecondition}, {status.Abortedf, status.Aborted}, {status.OutOfRangef, status.OutOfRange},
		{status.Unimplementedf, status.Unimplemented}, {status.Internalf, status.Internal}, {status.Unavailablef, status.Unavailable},
		{status.ResourceExhaustedf, status.ResourceExhausted}, {status.DataLossf, status.DataLoss}, {status.Cancelledf, status.Cancelled},
		{status.DeadlineExceededf, status.DeadlineExceeded},
	} {
		cause := errors.New("why")
		err := test.make("what: %w", cause)
		if err.Code != test.want || err.Error() != "what: why" || !errors.Is(err, cause) {
			t.Errorf("got %v %v, want %v", err.Code, err, test.want)
		}
	}
}

func TestCodeOf(t *testing.T) {
	coded := status.NotFoundf("x")
	for _, test := range []struct {
		err  error
		want status.Code
	}{
		{nil, status.OK}, {errors.New("x"), status.Unknown}, {coded, status.NotFound}, {fmt.Errorf("y: %w", coded), status.NotFound},
		{context.Canceled, status.Cancelled}, {fmt.Errorf("y: %w", context.DeadlineExceeded), status.DeadlineExceeded},
		{status.Abortedf("z: %w", coded), status.Aborted},
	} {
		if got := status.CodeOf(test.err); got != test.want {
			t.Errorf("%v: got %v, want %v", test.err, got, test.want)
		}
	}
}

func TestFrom(t *testing.T) {
	if status.From(nil) != nil {
		t.Error("no error becomes one")
	}
	coded := status.NotFoundf("x").WithPayload("key", []byte("value"))
	if status.From(coded) != coded {
		t.Error("a coded error is copied")
	}
	got := status.From(fmt.Errorf("outer: %w", coded))
	if got.Code != status.NotFound || got.Message != "outer: x" || string(got.Payloads["key"]) != "value" || !errors.Is(got, coded) {
		t.Errorf("got %+v", got)
	}
}

func TestFromContext(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, done := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer done()
	caused, stop := context.WithCancelCause(t.Context())
	stop(status.Abortedf("the worker restarted"))
	for _, test := range []struct {
		ctx  context.Context
		code status.Code
		text string
	}{
		{cancelled, status.Cancelled, "Cancelled while waiting"}, {late, status.DeadlineExceeded, "Deadline exceeded while waiting"},
		{caused, status.Aborted, "the worker restarted"},
	} {
		if err := status.FromContext(test.ctx, "waiting"); err.Code != test.code || err.Message != test.text {
			t.Errorf("got %v %v, want %v %s", err.Code, err, test.code, test.text)
		}
	}
}

func TestPayloads(t *testing.T) {
	root := status.Abortedf("root")
	one := root.WithPayload("a", []byte("1"))
	two := one.WithPayload("b", []byte("2"))
	if root.Payloads != nil || len(one.Payloads) != 1 || len(two.Payloads) != 2 || two.Code != status.Aborted || two.Message != "root" {
		t.Errorf("payloads are %v, %v, %v", root.Payloads, one.Payloads, two.Payloads)
	}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{root, false}, {root.Derive(), true}, {fmt.Errorf("x: %w", root.Derive()), true}, {status.Cancelledf("[_Derived_]x"), true},
		{errors.New("[_Derived_]x"), false}, {nil, false}, {root.Derive().Annotate("more"), true},
	} {
		if got := status.IsDerived(test.err); got != test.want {
			t.Errorf("%v: derived is %v", test.err, got)
		}
	}
}

func TestAtNode(t *testing.T) {
	err := status.AtNode(status.InvalidArgumentf("bad"), "n/a")
	if err.Error() != "bad\n\t [[{{node n/a}}]]" || status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("got %v", err)
	}
	if again := status.AtNode(err, "outer"); again.Error() != err.Error() {
		t.Errorf("named twice: %v", again)
	}
	if plain := status.AtNode(errors.New("x"), "n"); status.CodeOf(plain) != status.Unknown || plain.Error() != "x\n\t [[{{node n}}]]" {
		t.Errorf("got %v", plain)
	}
}

// Texts that are long are cut, and the arguments of the caller stay as they are.
func TestLongArguments(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	args := []any{long, []byte(long), 7}
	got := status.Errorf(status.InvalidArgument, "%s, %s and %d", args...).Message
	if want := strings.Repeat("x", 64<<10) + "..."; got != want+", "+want+" and 7" {
		t.Errorf("the error has %d bytes", len(got))
	}
	if args[0] != long {
		t.Error("an argument was changed")
	}
}
