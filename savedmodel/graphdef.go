package savedmodel

import (
	"bytes"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/status"
)

// MarshalGraph returns a serialized tensorflow.GraphDef. The result is deterministic.
func MarshalGraph(g *graph.Def) ([]byte, error) {
	p, err := pbconv.GraphToProto(g)
	if err != nil {
		return nil, err
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return nil, status.InvalidArgumentf("%w", err)
	}
	return b, nil
}

// ParseGraph parses a tensorflow.GraphDef, in binary or text form. The error has the code DataLoss
// if it is neither.
func ParseGraph(b []byte) (*graph.Def, error) {
	p := &pb.GraphDef{}
	err := proto.Unmarshal(b, p)
	if err != nil && !bytes.ContainsRune(b, 0) {
		p = &pb.GraphDef{}
		if textErr := prototext.Unmarshal(b, p); textErr != nil {
			return nil, status.DataLossf("not a GraphDef: %w; as text: %w", err, textErr)
		}
		err = nil
	}
	if err != nil {
		return nil, status.DataLossf("not a GraphDef: %w", err)
	}
	return pbconv.GraphFromProto(p)
}

// ReadGraph reads a GraphDef from a file in binary form (".pb") or text form (".pbtxt"). The
// contents decide about the form, not the name. Errors are those of [ParseGraph] and of the file
// system.
func ReadGraph(path string) (*graph.Def, error) {
	b, err := fileio.Files{}.Read(path)
	if err != nil {
		return nil, err
	}
	g, err := ParseGraph(b)
	if err != nil {
		return nil, status.Errorf(status.CodeOf(err), "%s: %w", path, err)
	}
	return g, nil
}

// WriteGraph writes a GraphDef to a file in binary form. After an error an older file is unchanged.
func WriteGraph(path string, g *graph.Def) error {
	b, err := MarshalGraph(g)
	if err != nil {
		return err
	}
	return fileio.Files{}.Write(path, b)
}
