package summary

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// Options configure a [Writer].
type Options struct {
	Suffix string // of the file name
	// FlushEvery is the time after which the next event flushes the buffer; 2 minutes if 0.
	FlushEvery time.Duration
	// MaxQueue is the number of events in the buffer beyond which it is flushed: 10 if 0. If it is
	// negative every event is flushed.
	MaxQueue int
	Now      func() time.Time // the clock; time.Now if nil
}

// Writer writes an event file. Its methods may be called concurrently.
type Writer struct {
	path    string
	options Options

	mu      sync.Mutex
	f       *fileio.File   // nil after Close; guarded by mu
	w       *record.Writer // guarded by mu
	waiting int            // events in the buffer; guarded by mu
	flushed time.Time      // time of the last flush; guarded by mu
}

const (
	fileVersion = "brain.Event:2"
	madeBy      = "tensorflow.core.util.events_writer"
)

// NewWriter creates an event file in a folder, and the folder if it does not exist.
func NewWriter(dir string, options Options) (*Writer, error) {
	return NewWriterIn(fileio.Files{}, dir, options)
}

// NewWriterIn is [NewWriter] for the files of a task's operation. Their context must not end before
// the writer is closed.
func NewWriterIn(files fileio.Files, dir string, options Options) (*Writer, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.FlushEvery == 0 {
		options.FlushEvery = 2 * time.Minute
	}
	if options.MaxQueue == 0 {
		options.MaxQueue = 10
	}
	if err := files.MakeDirs(dir); err != nil {
		return nil, err
	}
	w := &Writer{options: options}
	if err := w.create(files, dir); err != nil {
		return nil, err
	}
	return w, nil
}

// numbers numbers the files of this process, to make their names unique.
var numbers atomic.Int64

// create creates the file and writes the first event.
func (w *Writer) create(files fileio.Files, dir string) error {
	now := w.options.Now()
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	w.path = fileio.Join(dir, fmt.Sprintf("events.out.tfevents.%010d.%s.%d.%d%s", now.Unix(), host, os.Getpid(), numbers.Add(1)-1,
		w.options.Suffix))
	if w.f, err = files.CreateNew(w.path); err != nil {
		return err
	}
	if w.w, err = record.NewWriter(w.f, record.None); err != nil {
		return err
	}
	first := &pb.Event{
		WallTime: float64(now.Unix()), What: &pb.Event_FileVersion{FileVersion: fileVersion},
		SourceMetadata: &pb.SourceMetadata{Writer: madeBy},
	}
	b, err := marshal(first)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.w.Write(b); err != nil {
		return err
	}
	return w.flushLocked()
}

// Path returns the path of the file.
func (w *Writer) Path() string { return w.path }

// Add writes the values of a step as one event.
func (w *Writer) Add(step int64, values ...Value) error {
	return w.AddEvent(Event{Step: step, Values: values})
}

// AddGraph writes a graph: a serialized tensorflow.GraphDef.
func (w *Writer) AddGraph(graph []byte) error { return w.AddEvent(Event{Graph: graph}) }

// AddMetaGraph writes a MetaGraph: a serialized tensorflow.MetaGraphDef.
func (w *Writer) AddMetaGraph(step int64, graph []byte) error {
	return w.AddEvent(Event{Step: step, MetaGraph: graph})
}

// AddSession writes an event in the life of the session at a step.
func (w *Writer) AddSession(step int64, log SessionLog) error {
	return w.AddEvent(Event{Step: step, Session: &log})
}

// AddRunMetadata writes the trace of a step.
func (w *Writer) AddRunMetadata(step int64, metadata RunMetadata) error {
	return w.AddEvent(Event{Step: step, RunMetadata: &metadata})
}

// AddEvent writes an event. If its time is zero it gets the current time. The error has the code
// FailedPrecondition after Close.
func (w *Writer) AddEvent(e Event) error {
	if e.Time.IsZero() {
		e.Time = w.options.Now()
	}
	p, err := e.toProto()
	if err != nil {
		return err
	}
	b, err := marshal(p)
	if err != nil {
		return err
	}
	return w.AddRaw(b)
}

// AddRaw writes a serialized tensorflow.Event.
func (w *Writer) AddRaw(event []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil {
		return closed(w.path)
	}
	if err := w.w.Write(event); err != nil {
		return err
	}
	w.waiting++
	if w.waiting > w.options.MaxQueue || w.options.Now().Sub(w.flushed) >= w.options.FlushEvery {
		return w.flushLocked()
	}
	return nil
}

func closed(path string) error {
	return status.FailedPreconditionf("the event file %s is closed", path)
}

// Flush waits until all events are on disk.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil {
		return closed(w.path)
	}
	return w.flushLocked()
}

func (w *Writer) flushLocked() error {
	w.flushed = w.options.Now()
	w.waiting = 0
	if err := w.w.Flush(); err != nil {
		return err
	}
	return w.f.Sync()
}

// Close flushes and closes the file. Later calls do nothing.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil {
		return nil
	}
	err := w.flushLocked()
	if e := w.f.Close(); err == nil {
		err = e
	}
	w.f = nil
	return err
}
