package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	token     = "administrator"
	namespace = "train"
)

// A cluster is a control plane with clients for it.
type cluster struct {
	t      *testing.T
	config *rest.Config
	kubernetes.Interface
	objects dynamic.Interface
	kinds   *restmapper.DeferredDiscoveryRESTMapper
	dir     string
}

// startCluster runs the control plane until the test ends. The namespace of the tests enforces the
// restricted standard for pods.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: newFolder(t)}
	port := 6443
	c.run("controlplane", "-dir", c.dir, "-port", fmt.Sprint(port), "-token", token)
	c.config = &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", port), BearerToken: token, QPS: 200, Burst: 400, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}
	c.Interface = kubernetes.NewForConfigOrDie(c.config)
	c.objects = dynamic.NewForConfigOrDie(c.config)
	c.kinds = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Discovery()))
	began := time.Now()
	c.eventually("the API server is ready", 2*time.Minute, func(ctx context.Context) (bool, error) {
		return c.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	t.Logf("the API server was ready after %v", time.Since(began).Round(time.Millisecond))
	_, err := c.CoreV1().Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run runs a program that "make kubernetes" has built until the test ends.
func (c *cluster) run(name string, args ...string) {
	c.t.Helper()
	log, err := os.Create(filepath.Join(c.dir, name+".log"))
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(repository(c.t), "bin", "kubernetes-"+name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		c.t.Fatalf("%v; use 'make kubernetes'", err)
	}
	c.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL) // it may have ended
		_ = cmd.Wait()
		log.Close()
		if c.t.Failed() {
			c.t.Logf("%s:\n%s", name, tail(log.Name(), 3000))
		}
	})
}

// eventually waits until a condition holds.
func (c *cluster) eventually(what string, limit time.Duration, holds func(context.Context) (bool, error)) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	for {
		ok, err := holds(ctx)
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			c.t.Fatalf("not within %v: %s (%v)", limit, what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// kustomize returns the objects of a folder of deploy/kubernetes.
func kustomize(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	files := filesys.MakeFsOnDisk()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, filepath.Join(repository(t), "deploy/kubernetes", name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var out []*unstructured.Unstructured
	for _, r := range built.Resources() {
		data, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		out = append(out, object)
	}
	return out
}

// readObjects returns the objects of a YAML file.
func readObjects(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(object.Object) > 0 {
			out = append(out, object)
		}
	}
}

// apply applies objects. Fields that the API server does not know are errors.
func (c *cluster) apply(objects []*unstructured.Unstructured, dryRun bool) error {
	var failed []error
	for _, object := range objects {
		failed = append(failed, c.applyOne(object.DeepCopy(), dryRun))
	}
	return errors.Join(failed...)
}

func (c *cluster) applyOne(object *unstructured.Unstructured, dryRun bool) error {
	kind := object.GroupVersionKind()
	mapping, err := c.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		c.kinds.Reset()
		mapping, err = c.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return err
	}
	resource := dynamic.ResourceInterface(c.objects.Resource(mapping.Resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = c.objects.Resource(mapping.Resource).Namespace(namespace)
		object.SetNamespace(namespace)
	}
	data, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	o := metav1.PatchOptions{FieldManager: "test", FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	_, err = resource.Patch(c.t.Context(), object.GetName(), "application/apply-patch+yaml", data, o)
	if err != nil {
		return fmt.Errorf("%s %s: %w", kind.Kind, object.GetName(), err)
	}
	return nil
}

// install adds the kinds of a module's custom resource definitions.
func (c *cluster) install(files ...string) {
	c.t.Helper()
	for _, file := range files {
		if err := c.apply(readObjects(c.t, file), false); err != nil {
			c.t.Fatal(err)
		}
	}
}

// moduleDir returns the folder of a module that a go.mod in dir requires.
func moduleDir(t *testing.T, dir, module string) string {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(module, err)
	}
	return strings.TrimSpace(string(out))
}

// repository returns the folder of this checkout.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tail returns the end of a file.
func tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-n):])
}
