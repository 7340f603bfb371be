// Package issue makes the certificates of a cluster: a CA, and the certificates of tasks, clients,
// operators and observers that it signs.
//
// Keys are ECDSA keys on the curve P-256. The CA may sign for its trust domain only. The name of a
// holder is a SPIFFE ID; a task may also have host names, for clients that check them.
package issue

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/weft-ml/weft/internal/trust"
)

// Lives of certificates.
const (
	CALife   = 10 * 365 * 24 * time.Hour
	LeafLife = 90 * 24 * time.Hour
	// backdate is the tolerance for clocks that are slow.
	backdate = 5 * time.Minute
)

// A CA signs certificates of one cluster.
type CA struct {
	Domain  string // trust domain
	Cluster string
	cert    *x509.Certificate
	key     crypto.Signer
}

// A Pair is a certificate and its private key, in PEM.
type Pair struct{ Cert, Key []byte }

// NewCA returns a new CA for a trust domain and a cluster.
func NewCA(domain, clusterName string, now time.Time, life time.Duration) (*CA, Pair, error) {
	if err := errors.Join(trust.CheckName("trust domain", domain), trust.CheckName("cluster", clusterName)); err != nil {
		return nil, Pair{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, Pair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Weft CA of " + clusterName, Organization: []string{domain}},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
		URIs:                        []*url.URL{{Scheme: "spiffe", Host: domain, Path: "/weft/" + clusterName}},
		PermittedDNSDomainsCritical: true, PermittedURIDomains: []string{domain},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, Pair{}, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, Pair{}, err
	}
	pair, err := encode(der, key)
	return &CA{domain, clusterName, cert, key}, pair, err
}

// ReadCA returns the CA of two files.
func ReadCA(certFile, keyFile string) (*CA, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	ca, err := ParseCA(Pair{certPEM, keyPEM})
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", certFile, keyFile, err)
	}
	return ca, nil
}

// ParseCA returns the CA of a certificate and a key.
func ParseCA(p Pair) (*CA, error) {
	certBlock, _ := pem.Decode(p.Cert)
	keyBlock, _ := pem.Decode(p.Key)
	if certBlock == nil || keyBlock == nil {
		return nil, errors.New("no PEM")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(crypto.Signer)
	if !ok || !cert.IsCA || len(cert.URIs) != 1 {
		return nil, errors.New("this is not a CA that \"weft cert ca\" has made")
	}
	const prefix = "/weft/"
	u := cert.URIs[0]
	if len(u.Path) <= len(prefix) || u.Path[:len(prefix)] != prefix {
		return nil, fmt.Errorf("the CA has the name %v, not spiffe://DOMAIN/weft/CLUSTER", u)
	}
	return &CA{u.Host, u.Path[len(prefix):], cert, key}, nil
}

// Issue returns a certificate for a principal, which gets the domain and cluster of the CA. hosts
// are further names of a task: DNS names and IP addresses.
func (ca *CA) Issue(p trust.Principal, hosts []string, now time.Time, life time.Duration) (Pair, error) {
	p.Domain, p.Cluster = ca.Domain, ca.Cluster
	id, err := url.Parse(p.ID())
	if err != nil {
		return Pair{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: p.String(), Organization: []string{ca.Domain}},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, URIs: []*url.URL{id},
	}
	if ca.cert.NotAfter.Before(template.NotAfter) {
		template.NotAfter = ca.cert.NotAfter
	}
	if p.Role == trust.Task {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if _, err := (*trust.File)(nil).Identify(template); err != nil {
		return Pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return Pair{}, err
	}
	return encode(der, key)
}

func serial() *big.Int {
	b := make([]byte, 16)
	_, _ = rand.Read(b)     // never fails
	b[0] = b[0]&0x7f | 0x40 // positive, with a fixed length
	return new(big.Int).SetBytes(b)
}

func encode(der []byte, key crypto.Signer) (Pair, error) {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

// Write writes a pair to two files. That of the key has the mode 0600, and appears first, so that a
// task that follows the files does not see a certificate without its key.
func (p Pair) Write(certFile, keyFile string) error {
	for _, f := range []struct {
		name string
		data []byte
		mode os.FileMode
	}{{keyFile, p.Key, 0o600}, {certFile, p.Cert, 0o644}} {
		tmp := f.name + ".tmp"
		if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(tmp, f.data, f.mode); err != nil {
			return err
		}
		if err := os.Rename(tmp, f.name); err != nil {
			return err
		}
	}
	return nil
}
