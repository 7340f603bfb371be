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
	if tenant != "" {
		addField(m, fieldTenant, protowire.BytesType, protowire.AppendString(nil, tenant))
	}
	if principal != "" {
		addField(m, fieldPrincipal, protowire.BytesType, protowire.AppendString(nil, principal))
	}
}

// DelegateAll makes a request concern the state of all tenants.
func DelegateAll(m proto.Message) { setFlag(m, fieldAllTenants) }

// IsForAll reports whether DelegateAll was called for a request.
func IsForAll(m proto.Message) bool { return hasFlag(m, fieldAllTenants) }

// Delegated returns what Delegate has written; "" for nothing. Of several values the last counts.
func Delegated(m proto.Message) (tenant, principal string) {
	for f := range fields(m) {
		if f.kind != protowire.BytesType {
			continue
		}
		text, _ := protowire.ConsumeString(f.value)
		if f.number == fieldTenant {
			tenant = text
		} else if f.number == fieldPrincipal {
			principal = text
		}
	}
	return tenant, principal
}
