package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/transport/secure"
	"github.com/weft-ml/weft/server"
)

func (f *clientTLSFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.files.Cert, "tls-cert", "", "file with the certificate of this process, and its intermediates, in PEM")
	flags.StringVar(&f.files.Key, "tls-key", "", "file with the private key of the certificate")
	flags.StringVar(&f.files.CA, "tls-ca", "", "file with the certificates that sign those of tasks")
	flags.StringVar(&f.files.Trust, "trust", "", "file that maps names in certificates to principals; without it, they have the names that 'weft cert' gives")
	flags.StringVar(&f.files.Revoked, "revoked", "", "file with serial numbers of certificates, or SHA-256 hashes of their keys, that are no longer accepted")
}

// credentials returns the certificates of a client.
func (f *clientTLSFlags) credentials(log *slog.Logger) (*secure.Credentials, error) {
	if f.files.Cert == "" || f.files.Key == "" || f.files.CA == "" {
		return nil, usageError{errors.New("--tls-cert, --tls-key and --tls-ca are needed")}
	}
	c, err := secure.New(f.files, log)
	if err != nil {
		return nil, configError{err}
	}
	return c, nil
}

// targetOptions returns the options for a target; none without a certificate.
func (f *clientTLSFlags) targetOptions() []weft.TargetOption {
	if f.files.Cert == "" && f.files.Key == "" && f.files.CA == "" {
		return nil
	}
	return []weft.TargetOption{weft.WithTLS(weft.TLS{Cert: f.files.Cert, Key: f.files.Key, CA: f.files.CA, Trust: f.files.Trust})}
}

// serverTLSFlags are the flags of weft server about certificates and rights.
type serverTLSFlags struct {
	clientTLSFlags
	health          string
	metrics         string
	plaintextPeers  []string
	plaintextListen string
	clientClusters  []string
	audit           string
	auditRequired   bool
	check           bool
}

func (f *serverTLSFlags) add(flags *pflag.FlagSet) {
	f.clientTLSFlags.add(flags)
	flags.Lookup("tls-ca").Usage = "file with the certificates that sign those of tasks, and of clients without --tls-client-ca"
	flags.StringVar(&f.files.ClientCA, "tls-client-ca", "", "file with the certificates that sign those of clients, operators and observers")
	flags.StringVar(&f.health, "health", "", "'open' answers health checks without a client certificate, over gRPC and at --http-address")
	flags.StringVar(&f.metrics, "metrics", "", "'open' serves --metrics-address to other machines, and /metrics at --http-address, without a certificate")
	flags.StringSliceVar(&f.plaintextPeers, "allow-plaintext-peers", nil, "tasks of the cluster without TLS, as job/index, such as those of TensorFlow")
	flags.StringVar(&f.plaintextListen, "plaintext-listen", "", "address at which these tasks connect without TLS; every process that reaches it has their rights")
	flags.StringSliceVar(&f.clientClusters, "client-clusters", nil, "networks, as 10.1.0.0/16, whose addresses the cluster_def of a session may name")
	flags.StringVar(&f.audit, "audit", "", "file, or 'stderr', for a line of JSON for each refused connection and call, session and reset; opened again on SIGUSR1")
	flags.BoolVar(&f.auditRequired, "audit-required", false, "fail calls whose line in the audit log cannot be written")
	flags.BoolVar(&f.check, "check", false, "check the flags and certificates, list the flags that are set, where each comes from, and what is open to others, and exit")
}

// folders returns the folders of the certificates, whose files may be replaced.
func (f *serverTLSFlags) folders() []string {
	var out []string
	for _, path := range []string{f.files.Cert, f.files.Key, f.files.CA, f.files.ClientCA, f.files.Trust, f.files.Revoked} {
		if path != "" {
			out = append(out, filepath.Dir(path))
		}
	}
	return out
}

// auditFolders returns the folder of the audit log, which is opened again after it was renamed.
func (f *serverTLSFlags) auditFolders() []string {
	if f.audit == "" || f.audit == "stderr" {
		return nil
	}
	return []string{filepath.Dir(f.audit)}
}

// given reports whether any file of certificates is set.
func (f *serverTLSFlags) given() bool { return f.files != secure.Files{} }

// options returns the options of the server.
func (f *serverTLSFlags) options() ([]server.Option, error) {
	var opts []server.Option
	if f.given() {
		if f.files.Cert == "" || f.files.Key == "" || f.files.CA == "" {
			return nil, errors.New("TLS needs --tls-cert, --tls-key and --tls-ca")
		}
		opts = append(opts, server.WithTLS(server.TLS(f.files)))
	}
	switch f.health {
	case "":
	case "open":
		opts = append(opts, server.WithOpenHealth())
	default:
		return nil, fmt.Errorf("--health %q: want 'open'", f.health)
	}
	switch f.metrics {
	case "":
	case "open":
		opts = append(opts, server.WithOpenMetrics())
	default:
		return nil, fmt.Errorf("--metrics %q: want 'open'", f.metrics)
	}
	for _, text := range f.clientClusters {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--client-clusters: %w", err)
		}
		opts = append(opts, server.WithClientClusters(p))
	}
	return opts, nil
}

// peers returns the option for tasks without TLS, and the listener for them, which may be nil.
func (f *serverTLSFlags) peers() (opt server.Option, l net.Listener, err error) {
	if len(f.plaintextPeers) == 0 {
		if f.plaintextListen != "" {
			return nil, nil, usageError{errors.New("--plaintext-listen needs --allow-plaintext-peers")}
		}
		return nil, nil, nil
	}
	if !f.given() {
		return nil, nil, usageError{errors.New("--allow-plaintext-peers is for a task with TLS")}
	}
	var tasks []cluster.Task
	for _, text := range f.plaintextPeers {
		t, err := parseTask(text)
		if err != nil {
			return nil, nil, usageError{fmt.Errorf("--allow-plaintext-peers: %w", err)}
		}
		tasks = append(tasks, t)
	}
	if f.plaintextListen != "" {
		if l, err = net.Listen("tcp", f.plaintextListen); err != nil {
			return nil, nil, fmt.Errorf("--plaintext-listen: %w", err)
		}
	}
	return server.WithPlaintextPeers(l, tasks...), l, nil
}

// parseTask returns the task of a text such as "worker/0".
func parseTask(text string) (cluster.Task, error) {
	job, index, ok := strings.Cut(text, "/")
	n, err := strconv.ParseUint(index, 10, 31)
	if !ok || err != nil || job == "" {
		return cluster.Task{}, fmt.Errorf("%q is no task: want job/index", text)
	}
	return cluster.Task{Job: job, Index: int(n)}, nil
}
