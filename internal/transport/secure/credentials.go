package secure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/trust"
)

const (
	// checkInterval is how often the files are looked at, and the ends of certificates.
	checkInterval = 10 * time.Second
	// complainInterval is how often a fault of the files is logged.
	complainInterval = time.Minute
	// endGrace is how long the calls of a connection may go on when a certificate of it has ended.
	endGrace = time.Minute
)

// Credentials are the certificates of this process and the rules for those of its peers. They may
// be used concurrently.
type Credentials struct {
	files   Files
	open    bool // peers without a certificate are accepted, as trust.Anonymous
	log     *slog.Logger
	now     func() time.Time
	current atomic.Pointer[material]
	stop    context.CancelFunc // ends watch; nil if it was not started
	running sync.WaitGroup

	mu         sync.Mutex
	seen       map[string]stamp   // of the files, at the last load; guarded by mu
	checked    time.Time          // time of the last look at the files; guarded by mu
	complained time.Time          // time of the last log line about the files; guarded by mu
	warned     time.Time          // time of the last warning about the expiry; guarded by mu
	conns      map[*Conn]struct{} // guarded by mu
	loaded     func()             // called after a reload; may be nil
}

// stamp is what is compared to see that a file has changed.
type stamp struct {
	size    int64
	changed time.Time
}

// New returns credentials from files.
func New(files Files, log *slog.Logger) (*Credentials, error) {
	if files.Cert == "" || files.Key == "" || files.CA == "" {
		return nil, errors.New("TLS needs a certificate, its key and the certificate of a CA")
	}
	c := &Credentials{files: files, log: log, now: time.Now, conns: map[*Conn]struct{}{}}
	m, err := load(&c.files, c.now())
	if err != nil {
		return nil, err
	}
	c.seen, c.checked = c.stamps(), c.now()
	c.current.Store(m)
	return c, nil
}

// AcceptAnonymous makes servers accept peers without a certificate. The table of package trust says
// what they may call.
func (c *Credentials) AcceptAnonymous() { c.open = true }

// OnLoad sets a function that is called when new certificates are used. It must be called before
// Watch.
func (c *Credentials) OnLoad(f func()) { c.loaded = f }

// Self returns the principal of the own certificate.
func (c *Credentials) Self() (*trust.Principal, error) {
	m := c.current.Load()
	return m.self, m.selfErr
}

// Expiry returns the end of the own certificate.
func (c *Credentials) Expiry() time.Time { return c.current.Load().cert.Leaf.NotAfter }

// Weight returns the weight that the trust file gives to a tenant.
func (c *Credentials) Weight(tenant string) float64 { return c.current.Load().rules.Weight(tenant) }

// Watch looks at the files, and at the ends of the certificates of connections, until Close.
func (c *Credentials) Watch() {
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.running.Go(func() {
		ticker := time.NewTicker(checkInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.Check()
			case <-ctx.Done():
				return
			}
		}
	})
}

// Close ends Watch. Connections stay open.
func (c *Credentials) Close() {
	if c.stop != nil {
		c.stop()
	}
	c.running.Wait()
}

// Check loads files that have changed, and ends connections whose certificates have ended or are
// revoked.
func (c *Credentials) Check() {
	c.refresh(true)
	c.endConns()
}

// Reload loads the files even if they seem unchanged, and is Check otherwise.
func (c *Credentials) Reload() {
	c.mu.Lock()
	c.seen, c.complained = nil, time.Time{}
	c.mu.Unlock()
	c.Check()
}

func (c *Credentials) stamps() map[string]stamp {
	out := map[string]stamp{}
	for _, name := range c.files.list() {
		if st, err := os.Stat(name); err == nil {
			out[name] = stamp{st.Size(), st.ModTime()}
		}
	}
	return out
}

// refresh loads the files if they have changed. Without force, it looks at them at most every
// checkInterval.
func (c *Credentials) refresh(force bool) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !force && now.Sub(c.checked) < checkInterval {
		return
	}
	c.checked = now
	stamps := c.stamps()
	if !changed(c.seen, stamps) {
		c.warnLocked(now)
		return
	}
	m, err := load(&c.files, now)
	if err != nil {
		if now.Sub(c.complained) >= complainInterval {
			c.complained = now
			c.log.Error("the files of certificates have changed and cannot be used; the old ones stay in use", "error", err)
		}
		return
	}
	if old := c.current.Load(); old.self != nil && (m.self == nil || *m.self != *old.self) {
		if now.Sub(c.complained) >= complainInterval {
			c.complained = now
			c.log.Error("the new certificate has another name; the old one stays in use", "old", old.self, "new", m.self)
		}
		return
	}
	c.seen, c.complained, c.warned = stamps, time.Time{}, time.Time{}
	c.current.Store(m)
	c.log.Info("new certificates are in use", "expiry", m.cert.Leaf.NotAfter)
	if c.loaded != nil {
		c.loaded()
	}
}

