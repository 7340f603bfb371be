// Command controlplane runs a control plane of Kubernetes in one process: etcd, the API server, and
// the controllers of stateful sets and jobs. It has no scheduler and no kubelet.
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/statefulset"
)

func main() {
	dir := flag.String("dir", "", "folder for data and keys")
	port := flag.Int("port", 6443, "port of the API server on 127.0.0.1; etcd gets the next two")
	token := flag.String("token", "", "token of the administrator")
	flag.Parse()
	if err := run(*dir, *port, *token); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run(dir string, port int, token string) error {
	store, err := startStore(dir, port+1)
	if err != nil {
		return err
	}
	defer store.Close()
	tokens, key := filepath.Join(dir, "tokens.csv"), filepath.Join(dir, "accounts.key")
	if err := os.WriteFile(tokens, fmt.Appendf(nil, "%s,admin,admin,system:masters\n", token), 0o600); err != nil {
		return err
	}
	if err := writeKey(key); err != nil {
		return err
	}
	server := app.NewAPIServerCommand()
	server.SetArgs([]string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", port+1), fmt.Sprintf("--secure-port=%d", port), "--bind-address=127.0.0.1", "--cert-dir=" + dir,
		"--token-auth-file=" + tokens, "--authorization-mode=RBAC", "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=false",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--endpoint-reconciler-type=none", "--advertise-address=10.244.0.1",
	})
	ctx := server.Context()
	failed := make(chan error, 2)
	go func() { failed <- server.ExecuteContext(ctx) }()
	go func() { failed <- control(ctx, port, token) }()
	return <-failed
}

func localURL(port int) url.URL {
	return url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}
}

// startStore starts etcd.
func startStore(dir string, port int) (*embed.Etcd, error) {
	client, peer := localURL(port), localURL(port+1)
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.UnsafeNoFsync = filepath.Join(dir, "etcd"), "error", true
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	store, err := embed.StartEtcd(c)
	if err != nil {
		return nil, err
	}
	select {
	case <-store.Server.ReadyNotify():
		return store, nil
	case err := <-store.Err():
		return nil, err
	}
}

// writeKey writes the key that signs tokens of service accounts.
func writeKey(path string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
}

// control runs the controllers until ctx ends.
func control(ctx context.Context, port int, token string) error {
	client, err := clientset.NewForConfig(&rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", port), BearerToken: token, QPS: 200, Burst: 400,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	})
	if err != nil {
		return err
	}
	for client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	f := informers.NewSharedInformerFactory(client, 0)
	sets := statefulset.NewStatefulSetController(ctx, f.Core().V1().Pods(), f.Apps().V1().StatefulSets(), f.Core().V1().PersistentVolumeClaims(),
		f.Apps().V1().ControllerRevisions(), client)
	jobs, err := job.NewController(ctx, client, f.Core().V1().Pods(), f.Batch().V1().Jobs(), nil, nil)
	if err != nil {
		return err
	}
	f.Start(ctx.Done())
	go jobs.Run(ctx, 2)
	sets.Run(ctx, 2)
	return nil
}
