package secure

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/trust"
)

// Files are the names of files with certificates and rules.
type Files struct {
	Cert, Key string // certificate with its intermediates, and private key, in PEM
	CA        string // certificates that sign those of tasks, and of clients if ClientCA is ""
	ClientCA  string // certificates that sign those of clients, operators and observers
	Trust     string // see trust.File; "" for none
	Revoked   string // serial numbers and hashes of keys; "" for none
}

// list returns the names that are not empty.
func (f *Files) list() []string {
	var out []string
	for _, name := range []string{f.Cert, f.Key, f.CA, f.ClientCA, f.Trust, f.Revoked} {
		if name != "" {
			out = append(out, name)
		}
	}
	return out
}

// material is what the files contain. It is immutable.
type material struct {
	cert    tls.Certificate
	self    *trust.Principal // nil if no name of the certificate is known
	selfErr error            // why self is nil
	ca      *x509.CertPool
	clients *x509.CertPool // nil if ca also signs the certificates of clients
	rules   *trust.File
	revoked map[string]bool // serial numbers and SHA-256 hashes of public keys, in hex
}

func load(f *Files, now time.Time) (*material, error) {
	m := &material{}
	var err error
	if m.cert, err = tls.LoadX509KeyPair(f.Cert, f.Key); err != nil {
		return nil, fmt.Errorf("%s and %s: %w", f.Cert, f.Key, err)
	}
	if m.cert.Leaf == nil {
		if m.cert.Leaf, err = x509.ParseCertificate(m.cert.Certificate[0]); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Cert, err)
		}
	}
	if now.After(m.cert.Leaf.NotAfter) {
		return nil, fmt.Errorf("%s: the certificate has expired at %v", f.Cert, m.cert.Leaf.NotAfter.Format(time.RFC3339))
	}
	if m.ca, err = readPool(f.CA); err != nil {
		return nil, err
	}
	if f.ClientCA != "" {
		if m.clients, err = readPool(f.ClientCA); err != nil {
			return nil, err
		}
	}
	if f.Trust != "" {
		text, err := os.ReadFile(f.Trust)
		if err != nil {
			return nil, err
		}
		if m.rules, err = trust.ParseFile(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Trust, err)
		}
	}
	if f.Revoked != "" {
		text, err := os.ReadFile(f.Revoked)
		if err != nil {
			return nil, err
		}
		m.revoked = parseRevoked(string(text))
	}
	m.self, m.selfErr = m.rules.Identify(m.cert.Leaf)
	return m, nil
}

func readPool(name string) (*x509.CertPool, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: no certificate in PEM", name)
	}
	return pool, nil
}

// parseRevoked returns the serial numbers and hashes of a file, one in each line. Colons and case
// do not count, and a line that starts with "#" is a comment.
func parseRevoked(text string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		out[normalHex(line)] = true
	}
	return out
}

func normalHex(s string) string {
	s = strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(s, "0x"), ":", ""))
	return strings.TrimLeft(s, "0")
}

// isRevoked reports whether the serial number or the key of a certificate is in the list.
func (m *material) isRevoked(c *x509.Certificate) bool {
	if len(m.revoked) == 0 {
		return false
	}
	key := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return m.revoked[normalHex(c.SerialNumber.Text(16))] || m.revoked[normalHex(hex.EncodeToString(key[:]))]
}

// errNoCertificate is the error of a peer that has shown no certificate.
var errNoCertificate = errors.New("it has no certificate")

// verify returns the principal of a peer from its chain, and the end of the first certificate that
// ends.
func (m *material) verify(chain []*x509.Certificate, usage x509.ExtKeyUsage, now time.Time) (*trust.Principal, time.Time, error) {
	if len(chain) == 0 {
		return nil, time.Time{}, errNoCertificate
	}
	leaf := chain[0]
	opts := x509.VerifyOptions{
		Roots: m.ca, Intermediates: x509.NewCertPool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage},
	}
	for _, c := range chain[1:] {
		opts.Intermediates.AddCert(c)
	}
	verified, err := leaf.Verify(opts)
	fromClientCA := false
	if err != nil && m.clients != nil && usage == x509.ExtKeyUsageClientAuth {
		opts.Roots = m.clients
		fromClientCA = true
		verified, err = leaf.Verify(opts)
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	ends := leaf.NotAfter
	for _, c := range verified[0] {
		if m.isRevoked(c) {
			return nil, time.Time{}, fmt.Errorf("the certificate with the serial number %s is revoked", c.SerialNumber.Text(16))
		}
		if c.NotAfter.Before(ends) {
			ends = c.NotAfter
		}
	}
	p, err := m.rules.Identify(leaf)
	switch {
	case err != nil:
		return nil, ends, err
	case p.Role == trust.Task && fromClientCA:
		return nil, ends, fmt.Errorf("the CA of clients has signed the certificate of %v", p)
	case p.Role != trust.Task && m.clients != nil && !fromClientCA:
		return nil, ends, fmt.Errorf("the CA of tasks has signed the certificate of %v", p)
	case m.self != nil && m.self.Domain != "" && p.Domain != "" && (p.Domain != m.self.Domain || p.Cluster != m.self.Cluster):
		return nil, ends, fmt.Errorf("%v belongs to the cluster %s of %s, not to %s of %s", p, p.Cluster, p.Domain, m.self.Cluster, m.self.Domain)
	}
	return p, ends, nil
}

// verifyServer is verify for the peer that this process dials. task is the task that it must be; if
// it is zero, the peer must be any task, or have a certificate for host if it has no known name.
func (m *material) verifyServer(chain []*x509.Certificate, task cluster.Task, host string, now time.Time) (*trust.Principal, time.Time, error) {
	p, ends, err := m.verify(chain, x509.ExtKeyUsageServerAuth, now)
	switch {
	case err != nil && !ends.IsZero() && task == (cluster.Task{}) && host != "":
		// the chain is good, and its names are those of hosts
		if hostErr := chain[0].VerifyHostname(host); hostErr != nil {
			return nil, ends, errors.Join(err, hostErr)
		}
		return &trust.Principal{Role: trust.Anonymous, Name: host}, ends, nil
	case err != nil:
		return nil, ends, err
	case p.Role != trust.Task:
		return nil, ends, fmt.Errorf("the certificate is that of %v, not of a task", p)
	case task != (cluster.Task{}) && p.Task != task:
		return nil, ends, fmt.Errorf("the certificate is that of %v, not of %v", p, &trust.Principal{Role: trust.Task, Task: task})
	}
	return p, ends, nil
}
