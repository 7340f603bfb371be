package server_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/internal/transport/secure"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/internal/trust/issue"
	"github.com/weft-ml/weft/server"
)

// authority is a CA in a folder, for tests.
type authority struct {
	dir string
	ca  *issue.CA
}

func newAuthority(t testing.TB, clusterName string) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	var pair issue.Pair
	var err error
	if a.ca, pair, err = issue.NewCA("corp", clusterName, time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := pair.Write(a.path("ca.pem"), a.path("ca.key")); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// files returns the files of a new certificate.
func (a *authority) files(t testing.TB, p trust.Principal) server.TLS {
	t.Helper()
	pair, err := a.ca.Issue(p, nil, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	name := rand.Text()
	f := server.TLS{Cert: a.path(name + ".pem"), Key: a.path(name + ".key"), CA: a.path("ca.pem")}
	if err := pair.Write(f.Cert, f.Key); err != nil {
		t.Fatal(err)
	}
	return f
}

// dial returns a connection with the certificate of a principal.
func (a *authority) dial(t testing.TB, address string, p trust.Principal) *rpc.Conn {
	t.Helper()
	creds, err := secure.New(secure.Files(a.files(t, p)), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := rpc.DialSecure(address, creds, cluster.Task{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func taskPrincipal(job string, index int) trust.Principal {
	return trust.Principal{Role: trust.Task, Task: cluster.Task{Job: job, Index: index}}
}

func clientPrincipal(tenant, name string) trust.Principal {
	return trust.Principal{Role: trust.Client, Tenant: tenant, Name: name}
}

// startSecure starts the tasks of a cluster with TLS.
func startSecure(t testing.TB, a *authority, workers int, opts ...server.Option) []*server.Server {
	t.Helper()
	spec := cluster.Spec{"worker": cluster.Job{}}
	listeners := make([]net.Listener, workers)
	for i := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = l
		spec["worker"][i] = l.Addr().String()
	}
	servers := make([]*server.Server, workers)
	for i, l := range listeners {
		def := cluster.ServerDef{Cluster: spec, Job: "worker", Task: i, CPUDevices: 1}
		all := append([]server.Option{
			server.WithListener(l), server.WithLogger(slog.New(slog.DiscardHandler)), server.WithTLS(a.files(t, taskPrincipal("worker", i))),
		}, opts...)
		s, err := server.New(def, all...)
		if err == nil {
			err = s.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		servers[i] = s
	}
	return servers
}

// dialWithout returns a connection with TLS and without a client certificate.
func dialWithout(t testing.TB, address string) *rpc.Conn {
	t.Helper()
	conn, err := rpc.DialWith(address, func(ctx context.Context, nc net.Conn) (net.Conn, error) {
		c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		return c, c.HandshakeContext(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}
