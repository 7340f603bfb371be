package serving

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/status"
)

// ParseTLS returns the configuration of TLS in an SSLConfig message in text form. Without
// client_verify, clients need no certificate.
func ParseTLS(text []byte) (*tls.Config, error) {
	p := &servingpb.SSLConfig{}
	if err := prototext.Unmarshal(text, p); err != nil {
		return nil, status.InvalidArgumentf("Failed to parse SSLConfig: %w", err)
	}
	cert, err := tls.X509KeyPair([]byte(p.GetServerCert()), []byte(p.GetServerKey()))
	if err != nil {
		return nil, status.InvalidArgumentf("server_cert and server_key: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{cert}}
	if !p.GetClientVerify() {
		return config, nil
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	if ca := p.GetCustomCa(); ca != "" { // otherwise the certificates of the system
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM([]byte(ca)) {
			return nil, status.InvalidArgumentf("custom_ca has no certificate in PEM")
		}
	}
	return config, nil
}

// ReadTLS is ParseTLS for a file.
func ReadTLS(path string) (*tls.Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, status.NotFoundf("%w", err)
	}
	return ParseTLS(text)
}

// secureConn is a connection with TLS.
type secureConn struct{ *tls.Conn }

// Handshake makes the handshake.
func (c secureConn) Handshake(ctx context.Context) error { return c.HandshakeContext(ctx) }

// Buffered reports whether Read may return bytes that have left the socket. crypto/tls does not
// tell.
func (c secureConn) Buffered() bool { return true }

// WriteBuffers writes buffers in their order, as few records.
func (c secureConn) WriteBuffers(v net.Buffers) error {
	if len(v) == 1 {
		_, err := c.Write(v[0])
		return err
	}
	size := 0
	for _, b := range v {
		size += len(b)
	}
	all := make([]byte, 0, size)
	for _, b := range v {
		all = append(all, b...)
	}
	_, err := c.Write(all)
	return err
}

// OnRetire has no effect: the certificates do not change.
func (c secureConn) OnRetire(func(string)) {}

// Plain returns the connection below.
func (c secureConn) Plain() net.Conn { return c.NetConn() }
