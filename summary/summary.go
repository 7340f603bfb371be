// Package summary writes and reads event files, which TensorBoard displays. An event file contains
// scalars, histograms, images, sounds, texts and other tensors, each with a tag and a step, as well
// as graphs and the log of a session.
//
//	w, err := summary.NewWriter("/tmp/logs", summary.Options{})
//	…
//	defer w.Close()
//	err = w.Add(step, summary.Value{Tag: "loss", Data: loss}, summary.Value{Tag: "weights", Data: summary.NewHistogram(weights)})
//
// A file is a sequence of records. Each record is an event. The files in one folder form a run.
// After [Writer.Flush] or [Writer.Close] all events are on disk.
package summary

import (
	"time"

	"github.com/weft-ml/weft/tensor"
)

// Event is one record of an event file. Exactly one of the fields after Step is set.
type Event struct {
	Time time.Time // in microseconds; the zero Time for the time of writing
	Step int64

	FileVersion string // in the first record only
	Values      []Value
	Graph       []byte // a serialized tensorflow.GraphDef
	MetaGraph   []byte // a serialized tensorflow.MetaGraphDef
	Session     *SessionLog
	RunMetadata *RunMetadata
	Log         *LogMessage
}

// Value is a named value of a summary.
type Value struct {
	Tag  string
	Node string // graph node that computed the value, for values without a tag
	// Data is a float32, [Histogram], [Image], [Audio] or [tensor.Tensor]. It is nil if a value of
	// another kind was read from a file.
	Data any

	Plugin        string // TensorBoard plugin that displays the value
	PluginContent []byte // data for the plugin
	DisplayName   string
	Description   string
	Class         Class
}

// Class is the kind of the tensors with one tag.
type Class int32

// The classes of tensors.
const (
	ClassUnknown Class = iota
	ClassScalar
	ClassTensor
	ClassBlobSequence
)

// Text returns a value that TensorBoard displays as text. The texts may contain Markdown.
func Text(tag string, texts ...string) Value {
	return Value{
		Tag: tag, Data: tensor.Vector(texts...), Plugin: "text", PluginContent: nil, Class: ClassTensor,
	}
}

// SessionLog records that training started, stopped or saved a checkpoint.
type SessionLog struct {
	Status     SessionStatus
	Checkpoint string // prefix of the checkpoint, for SessionCheckpoint
	Message    string
}

// SessionStatus is the kind of a [SessionLog].
type SessionStatus int32

// The kinds of session logs.
const (
	SessionUnspecified SessionStatus = iota
	SessionStart
	SessionStop
	SessionCheckpoint
)

// RunMetadata is the trace of one step, with a tag.
type RunMetadata struct {
	Tag     string
	Message []byte // a serialized tensorflow.RunMetadata
}

// LogMessage is a line of a log.
type LogMessage struct {
	Level   int32 // 10 debug, 20 info, 30 warning, 40 error, 50 fatal
	Message string
}
