package trust

import (
	"crypto/x509"
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/cluster"
)

const scheme = "spiffe://"

// parseID returns the principal of a SPIFFE ID of this project's form:
//
//	spiffe://DOMAIN/weft/CLUSTER/job/JOB/task/N
//	spiffe://DOMAIN/weft/CLUSTER/client/TENANT/NAME
//	spiffe://DOMAIN/weft/CLUSTER/operator/NAME
//	spiffe://DOMAIN/weft/CLUSTER/observer/NAME
//
// It reports false for an ID of another form, and an error for a malformed one of this form.
func parseID(id string) (p Principal, ok bool, err error) {
	rest, ok := strings.CutPrefix(id, scheme)
	if !ok {
		return p, false, nil
	}
	parts := strings.Split(rest, "/")
	if len(parts) < 3 || parts[1] != "weft" {
		return p, false, nil
	}
	for _, part := range parts {
		if !isName(part) {
			return p, true, fmt.Errorf("%q is malformed", id)
		}
	}
	p.Domain, p.Cluster = parts[0], parts[2]
	switch rest := parts[3:]; {
	case len(rest) == 4 && rest[0] == "job" && rest[2] == "task":
		index, ok := parseIndex(rest[3])
		if !ok {
			return p, true, fmt.Errorf("%q has no task index", id)
		}
		p.Role, p.Task = Task, cluster.Task{Job: rest[1], Index: index}
	case len(rest) == 3 && rest[0] == "client":
		p.Role, p.Tenant, p.Name = Client, rest[1], rest[2]
	case len(rest) == 2 && rest[0] == "operator":
		p.Role, p.Name = Operator, rest[1]
	case len(rest) == 2 && rest[0] == "observer":
		p.Role, p.Name = Observer, rest[1]
	default:
		return p, true, fmt.Errorf("%q names no principal", id)
	}
	return p, true, nil
}

// CheckName returns an error if a name cannot be a part of a SPIFFE ID.
func CheckName(what, name string) error {
	if !isName(name) {
		return fmt.Errorf("the %s %q must consist of letters, digits, '.', '-' and '_'", what, name)
	}
	return nil
}

func isName(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return s != "" && s != "." && s != ".."
}

func parseIndex(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil && strconv.FormatUint(n, 10) == s
}

// A san is a subject alternative name of a certificate.
type san struct{ kind, value string }

func sansOf(c *x509.Certificate) []san {
	var out []san
	for _, u := range c.URIs {
		out = append(out, san{"uri", u.String()})
	}
	for _, name := range c.DNSNames {
		out = append(out, san{"dns", strings.ToLower(name)})
	}
	for _, name := range c.EmailAddresses {
		out = append(out, san{"email", name})
	}
	return out
}

// Identify returns the principal of a certificate: the one that the trust file names, or that of a
// SPIFFE ID of this project's form. f may be nil. Names of different principals are an error.
func (f *File) Identify(c *x509.Certificate) (*Principal, error) {
	var found *Principal
	by := ""
	sans := sansOf(c)
	for _, s := range sans {
		p, ok, err := f.match(s)
		if err == nil && !ok && s.kind == "uri" {
			p, ok, err = parseID(s.value)
		}
		switch {
		case err != nil:
			return nil, err
		case !ok:
		case found != nil && *found != p:
			return nil, fmt.Errorf("the certificate names two principals: %v (%s) and %v (%s)", found, by, &p, s.value)
		default:
			found, by = &p, s.value
		}
	}
	if found == nil {
		return nil, fmt.Errorf("no name of the certificate is known (%s)", describe(sans))
	}
	return found, nil
}

func describe(sans []san) string {
	if len(sans) == 0 {
		return "it has no subject alternative names"
	}
	texts := make([]string, len(sans))
	for i, s := range sans {
		texts[i] = s.kind + " " + s.value
	}
	return strings.Join(texts, ", ")
}
