package peer

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Fields of this program in CreateWorkerSessionRequest and CleanupAllRequest: the client for which
// a master acts. Tasks of TensorFlow ignore them.
const (
	fieldTenant     protowire.Number = 1001
	fieldPrincipal  protowire.Number = 1002
	fieldAllTenants protowire.Number = 1003
)

// Delegate writes the client for which a master makes a request.
func Delegate(m proto.Message, tenant, principal string) {
	r := m.ProtoReflect()
	b := r.GetUnknown()
	for _, f := range []struct {
		number protowire.Number
		text   string
	}{{fieldTenant, tenant}, {fieldPrincipal, principal}} {
		if f.text != "" {
			b = protowire.AppendString(protowire.AppendTag(b, f.number, protowire.BytesType), f.text)
		}
	}
	r.SetUnknown(b)
}

// DelegateAll makes a request concern the state of all tenants.
func DelegateAll(m proto.Message) { setFlag(m, fieldAllTenants) }

// IsForAll reports whether DelegateAll was called for a request.
func IsForAll(m proto.Message) bool { return hasFlag(m, fieldAllTenants) }

// Delegated returns what Delegate has written; "" for nothing.
func Delegated(m proto.Message) (tenant, principal string) {
	for b := m.ProtoReflect().GetUnknown(); len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return tenant, principal
		}
		b = b[n:]
		if kind == protowire.BytesType {
			text, n := protowire.ConsumeString(b)
			if n < 0 {
				return tenant, principal
			}
			if number == fieldTenant {
				tenant = text
			} else if number == fieldPrincipal {
				principal = text
			}
			b = b[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return tenant, principal
		}
		b = b[n:]
	}
	return tenant, principal
}