func changed(old, now map[string]stamp) bool {
	if len(old) != len(now) {
		return true
	}
	for name, s := range now {
		if o := old[name]; o.size != s.size || !o.changed.Equal(s.changed) {
			return true
		}
	}
	return false
}

// warnLocked logs that the own certificate ends soon, once an hour in the last third of its life.
func (c *Credentials) warnLocked(now time.Time) {
	leaf := c.current.Load().cert.Leaf
	left, life := leaf.NotAfter.Sub(now), leaf.NotAfter.Sub(leaf.NotBefore)
	if left < life/3 && now.Sub(c.warned) >= time.Hour {
		c.warned = now
		c.log.Warn("the certificate of this process ends soon", "expiry", leaf.NotAfter, "left", left.Round(time.Second))
	}
}

// endConns ends the connections with a certificate that has ended or is revoked.
func (c *Credentials) endConns() {
	now, m := c.now(), c.current.Load()
	c.mu.Lock()
	var ended []*Conn
	for conn := range c.conns {
		if why := conn.ended(m, now); why != "" {
			ended = append(ended, conn)
		}
	}
	c.mu.Unlock()
	for _, conn := range ended {
		why := conn.ended(m, now)
		if revoked := why == endRevoked; revoked || now.Sub(conn.ends) >= endGrace {
			c.log.Warn("a connection was closed", "peer", conn.RemoteAddr(), "principal", conn.principal, "why", why)
			conn.Close()
			continue
		}
		conn.retireOnce(why)
	}
}

// server returns the configuration for a connection that was accepted.
func (c *Credentials) server(conn *Conn) *tls.Config {
	m := c.current.Load()
	config := m.config()
	config.ClientAuth = tls.RequireAnyClientCert
	if c.open {
		config.ClientAuth = tls.RequestClientCert
	}
	if config.ClientCAs = m.ca; m.clients != nil {
		config.ClientCAs = nil // clients choose their certificate without a hint
	}
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if state.NegotiatedProtocol != protocol {
			return errNoProtocol
		}
		if c.open && len(state.PeerCertificates) == 0 {
			conn.admit(m, &trust.Principal{Role: trust.Anonymous}, time.Time{}, nil)
			return nil
		}
		p, ends, err := m.verify(state.PeerCertificates, x509.ExtKeyUsageClientAuth, c.now())
		if err == nil {
			conn.admit(m, p, ends, state.PeerCertificates[0])
		}
		return err
	}
	return config
}

// HTTP returns the configuration of a server of HTTP. Clients may leave their certificate out;
// PrincipalOf says who they are.
func (c *Credentials) HTTP() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		config := c.current.Load().config()
		config.NextProtos = []string{"h2", "http/1.1"}
		config.ClientAuth = tls.RequestClientCert
		return config, nil
	}}
}

// PrincipalOf returns what the certificates of a client of HTTP say, or trust.Anonymous if it has
// shown none. It verifies them by the files in use.
func (c *Credentials) PrincipalOf(chain []*x509.Certificate) (*trust.Principal, error) {
	if len(chain) == 0 {
		return &trust.Principal{Role: trust.Anonymous}, nil
	}
	p, _, err := c.current.Load().verify(chain, x509.ExtKeyUsageClientAuth, c.now())
	return p, err
}

// client returns the configuration for a connection to a task, or to any task if task is zero.
func (c *Credentials) client(conn *Conn, task cluster.Task, address string) *tls.Config {
	m := c.current.Load()
	config := m.config()
	host, _, _ := net.SplitHostPort(address)
	config.ServerName = host
	config.InsecureSkipVerify = true // VerifyConnection verifies the chain and the name
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if state.NegotiatedProtocol != protocol {
			return errNoProtocol
		}
		p, ends, err := m.verifyServer(state.PeerCertificates, task, host, c.now())
		if err != nil {
			return fmt.Errorf("the certificate of %s: %w", address, err)
		}
		conn.admit(m, p, ends, state.PeerCertificates[0])
		return nil
	}
	return config
}

// protocol is the protocol of the connections, as ALPN names it.
const protocol = "h2"

var errNoProtocol = errors.New(`the peer does not ask for the protocol "h2"`)

// config returns the part of a configuration that both ends share.
func (m *material) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
		Certificates:           []tls.Certificate{m.cert},
		GetClientCertificate:   func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &m.cert, nil },
		SessionTicketsDisabled: true,
		// small records at the start of a connection cost system calls and save nothing here
		DynamicRecordSizingDisabled: true,
	}
}
