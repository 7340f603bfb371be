package kubernetes_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const nodeName = "node"

// A kubelet stands in for the scheduler, the kubelet and the names of a cluster with one node.
type kubelet struct {
	t      *testing.T
	client kubernetes.Interface
	images map[string]*image
	dir    string // of pods and persistent volumes

	mu     sync.Mutex
	pods   map[types.UID]*pod
	number int // pods so far
	names  sync.Mutex
	all    sync.WaitGroup
}

// startKubelet runs pods until the test ends.
func startKubelet(t *testing.T, client kubernetes.Interface, images map[string]*image, dir string) *kubelet {
	t.Helper()
	k := &kubelet{t: t, client: client, images: images, dir: dir, pods: map[types.UID]*pod{}}
	if err := os.WriteFile(k.hosts(), []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactory(client, 0)
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { k.changed(ctx, object.(*core.Pod)) },
		UpdateFunc: func(_, object any) { k.changed(ctx, object.(*core.Pod)) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			k.deleted(object.(*core.Pod))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		k.all.Wait()
	})
	return k
}

func (k *kubelet) hosts() string { return filepath.Join(k.dir, "hosts") }

// changed starts a new pod, or ends one that is being deleted.
func (k *kubelet) changed(ctx context.Context, object *core.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.pods[object.UID]
	switch {
	case p == nil && object.DeletionTimestamp == nil && object.Status.Phase == core.PodPending:
		k.number++
		ctx, cancel := context.WithCancel(ctx)
		p = &pod{
			kubelet: k, object: object.DeepCopy(), number: k.number, stop: cancel, grace: make(chan int64, 1),
			dir: filepath.Join(k.dir, "pods", fmt.Sprintf("%d-%s", k.number, object.Name)),
		}
		k.pods[object.UID] = p
		k.all.Go(func() { p.run(ctx) })
	case object.DeletionTimestamp != nil:
		if p == nil { // it was never started
			go k.remove(object)
			return
		}
		select {
		case p.grace <- *object.DeletionGracePeriodSeconds:
		default: // it is ending
		}
		p.stop()
	}
}

// deleted kills a pod that was deleted without grace.
func (k *kubelet) deleted(object *core.Pod) {
	k.mu.Lock()
	p := k.pods[object.UID]
	k.mu.Unlock()
	if p != nil {
		select {
		case p.grace <- 0:
		default: // it is ending
		}
		p.stop()
	}
}

// remove tells the API server that a pod has ended, so that its name becomes free.
func (k *kubelet) remove(object *core.Pod) {
	now := int64(0)
	_ = k.client.CoreV1().Pods(object.Namespace).Delete(context.Background(), object.Name, meta.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &meta.Preconditions{UID: &object.UID},
	}) // it may be gone already
}

// updateNames writes the names of all pods as a DNS server would answer: a service has the
// addresses of its pods that are ready, or of all if it says so.
func (k *kubelet) updateNames(ctx context.Context) {
	k.names.Lock()
	defer k.names.Unlock()
	services, err := k.client.CoreV1().Services("").List(ctx, meta.ListOptions{})
	if err != nil {
		return // the test has ended, or another change comes
	}
	lines := []string{"127.0.0.1 localhost"}
	k.mu.Lock()
	for _, p := range k.pods {
		ip, ready := p.address()
		if ip == "" {
			continue
		}
		for i := range services.Items {
			s := &services.Items[i]
			selects := len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.object.Labels))
			if s.Namespace != p.object.Namespace || !selects || !ready && !s.Spec.PublishNotReadyAddresses {
				continue
			}
			hosts := []string{s.Name}
			if p.object.Spec.Hostname != "" && p.object.Spec.Subdomain == s.Name {
				hosts = append(hosts, p.object.Spec.Hostname+"."+s.Name)
			}
			for _, host := range hosts {
				full := host + "." + s.Namespace
				lines = append(lines, strings.Join([]string{ip, host, full, full + ".svc", full + ".svc.cluster.local"}, " "))
			}
		}
	}
	k.mu.Unlock()
	slices.Sort(lines)
	data := []byte(strings.Join(lines, "\n") + "\n")
	if old, err := os.ReadFile(k.hosts()); err == nil && bytes.Equal(old, data) {
		return
	}
	// containers have mounted this very file
	if err := os.WriteFile(k.hosts(), data, 0o644); err != nil {
		k.t.Error(err)
	}
}

// pod returns the latest pod with a name. The name of a pod of a job may lack its random end.
func (k *kubelet) pod(name string) *pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found *pod
	for _, p := range k.pods {
		if full := p.object.Name; (full == name || p.object.GenerateName == name+"-") && (found == nil || p.number > found.number) {
			found = p
		}
	}
	return found
}

// log returns the log of a container of the latest pod with a name.
func (k *kubelet) log(name, container string) []byte {
	p := k.pod(name)
	if p == nil {
		return nil
	}
	data, err := os.ReadFile(p.dir + "-" + container + ".log")
	if err != nil {
		return nil // it has not started
	}
	return data
}
