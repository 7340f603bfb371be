// Package summary writes and reads event files, from which TensorBoard draws its pictures: scalars,
// histograms, images, sounds, texts and other tensors, each with a tag and a step, beside graphs
// and the log of a session.
//
//	w, err := summary.NewWriter("/tmp/logs", summary.Options{})
//	…
//	defer w.Close()
//	err = w.Add(step, summary.Value{Tag: "loss", Data: loss}, summary.Value{Tag: "weights", Data: summary.NewHistogram(weights)})
//
// A file is a sequence of records, each an event; the files of one folder together are a run. What
// was flushed is on disk.
package summary

import (
	"time"

	"github.com/weft-ml/weft/tensor"
)

// Event is one record of an event file. One of the fields after Step is set.
type Event struct {
	Time time.Time // when it was made, to the microsecond
	Step int64

	FileVersion string // only in the first record
	Values      []Value
	Graph       []byte // a GraphDef
	MetaGraph   []byte // a MetaGraphDef
	Session     *SessionLog
	RunMetadata *RunMetadata
	Log         *LogMessage
}

// Value is a named value of a summary.
type Value struct {
	Tag  string
	Node string // the graph node that made it, for values without a tag
	// Data is a float32, a Histogram, an Image, an Audio or a tensor.Tensor; nil for other kinds,
	// which were read from a file.
	Data any

	Plugin        string // which part of TensorBoard shows it
	PluginContent []byte // what that part wants to know
	DisplayName   string
	Description   string
	Class         Class
}

// Class says what the tensors under one tag are.
type Class int32

// The classes of tensors.
const (
	ClassUnknown Class = iota
	ClassScalar
	ClassTensor
	ClassBlobSequence
)

// Text returns a value that TensorBoard shows as text, Markdown included.
func Text(tag string, texts ...string) Value {
	return Value{
		Tag: tag, Data: tensor.Vector(texts...), Plugin: "text", PluginContent: nil, Class: ClassTensor,
	}
}

// SessionLog tells that training began, stopped or saved a checkpoint.
type SessionLog struct {
	Status     SessionStatus
	Checkpoint string // prefix, with SessionCheckpoint
	Message    string
}

// SessionStatus is what happened to a session.
type SessionStatus int32

// What can happen to a session.
const (
	SessionUnspecified SessionStatus = iota
	SessionStart
	SessionStop
	SessionCheckpoint
)

// RunMetadata is what is known of one step: a RunMetadata message under a tag.
type RunMetadata struct {
	Tag     string
	Message []byte
}

// LogMessage is a line of a log.
type LogMessage struct {
	Level   int32 // 10 debug, 20 info, 30 warning, 40 error, 50 fatal
	Message string
}
