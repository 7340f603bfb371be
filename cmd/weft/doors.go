package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/weft-ml/weft/internal/sys/sandbox"
)

// openToAll is what --insecure opens.
const openToAll = "no TLS (--insecure): every host that reaches this task can run graphs here, and end the sessions of others"

// doors lists what is open to others, one a line.
func (f *serverFlags) doors(loopback bool, flags *pflag.FlagSet) []string {
	var out []string
	add := func(text string) { out = append(out, text) }
	switch {
	case f.tls.given():
		add("TLS with client certificates: roles decide what each may call (weft auth table)")
	case loopback:
		add("no TLS: any user of this machine can run graphs here")
	default:
		add(openToAll)
		add("--insecure: Reset and CleanupAll are for the addresses of the cluster's tasks; an address proves nothing")
	}
	if f.tls.health == "open" && f.tls.given() {
		add("--health open: health checks need no certificate")
	}
	if f.metrics != "" {
		add("--metrics-address " + f.metrics + ": the metrics need no certificate")
	}
	switch {
	case f.http == "":
	case f.tls.given():
		add("--http-address " + f.http + ": HTTP with TLS and the same certificates")
		if f.tls.metrics == "open" {
			add("--metrics open: the metrics over HTTP need no certificate")
		}
	default:
		add("--http-address " + f.http + ": every process that reaches it sees what the task does, and profiles of its memory")
	}
	if len(f.tls.plaintextPeers) > 0 {
		add("--allow-plaintext-peers " + strings.Join(f.tls.plaintextPeers, ",") + ": the traffic with these tasks is neither encrypted nor authenticated")
	}
	if f.tls.plaintextListen != "" {
		add("--plaintext-listen " + f.tls.plaintextListen + ": every process that reaches it has the rights of these tasks")
	}
	if len(f.tls.clientClusters) > 0 {
		add("--client-clusters " + strings.Join(f.tls.clientClusters, ",") + ": sessions may make this task connect to these networks")
	}
	if f.rest {
		add("--rest: clients over HTTP can run graphs")
	}
	if len(f.files.roots) == 0 && (loopback || f.tls.given()) {
		add("no --file-root: graphs can read and write all files of this user")
	}
	if f.files.sandbox == string(sandbox.Off) {
		add("no --sandbox: the checks of files are the only wall")
	}
	if f.ops.set == "all" && len(f.ops.denied) == 0 {
		add("--ops all: graphs can run every operation")
	}
	if f.limits.SessionMemory <= 0 && f.limits.TenantMemory <= 0 {
		add("no --max-session-memory or --max-tenant-memory: one client can take all memory up to --memory-limit")
	}
	flags.Visit(func(flag *pflag.Flag) {
		if value := flag.Value.String(); isLimit(flag.Name) && (value == "0" || value == "0s" || strings.HasPrefix(value, "-")) {
			add("--" + flag.Name + " " + value + ": no limit")
		}
	})
	return out
}

// isLimit reports whether a flag is a limit, which 0 or -1 turns off.
func isLimit(name string) bool {
	limits := []string{
		"memory-limit", "session-ttl", "handshake-timeout", "frame-timeout", "idle-timeout", "request-timeout", "response-timeout",
		"keepalive-interval", "keepalive-timeout", "partial-run-timeout",
	}
	return strings.HasPrefix(name, "max-") || slices.Contains(limits, name)
}

// insecureInterval is the time between warnings about a task that is open to other machines.
const insecureInterval = time.Hour

// warnInsecure logs that the task is open to every host, now and each hour, until it is stopped.
func warnInsecure(ctx context.Context, log *slog.Logger, interval time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			log.Warn(openToAll)
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
