package summary

import (
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// maxTag bounds the size of the tag and the length of a value.
const maxTag = 16

// Marshal encodes values as a serialized tensorflow.Summary, the output of summary operations.
func Marshal(values ...Value) ([]byte, error) {
	var out []byte
	for i := range values {
		p, err := values[i].toProto()
		if err != nil {
			return nil, err
		}
		metadata := &pb.Summary_Value{Metadata: p.GetMetadata()}
		p.Metadata = nil // appended below: TensorFlow writes it last
		b, err := pbconv.Marshal(p)
		if err != nil {
			return nil, refusal(err)
		}
		last, err := pbconv.Marshal(metadata)
		if err != nil {
			return nil, refusal(err)
		}
		size := len(b) + len(last)
		if !membudget.Take(int64(2*len(out) + size)) {
			return nil, status.ResourceExhaustedf("There is not enough memory to encode the summary (--memory-limit).")
		}
		out = protowire.AppendVarint(protowire.AppendTag(slices.Grow(out, size+maxTag), 1, protowire.BytesType), uint64(size))
		out = append(append(out, b...), last...)
	}
	return out, nil
}

// Unmarshal decodes a serialized tensorflow.Summary. The error has the code DataLoss.
func Unmarshal(b []byte) ([]Value, error) {
	p := &pb.Summary{}
	if err := proto.Unmarshal(b, p); err != nil {
		return nil, status.DataLossf("not a summary: %w", err)
	}
	return fromProto(p)
}

func marshal(m proto.Message) ([]byte, error) {
	b, err := pbconv.Marshal(m)
	if err != nil {
		return nil, refusal(err)
	}
	return b, nil
}

// refusal returns the error for a message that cannot be encoded.
func refusal(err error) error {
	if status.CodeOf(err) == status.ResourceExhausted {
		return err
	}
	return status.InvalidArgumentf("%w", err)
}

func toProto(values []Value) (*pb.Summary, error) {
	p := &pb.Summary{}
	for i := range values {
		v, err := values[i].toProto()
		if err != nil {
			return nil, err
		}
		p.Value = append(p.Value, v)
	}
	return p, nil
}

func (v *Value) toProto() (*pb.Summary_Value, error) {
	p := &pb.Summary_Value{Tag: v.Tag, NodeName: v.Node, Metadata: v.metadata()}
	switch data := v.Data.(type) {
	case nil:
	case float32:
		p.Value = &pb.Summary_Value_SimpleValue{SimpleValue: data}
	case Histogram:
		p.Value = &pb.Summary_Value_Histo{Histo: data.toProto()}
	case Image:
		p.Value = &pb.Summary_Value_Image{Image: &pb.Summary_Image{
			Height: int32(data.Height), Width: int32(data.Width), Colorspace: int32(data.Channels), EncodedImageString: data.Encoded,
		}}
	case Audio:
		p.Value = &pb.Summary_Value_Audio{Audio: &pb.Summary_Audio{
			SampleRate: data.SampleRate, NumChannels: data.Channels, LengthFrames: data.Frames, EncodedAudioString: data.Encoded,
			ContentType: data.ContentType,
		}}
	case tensor.Tensor:
		t, err := pbconv.TensorToProto(&data)
		if err != nil {
			return nil, err
		}
		p.Value = &pb.Summary_Value_Tensor{Tensor: t}
	default:
		return nil, status.InvalidArgumentf("the value of %q has the type %T, which a summary cannot hold", v.Tag, data)
	}
	return p, nil
}

func (v *Value) metadata() *pb.SummaryMetadata {
	if v.Plugin == "" && v.PluginContent == nil && v.DisplayName == "" && v.Description == "" && v.Class == 0 {
		return nil
	}
	p := &pb.SummaryMetadata{DisplayName: v.DisplayName, SummaryDescription: v.Description, DataClass: pb.DataClass(v.Class)}
	if v.Plugin != "" || v.PluginContent != nil {
		p.PluginData = &pb.SummaryMetadata_PluginData{PluginName: v.Plugin, Content: v.PluginContent}
	}
	return p
}

func fromProto(p *pb.Summary) ([]Value, error) {
	values := make([]Value, len(p.GetValue()))
	for i, q := range p.GetValue() {
		values[i] = Value{Tag: q.GetTag(), Node: q.GetNodeName()}
		values[i].setMetadata(q.GetMetadata())
		var err error
		if values[i].Data, err = dataFromProto(q); err != nil {
			return nil, status.Errorf(status.CodeOf(err), "value %q: %w", q.GetTag(), err)
		}
	}
	return values, nil
}

func dataFromProto(p *pb.Summary_Value) (any, error) {
	switch v := p.GetValue().(type) {
	case *pb.Summary_Value_SimpleValue:
		return v.SimpleValue, nil
	case *pb.Summary_Value_Histo:
		return histogramFromProto(v.Histo), nil
	case *pb.Summary_Value_Image:
		return Image{
			int(v.Image.GetHeight()), int(v.Image.GetWidth()), int(v.Image.GetColorspace()), v.Image.GetEncodedImageString(),
		}, nil
	case *pb.Summary_Value_Audio:
		a := v.Audio
		return Audio{a.GetSampleRate(), a.GetNumChannels(), a.GetLengthFrames(), a.GetEncodedAudioString(), a.GetContentType()}, nil
	case *pb.Summary_Value_Tensor:
		return pbconv.TensorFromProto(v.Tensor)
	default:
		return nil, nil
	}
}

func (e *Event) toProto() (*pb.Event, error) {
	p := &pb.Event{WallTime: float64(e.Time.UnixMicro()) / 1e6, Step: e.Step}
	switch {
	case e.FileVersion != "":
		p.What = &pb.Event_FileVersion{FileVersion: e.FileVersion}
	case e.Values != nil:
		s, err := toProto(e.Values)
		if err != nil {
			return nil, err
		}
		p.What = &pb.Event_Summary{Summary: s}
	case e.Graph != nil:
		p.What = &pb.Event_GraphDef{GraphDef: e.Graph}
	case e.MetaGraph != nil:
		p.What = &pb.Event_MetaGraphDef{MetaGraphDef: e.MetaGraph}
	case e.Session != nil:
		p.What = &pb.Event_SessionLog{SessionLog: &pb.SessionLog{
			Status: pb.SessionLog_SessionStatus(e.Session.Status), CheckpointPath: e.Session.Checkpoint, Msg: e.Session.Message,
		}}
	case e.RunMetadata != nil:
		p.What = &pb.Event_TaggedRunMetadata{TaggedRunMetadata: &pb.TaggedRunMetadata{
			Tag: e.RunMetadata.Tag, RunMetadata: e.RunMetadata.Message,
		}}
	case e.Log != nil:
		p.What = &pb.Event_LogMessage{LogMessage: &pb.LogMessage{ //nolint:staticcheck // old files have them
			Level: pb.LogMessage_Level(e.Log.Level), Message: e.Log.Message,
		}}
	}
	return p, nil
}

func eventFromProto(p *pb.Event) (Event, error) {
	e := Event{Time: wallTime(p.GetWallTime()), Step: p.GetStep()}
	switch what := p.GetWhat().(type) {
	case *pb.Event_FileVersion:
		e.FileVersion = what.FileVersion
	case *pb.Event_Summary:
		var err error
		if e.Values, err = fromProto(what.Summary); err != nil {
			return Event{}, err
		}
	case *pb.Event_GraphDef:
		e.Graph = what.GraphDef
	case *pb.Event_MetaGraphDef:
		e.MetaGraph = what.MetaGraphDef
	case *pb.Event_SessionLog:
		s := what.SessionLog
		e.Session = &SessionLog{SessionStatus(s.GetStatus()), s.GetCheckpointPath(), s.GetMsg()}
	case *pb.Event_TaggedRunMetadata:
		e.RunMetadata = &RunMetadata{what.TaggedRunMetadata.GetTag(), what.TaggedRunMetadata.GetRunMetadata()}
	case *pb.Event_LogMessage: //nolint:staticcheck // old files have them
		e.Log = &LogMessage{int32(what.LogMessage.GetLevel()), what.LogMessage.GetMessage()}
	}
	return e, nil
}

// wallTime converts seconds since 1970 to a time.
func wallTime(seconds float64) time.Time {
	if math.IsNaN(seconds) || math.Abs(seconds) > 1e12 {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(seconds * 1e6)))
}

// SetMetadata sets the fields after Data from a serialized tensorflow.SummaryMetadata. The error
// has the code DataLoss.
func (v *Value) SetMetadata(message []byte) error {
	m := &pb.SummaryMetadata{}
	if err := proto.Unmarshal(message, m); err != nil {
		return status.DataLossf("not a SummaryMetadata: %w", err)
	}
	v.setMetadata(m)
	return nil
}

func (v *Value) setMetadata(m *pb.SummaryMetadata) {
	v.Plugin, v.PluginContent = m.GetPluginData().GetPluginName(), m.GetPluginData().GetContent()
	v.DisplayName, v.Description, v.Class = m.GetDisplayName(), m.GetSummaryDescription(), Class(m.GetDataClass())
}

// CheckEvent returns an error if b is not a serialized tensorflow.Event.
func CheckEvent(b []byte) error { return proto.Unmarshal(b, &pb.Event{}) }

// CheckGraph returns an error if b is not a serialized tensorflow.GraphDef.
func CheckGraph(b []byte) error { return proto.Unmarshal(b, &pb.GraphDef{}) }
