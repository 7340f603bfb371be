package status_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-ml/weft/status"
)

func group(errs ...error) *status.Group {
	g := &status.Group{}
	for _, err := range errs {
		g.Add(err)
	}
	return g
}

func TestGroup(t *testing.T) {
	bad, gone := status.InvalidArgumentf("bad"), status.Unavailablef("gone")
	cancelled := status.Cancelledf("Step was cancelled").Derive()
	restarted := status.Abortedf("old").WithPayload(status.PayloadWorkerRestarted, []byte{1})
	for _, tt := range []struct {
		name                  string
		group                 *status.Group
		concatenated, summary string
		code                  status.Code
	}{
		{"nothing", group(), "", "", status.OK},
		{"success", group(nil, nil), "", "", status.OK},
		{"one root", group(cancelled, nil, bad), "bad", "bad", status.InvalidArgument},
		{"equal roots", group(bad, status.InvalidArgumentf("bad")), "bad", "bad", status.InvalidArgument},
		{"only derived", group(cancelled), "Step was cancelled", "Step was cancelled", status.Cancelled},
		{
			"two roots", group(bad, cancelled, nil, nil, gone),
			"\n=====================\nUNAVAILABLE: gone\nINVALID_ARGUMENT: bad\n=====================\n",
			"2 root error(s) found.\n  (0) UNAVAILABLE: gone\n  (1) INVALID_ARGUMENT: bad\n2 successful operations.\n1 derived errors ignored.",
			status.Unavailable,
		},
		{
			"restart", group(bad, restarted),
			"\n=====================\nINVALID_ARGUMENT: bad\nABORTED: old\n=====================\n",
			"2 root error(s) found.\n  (0) INVALID_ARGUMENT: bad\n  (1) ABORTED: old\n0 successful operations.\n0 derived errors ignored.",
			status.InvalidArgument,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for want, got := range map[string]error{tt.concatenated: tt.group.Concatenated(), tt.summary: tt.group.Summary()} {
				if status.CodeOf(got) != tt.code || got != nil && got.Error() != want {
					t.Errorf("got %v %q, want %v %q", status.CodeOf(got), got, tt.code, want)
				}
			}
		})
	}
	if err := group(cancelled, bad).Concatenated(); status.IsDerived(err) {
		t.Error("a root cause is marked as derived")
	}
	if err := group(cancelled).Concatenated(); !status.IsDerived(err) {
		t.Error("a derived error has lost its mark")
	}
	var e *status.Error
	if !errors.As(group(bad, restarted).Concatenated(), &e) || e.Payloads[status.PayloadWorkerRestarted] == nil {
		t.Error("the payload of a root cause is lost")
	}
}

func TestGroupTextIsBounded(t *testing.T) {
	long := strings.Repeat("x", 6<<10)
	err := group(status.Internalf("a%s", long), status.Internalf("b%s", long)).Concatenated()
	if n := len(err.Error()); n != 8<<10 {
		t.Errorf("the text has %d bytes, want 8192", n)
	}
}

func TestSummaryAvoidsCancelled(t *testing.T) {
	err := group(status.Cancelledf("by hand"), status.Abortedf("lost")).Summary()
	if got := status.CodeOf(err); got != status.Aborted {
		t.Errorf("code %v, want ABORTED", got)
	}
}
