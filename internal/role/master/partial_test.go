package master_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
)

// pieces is a graph of several tasks for partial runs.
const pieces = `
	a = Placeholder() dtype=float
	b = Placeholder() dtype=float
	c = Placeholder() dtype=float
	ab = TestAdd(a, b) device=/job:ps
	abc = TestAdd(ab, c) device=/job:worker/task:1
`

func setUp(t *testing.T, s *testcluster.Session, feeds, fetches []string) string {
	t.Helper()
	handle, err := s.PartialSetup(t.Context(), feeds, fetches)
	if err != nil {
		t.Fatal(err)
	}
	return handle
}

func TestStepInPieces(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, pieces)
	for round, handle := range []string{"0", "1"} {
		if got := setUp(t, s, []string{"a:0", "b:0", "c:0"}, []string{"ab:0", "abc:0"}); got != handle {
			t.Errorf("handle %q, want %q", got, handle)
		}
		f := testcluster.Feeds{"a:0": scalar(1), "b:0": scalar(float32(round))}
		got, err := s.PartialRun(t.Context(), handle, f, "ab:0")
		if err != nil || got[0] != float32(1+round) {
			t.Fatalf("ab = %v, %v; want %d", got, err, 1+round)
		}
		got, err = s.PartialRun(t.Context(), handle, testcluster.Feeds{"c:0": scalar(10)}, "abc:0")
		if err != nil || got[0] != float32(11+round) {
			t.Fatalf("abc = %v, %v; want %d", got, err, 11+round)
		}
		_, err = s.PartialRun(t.Context(), handle, nil, "abc:0")
		expect(t, err, status.InvalidArgument, "Must run PartialRunSetup before performing partial runs")
	}
	if n := testcluster.Count(c.Calls(), "RegisterGraph"); n != 2 {
		t.Errorf("%d parts were registered, want 2", n)
	}
}

func TestPiecesOfSeveralStepsAtATime(t *testing.T) {
	s := open(t, psWorker(t), pieces)
	feeds, fetches := []string{"a:0", "b:0", "c:0"}, []string{"ab:0", "abc:0"}
	h, k := setUp(t, s, feeds, fetches), setUp(t, s, feeds, fetches)
	var got []float32
	for _, piece := range []struct {
		handle string
		feeds  testcluster.Feeds
		fetch  string
	}{
		{h, testcluster.Feeds{"a:0": scalar(1), "b:0": scalar(2)}, "ab:0"},
		{k, testcluster.Feeds{"a:0": scalar(10), "b:0": scalar(20)}, "ab:0"},
		{h, testcluster.Feeds{"c:0": scalar(3)}, "abc:0"},
		{k, testcluster.Feeds{"c:0": scalar(30)}, "abc:0"},
	} {
		v, err := s.PartialRun(t.Context(), piece.handle, piece.feeds, piece.fetch)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v...)
	}
	if want := []float32{3, 30, 6, 60}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPiecesThatCannotBeRun(t *testing.T) {
	s := open(t, psWorker(t), pieces)
	handle := setUp(t, s, []string{"a:0", "b:0"}, []string{"ab:0"})
	one := testcluster.Feeds{"a:0": scalar(1)}
	for _, tt := range []struct {
		feeds   testcluster.Feeds
		fetches []string
		text    string
	}{
		{testcluster.Feeds{"c:0": scalar(1)}, nil, "The feed c:0 was not specified in partial_run_setup."},
		{nil, []string{"abc:0"}, "The fetch abc:0 was not specified in partial_run_setup."},
		{one, []string{"ab:0"}, "can't be computed from the feeds that have been fed so far."},
	} {
		_, err := s.PartialRun(t.Context(), handle, tt.feeds, tt.fetches...)
		expect(t, err, status.InvalidArgument, tt.text)
	}
	if _, err := s.PartialRun(t.Context(), handle, one); err != nil {
		t.Fatal(err)
	}
	_, err := s.PartialRun(t.Context(), handle, one)
	expect(t, err, status.InvalidArgument, "The feed a:0 has already been fed.")
	got, err := s.PartialRun(t.Context(), handle, testcluster.Feeds{"b:0": scalar(2)}, "ab:0")
	if err != nil || got[0] != 3 {
		t.Errorf("got %v, %v; want 3", got, err)
	}
	_, err = s.PartialSetup(t.Context(), nil, nil)
	expect(t, err, status.InvalidArgument, "Must specify at least one target to fetch or execute.")
	_, err = s.PartialSetup(t.Context(), nil, []string{"zz:0"})
	expect(t, err, status.NotFound, "FetchOutputs node zz:0: not found")
}

func TestPieceThatFailsEndsTheStep(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, pieces+"f = TestFail(ab) device=/job:ps\n")
	handle := setUp(t, s, []string{"a:0", "b:0", "c:0"}, []string{"f:0", "abc:0"})
	_, err := s.PartialRun(t.Context(), handle, testcluster.Feeds{"a:0": scalar(1), "b:0": scalar(2)}, "f:0")
	expect(t, err, status.InvalidArgument, "failed")
	_, err = s.PartialRun(t.Context(), handle, testcluster.Feeds{"c:0": scalar(1)}, "abc:0")
	expect(t, err, status.InvalidArgument, "Must run PartialRunSetup before performing partial runs")
}

func TestSessionIsClosedBetweenPieces(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, pieces)
	handle := setUp(t, s, []string{"a:0", "b:0", "c:0"}, []string{"ab:0", "abc:0"})
	if _, err := s.PartialRun(t.Context(), handle, testcluster.Feeds{"a:0": scalar(1), "b:0": scalar(2)}, "ab:0"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, c) // the tasks are notified in the background
}

// A partial run ends when it has had no call for a time. One whose call runs does not.
func TestUnusedPartialRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testcluster.New(t, testcluster.Options{
			Jobs: map[string]int{"ps": 1, "worker": 2}, Kernels: testcluster.Kernels(), Quota: quota.Limits{PartialRun: 10 * time.Minute},
		})
		s := open(t, c, pieces+"d = TestBlock(a)\n")
		feeds, fetches := []string{"a:0", "b:0", "c:0"}, []string{"ab:0", "abc:0"}
		unused, used := setUp(t, s, feeds, fetches), setUp(t, s, feeds, fetches)
		blocked := setUp(t, s, []string{"a:0"}, []string{"d:0"})
		ended := make(chan error)
		go func() {
			_, err := s.PartialRun(t.Context(), blocked, testcluster.Feeds{"a:0": scalar(1)}, "d:0")
			ended <- err
		}()
		f := testcluster.Feeds{"a:0": scalar(1), "b:0": scalar(2)}
		<-time.After(8 * time.Minute)
		if _, err := s.PartialRun(t.Context(), used, f, "ab:0"); err != nil {
			t.Fatal(err)
		}
		<-time.After(8 * time.Minute)
		_, err := s.PartialRun(t.Context(), unused, f, "ab:0")
		expect(t, err, status.InvalidArgument, "Must run PartialRunSetup before performing partial runs")
		if _, err := s.PartialRun(t.Context(), used, testcluster.Feeds{"c:0": scalar(3)}, "abc:0"); err != nil {
			t.Errorf("a run with calls: %v", err)
		}
		select {
		case err := <-ended:
			t.Errorf("a run whose call lasts: %v", err)
		default:
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		<-ended //nolint:errcheck // the step fails with its session
	})
}
