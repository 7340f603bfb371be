package rpc

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	gstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/pb"
	"github.com/weft-ml/weft/status"
)

// Errors go over the wire as the code and the message of gRPC, and, where they have payloads, a trailer. gRPC would have a
// google.rpc.Status there; TensorFlow puts a GrpcPayloadContainer. The bytes that we send are one after the other: each
// side finds the fields of its own and takes the rest for fields that it does not know.

// Names of trailers.
const (
	payloadTrailer = "grpc-status-details-bin"
	// bodyPayloadTrailer holds a GrpcPayloadContainer for the error in the body of a response. TensorFlow does not know
	// it and loses such payloads.
	bodyPayloadTrailer = "weft-status-payloads-bin"
)

const (
	// maxMessage is the size to which TensorFlow cuts messages: all trailers of a call together must stay below 16 KiB.
	maxMessage = 3072
	truncated  = " ... [truncated]"
)

// statusMessage returns a message as it can be sent.
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

// encodePayloads returns a GrpcPayloadContainer, or nil without payloads or if they are too large for a trailer.
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

// decodePayloads reads the trailer of the given name, from either side. What is not to be understood is lost, as it is in TensorFlow.
func decodePayloads(trailer metadata.MD, name string) map[string][]byte {
	values := trailer[name]
	if len(values) != 1 {
		return nil
	}
	var container pb.GrpcPayloadContainer
	// A zero byte in front says, between C++ peers, that the value is not in base64.
	if proto.Unmarshal([]byte(strings.TrimPrefix(values[0], "\x00")), &container) != nil {
		return nil
	}
	return container.Payloads
}

// fromGRPC returns the error of a call. A cancellation is marked as derived, whatever it came from: the cause is elsewhere.
func fromGRPC(err error, trailer metadata.MD) *status.Error {
	if err == nil {
		return nil
	}
	st := gstatus.Convert(err)
	code, msg := status.Code(st.Code()), st.Message()
	if c, m, ok := undoMismatch(st); ok {
		code, msg = c, m
	}
	out := status.New(code, msg)
	for key, value := range decodePayloads(trailer, payloadTrailer) {
		out = out.WithPayload(key, value)
	}
	if code == status.Cancelled && !status.IsDerived(out) {
		out = out.Derive()
	}
	return out
}

// mismatch starts the text in which gRPC reports that the code in the details is another than that of the call, as it is
// wherever the details are TensorFlow's. Code and message follow: grpc-status=Aborted, grpc-message="…".
const mismatch = "grpc-status-details-bin mismatch: grpc-status="

// undoMismatch returns what a peer sent before gRPC compared it with details of another kind.
func undoMismatch(st *gstatus.Status) (status.Code, string, bool) {
	rest, ok := strings.CutPrefix(st.Message(), mismatch)
	if st.Code() != codes.Internal || !ok {
		return 0, "", false
	}
	name, rest, ok := strings.Cut(rest, ", grpc-message=")
	if !ok {
		return 0, "", false
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return 0, "", false
	}
	msg, err := strconv.Unquote(quoted)
	code, known := codeByName(name)
	return code, msg, err == nil && known
}

// codeByName reads a code as gRPC prints it.
func codeByName(name string) (status.Code, bool) {
	for c := status.OK; c <= status.Unauthenticated; c++ {
		if codes.Code(c).String() == name {
			return c, true
		}
	}
	return status.Unknown, false
}
