package summary

import (
	"bytes"
	"errors"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

var noon = time.Date(2024, 5, 6, 12, 0, 0, 250_000_000, time.UTC)

func newWriter(t *testing.T, dir string, options Options) *Writer {
	t.Helper()
	if options.Now == nil {
		options.Now = func() time.Time { return noon }
	}
	w, err := NewWriter(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func readAll(t *testing.T, path string) []Event {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var events []Event
	for e, err := range r.Events() {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// TestRoundTrip writes an event of every kind.
func TestRoundTrip(t *testing.T) {
	picture, err := NewImage(1, 2, 3, []byte{1, 2, 3, 4, 5, 6})
	if err != nil {
		t.Fatal(err)
	}
	sound, err := NewAudio(8000, 1, []float32{0, 0.5, -1})
	if err != nil {
		t.Fatal(err)
	}
	values := []Value{
		{Tag: "loss", Data: float32(0.5)}, {Tag: "nan", Data: float32(math.Inf(1))}, {Tag: "weights", Data: NewHistogram([]float64{-1, 0, 2.5})},
		{Tag: "digit", Data: picture}, {Tag: "tone", Data: sound}, Text("note", "*a*", "b"),
		{Tag: "t", Data: tensor.Vector[int64](1, 2), Plugin: "p", PluginContent: []byte{7}, DisplayName: "T", Description: "d", Class: ClassScalar},
	}
	events := []Event{
		{Step: 3, Values: values},
		{Step: 4, Graph: []byte("graph")},
		{Step: 5, MetaGraph: []byte("meta")},
		{Step: 6, Session: &SessionLog{Status: SessionCheckpoint, Checkpoint: "/tmp/m", Message: "saved"}},
		{Step: 7, RunMetadata: &RunMetadata{Tag: "step", Message: []byte("m")}},
		{Step: 8, Log: &LogMessage{Level: 30, Message: "careful"}},
	}
	w := newWriter(t, t.TempDir(), Options{Suffix: ".test"})
	for _, e := range events {
		if err := w.AddEvent(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := readAll(t, w.Path())
	if len(got) != len(events)+1 || got[0].FileVersion != "brain.Event:2" || got[0].Time.Unix() != noon.Unix() {
		t.Fatalf("got %d events, the first is %+v", len(got), got[0])
	}
	for i, e := range got[1:] {
		want := events[i]
		if !e.Time.Equal(noon) || e.Step != want.Step {
			t.Errorf("event %d is of %v, step %d", i, e.Time, e.Step)
		}
		e.Time = time.Time{}
		for k := range e.Values {
			if x, ok := e.Values[k].Data.(tensor.Tensor); ok { // compare the elements
				y := want.Values[k].Data.(tensor.Tensor)
				if !reflect.DeepEqual(x.Go(), y.Go()) {
					t.Errorf("%s is %v, want %v", e.Values[k].Tag, x.Go(), y.Go())
				}
				e.Values[k].Data = y
			}
		}
		if !reflect.DeepEqual(e, want) {
			t.Errorf("event %d: got %+v, want %+v", i, e, want)
		}
	}
	if name := filepath.Base(w.Path()); !strings.HasPrefix(name, "events.out.tfevents.1714996800.") || !strings.HasSuffix(name, ".test") {
		t.Errorf("the file name is %s", name)
	}
}

// TestConveniences checks that the specific methods write the same as AddEvent.
func TestConveniences(t *testing.T) {
	w := newWriter(t, t.TempDir(), Options{})
	for _, err := range []error{
		w.Add(1, Value{Tag: "x", Data: float32(1)}), w.AddGraph([]byte("g")), w.AddMetaGraph(2, []byte("m")),
		w.AddSession(3, SessionLog{Status: SessionStart}), w.AddRunMetadata(4, RunMetadata{Tag: "r"}), w.Flush(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := readAll(t, w.Path())
	if len(got) != 6 || got[1].Values[0].Tag != "x" || string(got[2].Graph) != "g" || string(got[3].MetaGraph) != "m" ||
		got[4].Session.Status != SessionStart || got[5].RunMetadata.Tag != "r" {
		t.Errorf("got %+v", got)
	}
}

// TestFlushing checks when events are written to disk, with a clock that the test sets.
func TestFlushing(t *testing.T) {
	now := noon
	w := newWriter(t, t.TempDir(), Options{MaxQueue: 2, FlushEvery: time.Minute, Now: func() time.Time { return now }})
	add := func(step int64, after time.Duration, want int) {
		t.Helper()
		now = now.Add(after)
		if err := w.Add(step, Value{Tag: "x", Data: float32(step)}); err != nil {
			t.Fatal(err)
		}
		if got := len(readAll(t, w.Path())) - 1; got != want {
			t.Errorf("after step %d there are %d events on disk, want %d", step, got, want)
		}
	}
	add(1, 0, 0)
	add(2, 0, 0)
	add(3, 0, 3) // the queue is full
	add(4, time.Second, 3)
	add(5, time.Minute, 5) // FlushEvery has passed
}

// TestReadingWhileWriting continues to read after the end of the file.
func TestReadingWhileWriting(t *testing.T) {
	w := newWriter(t, t.TempDir(), Options{MaxQueue: -1})
	r, err := Open(w.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if e, err := r.Next(); err != nil || e.FileVersion == "" {
		t.Fatalf("got %+v, %v", e, err)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("at the end: %v", err)
	}
	for step := range int64(2) {
		if err := w.Add(step, Value{Tag: "x", Data: float32(step)}); err != nil {
			t.Fatal(err)
		}
		if e, err := r.Next(); err != nil || e.Step != step {
			t.Fatalf("got %+v, %v", e, err)
		}
	}
}

// TestDamage truncates a file at every byte and flips every byte.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, Options{})
	for step := range int64(2) {
		if err := w.Add(step, Value{Tag: "x", Data: float32(step)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(w.Path())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "damaged")
	read := func(b []byte) (n int, err error) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for _, err := range r.Events() {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	for i := range whole {
		if n, err := read(whole[:i]); err != nil || n > 2 {
			t.Errorf("cut at %d: %d events, %v", i, n, err)
		}
		b := bytes.Clone(whole)
		b[i] ^= 0x10
		if n, err := read(b); n > 2 || err != nil && (status.CodeOf(err) != status.DataLoss || !strings.Contains(err.Error(), path)) {
			t.Errorf("flipped at %d: %d events, %v", i, n, err)
		}
	}
}

func TestClosed(t *testing.T) {
	w := newWriter(t, t.TempDir(), Options{})
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{w.Add(1), w.Flush()} {
		if status.CodeOf(err) != status.FailedPrecondition || !strings.Contains(err.Error(), w.Path()) {
			t.Errorf("got %v", err)
		}
	}
}

func TestConcurrentWriters(t *testing.T) {
	dir := t.TempDir()
	a, b := newWriter(t, dir, Options{}), newWriter(t, dir, Options{})
	var writing sync.WaitGroup
	for i := range int64(20) {
		writing.Go(func() {
			for _, w := range []*Writer{a, b} {
				if err := w.Add(i, Value{Tag: "x", Data: float32(i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	if err := errors.Join(a.Flush(), b.Flush()); err != nil {
		t.Fatal(err)
	}
	files, err := Files(dir)
	if err != nil || len(files) != 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if n := len(readAll(t, f)); n != 21 {
			t.Errorf("%s has %d events", f, n)
		}
	}
}

func TestHistogram(t *testing.T) {
	h := NewHistogram([]float64{-1, 0, 0.5, 2})
	inside := 0.0
	for _, n := range h.Buckets {
		inside += n
	}
	if h.Min != -1 || h.Max != 2 || len(h.Buckets) != len(h.Limits) || inside != h.Count {
		t.Errorf("got %+v with %v in buckets", h, inside)
	}
	for i := 1; i < len(h.Limits); i++ {
		if h.Limits[i] <= h.Limits[i-1] {
			t.Errorf("limit %d is not larger than the one before it: %v", i, h.Limits)
		}
	}
}

func TestImages(t *testing.T) {
	floats, err := tensor.FromSlice(tensor.Shape{2, 1, 2, 1}, []float32{0, 1, -1, 1})
	if err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int]int{1: 1, 5: 2} {
		images, err := Images(&floats, most, []byte{255, 0, 0, 255})
		if err != nil || len(images) != want {
			t.Fatalf("%d images, %v, want %d", len(images), err, want)
		}
		img, err := png.Decode(bytes.NewReader(images[0].Encoded))
		if err != nil || img.Bounds().Dx() != 2 || img.Bounds().Dy() != 1 || images[0].Width != 2 || images[0].Height != 1 {
			t.Errorf("image of %v, %v", img.Bounds(), err)
		}
	}
	flat := tensor.Vector[float32](1)
	if _, err := Images(&flat, 1, nil); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("for a vector got %v", err)
	}
	if _, err := NewImage(2, 2, 3, []byte{1}); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("for too few pixels got %v", err)
	}
	if _, err := NewImage(1, 1, 7, make([]byte, 7)); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("for seven channels got %v", err)
	}
}

func TestSounds(t *testing.T) {
	waves, err := tensor.FromSlice(tensor.Shape{2, 3, 2}, make([]float32, 12))
	if err != nil {
		t.Fatal(err)
	}
	sounds, err := Sounds(&waves, 3, 44100)
	if err != nil || len(sounds) != 2 {
		t.Fatalf("%d sounds, %v", len(sounds), err)
	}
	if s := sounds[0]; s.Channels != 2 || s.Frames != 3 || s.SampleRate != 44100 || !bytes.HasPrefix(s.Encoded, []byte("RIFF")) {
		t.Errorf("got %+v", s)
	}
}

func TestMarshal(t *testing.T) {
	want := []Value{{Tag: "a", Data: float32(1)}, Text("b", "c")}
	b, err := Marshal(want...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Unmarshal(b)
	if err != nil || len(got) != 2 || got[0].Tag != "a" || got[1].Plugin != "text" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := Unmarshal([]byte{0xff}); status.CodeOf(err) != status.DataLoss {
		t.Errorf("for junk got %v", err)
	}
	if _, err := Marshal(Value{Tag: "x", Data: 3}); err == nil {
		t.Error("no error for an int")
	}
}

func FuzzEvents(f *testing.F) {
	var file bytes.Buffer
	w, err := record.NewWriter(&file, record.None)
	if err != nil {
		f.Fatal(err)
	}
	for _, v := range []Value{{Tag: "a", Data: float32(1)}, {Tag: "h", Data: NewHistogram([]float64{1})}, Text("t", "x")} {
		e := Event{Step: 1, Values: []Value{v}}
		p, err := e.toProto()
		if err != nil {
			f.Fatal(err)
		}
		b, err := marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		if err := w.Write(b); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decode(b)
		if err != nil {
			return
		}
		p, err := e.toProto()
		if err != nil {
			return
		}
		if _, err := marshal(p); err != nil {
			t.Errorf("the decoded values cannot be encoded: %v", err)
		}
	})
}
