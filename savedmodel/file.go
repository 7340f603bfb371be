package savedmodel

import (
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// ParseMetaGraph parses a serialized tensorflow.MetaGraphDef. The error has the code DataLoss if it
// is not one.
func ParseMetaGraph(b []byte) (*MetaGraph, error) {
	var p pb.MetaGraphDef
	if err := proto.Unmarshal(b, &p); err != nil {
		return nil, status.DataLossf("not a MetaGraphDef: %w", err)
	}
	return decode(&p)
}

// Marshal returns a serialized tensorflow.MetaGraphDef. The result is deterministic.
func (m *MetaGraph) Marshal() ([]byte, error) {
	p, err := m.encode()
	if err != nil {
		return nil, err
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return nil, status.InvalidArgumentf("%w", err)
	}
	return b, nil
}

// ReadMetaGraph reads a MetaGraph from a file, such as the file PREFIX.meta of a checkpoint. Errors
// are those of [ParseMetaGraph] and of the file system.
func ReadMetaGraph(path string) (*MetaGraph, error) {
	b, err := fileio.Files{}.Read(path)
	if err != nil {
		return nil, err
	}
	m, err := ParseMetaGraph(b)
	if err != nil {
		return nil, status.Errorf(status.CodeOf(err), "%s: %w", path, err)
	}
	return m, nil
}

// WriteFile writes a MetaGraph to a file. After an error an older file is unchanged.
func (m *MetaGraph) WriteFile(path string) error {
	b, err := m.Marshal()
	if err != nil {
		return err
	}
	return fileio.Files{}.Write(path, b)
}
