package servable

import (
	"slices"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// Numbers of fields in a SavedModel.
const (
	fieldMetaGraphs    protowire.Number = 2 // of SavedModel
	fieldMetaInfo      protowire.Number = 1 // of MetaGraphDef
	fieldSignatureDefs protowire.Number = 5 // of MetaGraphDef
)

// readSignatures reads the signatures of the MetaGraph with the given tags. It does not decode the
// graph, which package savedmodel does: clients get the signatures as the file has them.
func readSignatures(dir string, tags []string) (map[string]*pb.SignatureDef, error) {
	data, err := fileio.Files{}.Read(fileio.Join(dir, "saved_model.pb"))
	if status.CodeOf(err) == status.NotFound {
		return readTextSignatures(dir, tags)
	}
	if err != nil {
		return nil, status.Errorf(status.Unavailable, "%w", err)
	}
	for {
		meta, rest, ok := nextField(data, fieldMetaGraphs)
		if !ok {
			return nil, nil // package savedmodel reports it
		}
		data = rest
		found := &pb.MetaGraphDef{}
		for _, number := range []protowire.Number{fieldMetaInfo, fieldSignatureDefs} {
			for left := meta; ; {
				value, rest, ok := nextField(left, number)
				if !ok {
					break
				}
				left = rest
				field := protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
				if !protomem.Take(found.ProtoReflect().Descriptor(), field) {
					return nil, status.ResourceExhaustedf("%s: there is no memory for the signatures of the model (--memory-limit)", dir)
				}
				if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(field, found); err != nil {
					return nil, status.DataLossf("%s: %w", dir, err)
				}
			}
		}
		if sameTags(found, tags) {
			return found.GetSignatureDef(), nil
		}
	}
}

// readTextSignatures is readSignatures for a model in text form. A missing file is reported by
// package savedmodel.
func readTextSignatures(dir string, tags []string) (map[string]*pb.SignatureDef, error) {
	data, err := fileio.Files{}.Read(fileio.Join(dir, "saved_model.pbtxt"))
	if status.CodeOf(err) == status.NotFound {
		return nil, nil
	}
	model := &pb.SavedModel{}
	if err == nil && !membudget.Take(protomem.TextMemory(data)) {
		return nil, status.ResourceExhaustedf("%s: there is no memory for the messages of the model (--memory-limit)", dir)
	}
	if err == nil {
		err = prototext.Unmarshal(data, model)
	}
	if err != nil {
		return nil, status.DataLossf("%s: %w", dir, err)
	}
	for _, meta := range model.GetMetaGraphs() {
		if sameTags(meta, tags) {
			return meta.GetSignatureDef(), nil
		}
	}
	return nil, nil
}

func sameTags(meta *pb.MetaGraphDef, tags []string) bool {
	got := slices.Compact(slices.Sorted(slices.Values(meta.GetMetaInfoDef().GetTags())))
	return slices.Equal(got, slices.Compact(slices.Sorted(slices.Values(tags))))
}

// nextField returns the next field with a number and a value of bytes, and what follows it.
func nextField(b []byte, number protowire.Number) (value, rest []byte, ok bool) {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return nil, nil, false
		}
		b = b[size:]
		size = protowire.ConsumeFieldValue(n, kind, b)
		if size < 0 {
			return nil, nil, false
		}
		if n == number && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b)
			return value, b[size:], true
		}
		b = b[size:]
	}
	return nil, nil, false
}
