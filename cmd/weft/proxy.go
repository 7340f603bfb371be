package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/cmd/weft/internal/proxy"
	"github.com/weft-ml/weft/internal/transport/secure"
)

// proxyFlags are the flags of weft proxy.
type proxyFlags struct {
	listen      string
	to          string
	task        string
	clusterSpec string
	users       []string
	anyUser     bool
	connections int
	tls         clientTLSFlags
	log         logFlags
}

func newProxy() *cobra.Command {
	var f proxyFlags
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Connect programs without TLS, such as TensorFlow's clients, to tasks with TLS",
		Long: "Accept connections without TLS on this machine and carry them to a task, over TLS and with the certificate of the " +
			"proxy. Only the user that runs the proxy may connect, unless other users are allowed. With --cluster-spec, there is a " +
			"port for each task, and the proxy prints the cluster specification with these ports.",
		Example: "  weft proxy --listen 127.0.0.1:2222 --to worker-0.train:2222 --task worker/0 --tls-cert alice.pem --tls-key alice.key --tls-ca ca.pem\n" +
			"  python: tf.compat.v1.Session('grpc://127.0.0.1:2222')",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "address to listen on, host:port or unix:/path; with --cluster-spec, the host and the first port")
	flags.StringVar(&f.to, "to", "", "address of the task")
	flags.StringVar(&f.task, "task", "", "task that must answer, as job/index; without it, any task of the cluster may")
	flags.StringVar(&f.clusterSpec, "cluster-spec", "", "tasks of the cluster, instead of --to and --task; each task gets a port")
	flags.StringArrayVar(&f.users, "allow-user", nil, "user that may connect, by name or number; may be repeated (default: the user that runs the proxy)")
	flags.BoolVar(&f.anyUser, "any-local-user", false, "every process that reaches the address may connect, for instance all of a pod")
	flags.IntVar(&f.connections, "max-connections", proxyConnections, "open connections, at most 7/16 of the file descriptors; 0 for no limit")
	f.tls.add(flags)
	f.log.add(flags, "details of connections, too")
	return cmd
}

// proxyConnections is the number of connections of a proxy, unless a flag says otherwise. A task
// lets a client with a certificate have 256, so this is enough for a few tasks.
const proxyConnections = 1000

// route is a listener of the proxy and the task that it leads to.
type proxyRoute struct {
	listener net.Listener
	to       string
	task     cluster.Task
}

func (f *proxyFlags) run(cmd *cobra.Command) error {
	allowed, err := f.allowed()
	if err != nil {
		return usageError{err}
	}
	logger := f.log.logger(cmd.ErrOrStderr())
	creds, err := f.tls.credentials(logger)
	if err != nil {
		return err
	}
	routes, spec, err := f.routes()
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	creds.Watch()
	defer creds.Close()
	limiter := proxy.NewLimiter(f.connections, logger)
	defer limiter.Close()
	errs := make([]error, len(routes))
	for i, r := range routes {
		p := &proxy.Proxy{Listener: r.listener, To: r.to, Task: r.task, Credentials: creds, Allowed: allowed, Limiter: limiter, Log: logger}
		stop := context.AfterFunc(cmd.Context(), p.Close)
		defer stop()
		all.Go(func() { errs[i] = p.Serve() })
	}
	out := cmd.OutOrStdout()
	if spec != nil {
		fmt.Fprintln(out, spec)
	} else {
		fmt.Fprintf(out, "weft proxy ready: %s leads to %s\n", routes[0].listener.Addr(), f.to)
	}
	stop := reloadOnHangUp(creds.Reload)
	defer stop()
	all.Wait()
	return errors.Join(errs...)
}

// routes returns the listeners, and the cluster specification with their addresses if there is one.
func (f *proxyFlags) routes() ([]proxyRoute, cluster.Spec, error) {
	if (f.to == "") == (f.clusterSpec == "") {
		return nil, nil, usageError{errors.New("either --to or --cluster-spec is needed")}
	}
	if f.clusterSpec == "" {
		r := proxyRoute{to: f.to}
		var err error
		if f.task != "" {
			if r.task, err = parseTask(f.task); err != nil {
				return nil, nil, usageError{fmt.Errorf("--task: %w", err)}
			}
		}
		r.listener, err = f.open(f.listen)
		return []proxyRoute{r}, nil, err
	}
	spec, err := cluster.Parse(f.clusterSpec)
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("--cluster-spec: %w", err)}
	}
	host, first, err := net.SplitHostPort(f.listen)
	port, portErr := strconv.Atoi(first)
	if err != nil || portErr != nil {
		return nil, nil, usageError{fmt.Errorf("--listen %q: want host:port with --cluster-spec", f.listen)}
	}
	var routes []proxyRoute
	local := spec.Clone()
	for i, t := range spec.Tasks() {
		address := f.listen
		if port != 0 {
			address = net.JoinHostPort(host, strconv.Itoa(port+i))
		}
		l, err := f.open(address)
		if err != nil {
			for _, r := range routes {
				r.listener.Close()
			}
			return nil, nil, err
		}
		local[t.Job][t.Index] = l.Addr().String()
		routes = append(routes, proxyRoute{l, spec.Address(t), t})
	}
	return routes, local, nil
}

// open listens on an address of this machine.
func (f *proxyFlags) open(address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return openUnix(path)
	}
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, usageError{fmt.Errorf("--listen: %w", err)}
	}
	if !tcp.IP.IsLoopback() {
		return nil, configError{fmt.Errorf("--listen %s: other machines can reach this address, and the proxy would lend them its certificate", address)}
	}
	return net.ListenTCP("tcp", tcp)
}

// openUnix listens on a Unix socket that only the user of the proxy may use. A socket that an
// earlier proxy has left is replaced.
func openUnix(path string) (net.Listener, error) {
	l, err := listenUnix(path)
	if errors.Is(err, errSocketInUse) {
		return nil, fmt.Errorf("--listen unix:%s: another process listens there", path)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// allowed returns the function that decides about users; nil for all.
func (f *proxyFlags) allowed() (func(uint32) bool, error) {
	switch {
	case f.anyUser:
		return nil, nil //nolint:nilnil // see above
	case !proxy.CanLookUp:
		return nil, errors.New("this system does not tell the user of a connection: --any-local-user allows all")
	}
	uids := []uint32{uint32(os.Geteuid())}
	for _, name := range f.users {
		u, err := user.Lookup(name)
		id := name
		if err == nil {
			id = u.Uid
		}
		uid, numberErr := strconv.ParseUint(id, 10, 32)
		if numberErr != nil {
			return nil, fmt.Errorf("--allow-user %s: %w", name, err)
		}
		uids = append(uids, uint32(uid))
	}
	return func(uid uint32) bool { return slices.Contains(uids, uid) }, nil
}

// clientTLSFlags are the flags of commands that connect to tasks.
type clientTLSFlags struct{ files secure.Files }
