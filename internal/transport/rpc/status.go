package rpc

import (
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/status"
)

// An error is sent as the code and the message of gRPC and, if it has payloads, a trailer. In that
// trailer, gRPC expects a google.rpc.Status, and TensorFlow a GrpcPayloadContainer. We send the
// bytes of both, one after the other: each side finds its own fields and ignores the rest as
// unknown.

// Names of trailers.
const (
	payloadTrailer = "grpc-status-details-bin"
	// bodyPayloadTrailer holds a GrpcPayloadContainer for the error in the body of a response.
	// TensorFlow ignores it.
	bodyPayloadTrailer = "weft-status-payloads-bin"
)

const (
	// maxMessage is the length to which TensorFlow truncates messages. All trailers of a call
	// together must stay below 16 KiB.
	maxMessage = 3072
	truncated  = " ... [truncated]"
)

// statusMessage returns a message in valid UTF-8 and within maxMessage.
func statusMessage(msg string) string {
	msg = strings.ToValidUTF8(msg, string(utf8.RuneError))
	if len(msg) <= maxMessage {
		return msg
	}
	end := maxMessage
	for !utf8.RuneStart(msg[end]) {
		end--
	}
	return msg[:end] + truncated
}

// encodeStatus returns a google.rpc.Status without details.
func encodeStatus(code status.Code, msg string) []byte {
	b := protowire.AppendTag(nil, 1, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(code))
	b = protowire.AppendTag(b, 2, protowire.BytesType)
	return protowire.AppendString(b, msg)
}

// encodePayloads returns a GrpcPayloadContainer. It is nil without payloads, or if they are too
// large for a trailer.
func encodePayloads(payloads map[string][]byte) []byte {
	if len(payloads) == 0 {
		return nil
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(&pb.GrpcPayloadContainer{Payloads: payloads})
	if err != nil || len(b) > maxMessage {
		return nil
	}
	return b
}

// decodePayloads decodes the trailer of the given name, from Weft or TensorFlow. Like TensorFlow,
// it ignores a malformed trailer.
func decodePayloads(trailer []grpch2.Field, name string) map[string][]byte {
	var container pb.GrpcPayloadContainer
	for _, f := range trailer {
		// Between C++ peers, a leading zero byte means that the value is not in base64.
		if f.Name == name && proto.Unmarshal([]byte(strings.TrimPrefix(f.Value, "\x00")), &container) != nil {
			return nil
		}
	}
	return container.Payloads
}

// responseStatus returns the error of a call. It marks every cancellation as derived, because its
// cause is elsewhere.
func responseStatus(resp *grpch2.Response) *status.Error {
	out := status.New(status.Code(resp.Code), resp.Text)
	for key, value := range decodePayloads(resp.Trailer, payloadTrailer) {
		out = out.WithPayload(key, value)
	}
	if out.Code == status.Cancelled && !status.IsDerived(out) {
		out = out.Derive()
	}
	return out
}
