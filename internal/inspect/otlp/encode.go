package otlp

import (
	"encoding/binary"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	"google.golang.org/protobuf/encoding/protowire"
)

// Bits of the flags of a span, beside those of W3C Trace Context.
const (
	flagHasRemote = 1 << 8 // it is known whether the parent is in another process
	flagRemote    = 1 << 9 // it is
)

// Codes of the status of a span.
const (
	statusOK    = 1
	statusError = 2
)

// appendRequest appends an ExportTraceServiceRequest to b. spans are encoded, with their tags, as
// [appendSpan] does it.
func appendRequest(b []byte, res *resource.Resource, of *scope, spans []byte) []byte {
	return appendMessage(b, 1, func(b []byte) []byte {
		b = appendMessage(b, 1, func(b []byte) []byte { return appendResource(b, res) })
		b = appendMessage(b, 2, func(b []byte) []byte {
			b = appendMessage(b, 1, func(b []byte) []byte { return appendText(appendText(b, 1, of.name), 2, of.version) })
			return appendText(append(b, spans...), 3, of.schema)
		})
		return appendText(b, 3, res.SchemaURL())
	})
}

func appendResource(b []byte, r *resource.Resource) []byte {
	for it := r.Iter(); it.Next(); {
		b = appendAttribute(b, 1, it.Attribute())
	}
	return b
}

// appendSpan appends a span as a field of ScopeSpans. Its owner holds the lock.
func appendSpan(b []byte, s *span, end time.Time) []byte {
	return appendMessage(b, 2, func(b []byte) []byte {
		trace, id := s.self.TraceID(), s.self.SpanID()
		b = appendText(appendBytes(appendBytes(b, 1, trace[:]), 2, id[:]), 3, s.self.TraceState().String())
		if s.parent.IsValid() {
			b = appendBytes(b, 4, s.parent[:])
		}
		b = appendInteger(appendText(b, 5, s.name), 6, uint64(s.kind)) //nolint:gosec // the numbers are those of the format
		b = appendTime(appendTime(b, 7, s.began), 8, end)
		b = append(b, s.attributes...)
		switch s.code {
		case codes.Ok:
			b = appendMessage(b, 15, func(b []byte) []byte { return appendInteger(b, 3, statusOK) })
		case codes.Error:
			b = appendMessage(b, 15, func(b []byte) []byte { return appendInteger(appendText(b, 2, s.description), 3, statusError) })
		case codes.Unset:
		}
		flags := uint32(s.self.TraceFlags()) | flagHasRemote
		if s.remote {
			flags |= flagRemote
		}
		return protowire.AppendFixed32(protowire.AppendTag(b, 16, protowire.Fixed32Type), flags)
	})
}

// appendAttributes appends the attributes of a span.
func appendAttributes(b []byte, attributes []attribute.KeyValue) []byte {
	for _, a := range attributes {
		b = appendAttribute(b, 9, a)
	}
	return b
}

// appendAttribute appends a KeyValue.
func appendAttribute(b []byte, field protowire.Number, a attribute.KeyValue) []byte {
	return appendMessage(b, field, func(b []byte) []byte {
		return appendMessage(appendText(b, 1, string(a.Key)), 2, func(b []byte) []byte { return appendValue(b, a.Value) })
	})
}

// appendValue appends the field of an AnyValue, even if the value is 0 or "".
func appendValue(b []byte, v attribute.Value) []byte {
	switch v.Type() {
	case attribute.BOOL:
		return appendBool(b, v.AsBool())
	case attribute.INT64:
		return appendInt(b, v.AsInt64())
	case attribute.FLOAT64:
		return appendFloat(b, v.AsFloat64())
	case attribute.BOOLSLICE:
		return appendArray(b, v.AsBoolSlice(), appendBool)
	case attribute.INT64SLICE:
		return appendArray(b, v.AsInt64Slice(), appendInt)
	case attribute.FLOAT64SLICE:
		return appendArray(b, v.AsFloat64Slice(), appendFloat)
	case attribute.STRINGSLICE:
		return appendArray(b, v.AsStringSlice(), appendString)
	default:
		return appendString(b, v.String())
	}
}

// appendArray appends the field of an AnyValue with an ArrayValue.
func appendArray[T any](b []byte, values []T, one func([]byte, T) []byte) []byte {
	return appendMessage(b, 5, func(b []byte) []byte {
		for _, v := range values {
			b = appendMessage(b, 1, func(b []byte) []byte { return one(b, v) })
		}
		return b
	})
}

// appendMessage appends a field whose value is what body appends.
func appendMessage(b []byte, field protowire.Number, body func([]byte) []byte) []byte {
	b = append(protowire.AppendTag(b, field, protowire.BytesType), 0) // one byte for the length
	start := len(b)
	b = body(b)
	length := uint64(len(b) - start) //nolint:gosec // not negative
	if more := protowire.SizeVarint(length) - 1; more > 0 {
		b = append(b, make([]byte, more)...)
		copy(b[start+more:], b[start:])
	}
	protowire.AppendVarint(b[:start-1], length)
	return b
}

// Each appends the field of an AnyValue.
func appendString(b []byte, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), v)
}

func appendBool(b []byte, v bool) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), protowire.EncodeBool(v))
}

func appendInt(b []byte, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), uint64(v)) //nolint:gosec // as the format has it
}

func appendFloat(b []byte, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, 4, protowire.Fixed64Type), math.Float64bits(v))
}

// Each appends a field, unless it has the default of its type.
func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendText(b []byte, field protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendInteger(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendTime(b []byte, field protowire.Number, t time.Time) []byte {
	b = protowire.AppendTag(b, field, protowire.Fixed64Type)
	return binary.LittleEndian.AppendUint64(b, uint64(t.UnixNano())) //nolint:gosec // after 1970
}

// rejected returns what an ExportTraceServiceResponse says of spans that were not taken. A response
// that cannot be read counts as empty.
func rejected(response []byte) (spans int64, why string) {
	eachField(response, func(field protowire.Number, partial []byte, _ uint64) {
		if field != 1 {
			return
		}
		eachField(partial, func(field protowire.Number, text []byte, n uint64) {
			if field == 1 {
				spans = int64(n) //nolint:gosec // as the format has it
			} else if field == 2 {
				why = string(text)
			}
		})
	})
	return spans, why
}

// eachField calls f for each field of a message that is bytes or an integer.
func eachField(b []byte, f func(field protowire.Number, v []byte, n uint64)) {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		switch kind {
		case protowire.BytesType:
			var v []byte
			if v, n = protowire.ConsumeBytes(b); n >= 0 {
				f(field, v, 0)
			}
		case protowire.VarintType:
			var v uint64
			if v, n = protowire.ConsumeVarint(b); n >= 0 {
				f(field, nil, v)
			}
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return
		}
		b = b[n:]
	}
}
