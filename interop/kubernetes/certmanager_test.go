package kubernetes_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"testing"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// issueCertificates does what cert-manager would: it stores the secret of each Certificate, signed
// by one CA.
func (c *cluster) issueCertificates() {
	c.t.Helper()
	list, err := c.objects.Resource(schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}).
		Namespace(namespace).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	ca := newAuthority(c.t)
	for i := range list.Items {
		certificate := &certmanager.Certificate{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, certificate); err != nil {
			c.t.Fatal(err)
		}
		if !certificate.Spec.IsCA {
			c.issue(ca, &certificate.Spec)
		}
	}
}

// An authority is a CA.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t), certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "weft"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}}
	signed, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.certificate, err = x509.ParseCertificate(signed); err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

var usages = map[certmanager.KeyUsage]x509.ExtKeyUsage{
	certmanager.UsageClientAuth: x509.ExtKeyUsageClientAuth, certmanager.UsageServerAuth: x509.ExtKeyUsageServerAuth,
}

// issue stores the secret of a Certificate.
func (c *cluster) issue(ca *authority, spec *certmanager.CertificateSpec) {
	c.t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		c.t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: serial, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
	}
	for _, usage := range spec.Usages {
		if ext, ok := usages[usage]; ok {
			leaf.ExtKeyUsage = append(leaf.ExtKeyUsage, ext)
		}
	}
	for _, text := range spec.URIs {
		uri, err := url.Parse(text)
		if err != nil {
			c.t.Fatal(err)
		}
		leaf.URIs = append(leaf.URIs, uri)
	}
	key := newKey(c.t)
	signed, err := x509.CreateCertificate(rand.Reader, leaf, ca.certificate, key.Public(), ca.key)
	if err != nil {
		c.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = c.CoreV1().Secrets(namespace).Create(context.Background(), &core.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: spec.SecretName}, Type: core.SecretTypeTLS,
		Data: map[string][]byte{
			"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
			"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
			"ca.crt":  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.certificate.Raw}),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}
