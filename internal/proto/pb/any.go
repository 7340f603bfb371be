package pb

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// TypeURL returns the type URL of a message with TensorFlow's name, such as
// type.googleapis.com/tensorflow.RecvBufRespExtra. It is used in google.protobuf.Any and in
// payloads of errors.
func TypeURL(m proto.Message) string {
	return "type.googleapis.com/" + strings.TrimPrefix(string(m.ProtoReflect().Descriptor().FullName()), "weft.")
}

// MarshalAny packs a message under TensorFlow's name.
func MarshalAny(m proto.Message) (*anypb.Any, error) {
	value, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	return &anypb.Any{TypeUrl: TypeURL(m), Value: value}, nil
}

// UnmarshalAny unpacks a message that was packed under TensorFlow's name for m. It returns an error
// if a holds another type.
func UnmarshalAny(a *anypb.Any, m proto.Message) error {
	want := strings.TrimPrefix(TypeURL(m), "type.googleapis.com/")
	if got := a.GetTypeUrl(); got[strings.LastIndexByte(got, '/')+1:] != want {
		return fmt.Errorf("pb: Any holds %q, want %s", got, want)
	}
	return proto.Unmarshal(a.GetValue(), m)
}
