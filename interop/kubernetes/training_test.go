package kubernetes_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// startTime is what TensorFlow and Python may take to start on a busy machine.
const startTime = 5 * time.Minute

func TestKubernetes(t *testing.T) {
	c := startCluster(t)
	training := moduleDir(t, "tfjob", "github.com/kubeflow/training-operator")
	certificates := moduleDir(t, ".", "github.com/cert-manager/cert-manager")
	c.install(
		filepath.Join(training, "manifests/base/crds/kubeflow.org_tfjobs.yaml"),
		filepath.Join(certificates, "deploy/crds/cert-manager.io_certificates.yaml"),
		filepath.Join(certificates, "deploy/crds/cert-manager.io_issuers.yaml"),
	)
	t.Run("Manifests", func(t *testing.T) { c.with(t).testManifests() })
	k := startKubelet(t, c, images(t), c.dir)
	t.Run("StatefulSets", func(t *testing.T) { c.with(t).testStatefulSets(k) })
	t.Run("TFJob", func(t *testing.T) { c.with(t).testTFJob(k) })
}

// with returns the cluster for a subtest.
func (c *cluster) with(t *testing.T) *cluster {
	t.Helper()
	out := *c
	out.t = t
	return &out
}

// testManifests lets the API server check each folder of manifests without storing its objects.
func (c *cluster) testManifests() {
	for _, name := range []string{"base", "cert-manager", "insecure", "train", "train-insecure", "tfjob"} {
		objects := kustomize(c.t, name)
		var err error
		c.eventually("the definitions of kinds are in use", time.Minute, func(context.Context) (bool, error) {
			err = c.apply(objects, true)
			return err == nil, err
		})
		c.t.Logf("%s: %d objects", name, len(objects))
	}
	wrong := kustomize(c.t, "base")
	for _, object := range wrong {
		if object.GetKind() == "StatefulSet" {
			_ = unstructured.SetNestedField(object.Object, "Sometimes", "spec", "podManagementPolicy")
		}
	}
	if err := c.apply(wrong, true); err == nil {
		c.t.Error("a wrong manifest is accepted")
	}
}

// testStatefulSets trains on the stateful sets with certificates, and kills a parameter server.
func (c *cluster) testStatefulSets(k *kubelet) {
	if err := c.apply(kustomize(c.t, "cert-manager"), false); err != nil {
		c.t.Fatal(err)
	}
	c.issueCertificates()
	tasks := []string{"weft-ps-0", "weft-ps-1", "weft-worker-0", "weft-worker-1"}
	for _, name := range tasks {
		c.waitReady(name)
	}
	if err := c.apply(kustomize(c.t, "train"), false); err != nil {
		c.t.Fatal(err)
	}
	// both clients train
	for index := range 2 {
		c.waitStep(k, fmt.Sprintf("weft-train-%d", index), "train", 0)
	}
	lost := k.pod("weft-ps-1")
	uid := lost.object.UID
	c.delete("weft-ps-1")
	c.waitReady("weft-ps-1")
	replaced := k.pod("weft-ps-1")
	if replaced.object.UID == uid || replaced.box.ip == lost.box.ip {
		c.t.Errorf("the parameter server was not replaced")
	}
	// the clients restore the last checkpoint and go on
	for index := range 2 {
		c.waitLog(k, fmt.Sprintf("weft-train-%d", index), "train", func(log []byte) bool { return bytes.Count(log, []byte("begins at step")) >= 2 })
	}
	c.eventually("the job ends", startTime, func(ctx context.Context) (bool, error) {
		job, err := c.BatchV1().Jobs(namespace).Get(ctx, "weft-train", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(job.Status.Conditions, func(condition batch.JobCondition) bool {
			return condition.Type == batch.JobComplete && condition.Status == core.ConditionTrue
		}), fmt.Errorf("%d succeeded, %d failed", job.Status.Succeeded, job.Status.Failed)
	})
	c.logSteps(k, "weft-train-0", "train")
	for _, set := range []string{"weft-ps", "weft-worker"} {
		if err := c.AppsV1().StatefulSets(namespace).Delete(c.t.Context(), set, metav1.DeleteOptions{}); err != nil {
			c.t.Error(err)
		}
	}
	for _, name := range tasks { // the garbage collector of Kubernetes would do this
		if p := k.pod(name); p != nil {
			_ = c.CoreV1().Pods(namespace).Delete(c.t.Context(), name, metav1.DeleteOptions{})
		}
	}
}

var tfJobs = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}

// testTFJob trains in a TFJob of Kubeflow's controller, and kills a worker.
func (c *cluster) testTFJob(k *kubelet) {
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: c.config.Host, InsecureSkipTLSVerify: true}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	path := filepath.Join(c.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		c.t.Fatal(err)
	}
	c.run("tfjob", "--kubeconfig="+path)
	if err := c.apply(kustomize(c.t, "tfjob"), false); err != nil {
		c.t.Fatal(err)
	}
	for _, name := range []string{"weft-train-ps-0", "weft-train-ps-1"} {
		c.waitReady(name)
	}
	const worker = "weft-train-worker-1"
	before := c.waitStep(k, worker, "tensorflow", 0)
	killed := k.pod(worker)
	killed.signal(syscall.SIGKILL) // deleting a pod of a TFJob is a failure that ends the job
	c.eventually("the worker is replaced", time.Minute, func(context.Context) (bool, error) { return k.pod(worker) != killed, nil })
	after := c.waitStep(k, worker, "tensorflow", before)
	c.t.Logf("worker 1 was killed after step %d, and its replacement trained step %d", before, after)
	c.eventually("the TFJob succeeds", startTime, func(ctx context.Context) (bool, error) {
		job, err := c.objects.Resource(tfJobs).Namespace(namespace).Get(ctx, "weft-train", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, err := unstructured.NestedSlice(job.Object, "status", "conditions")
		for _, condition := range conditions {
			if m := condition.(map[string]any); m["type"] == "Succeeded" && m["status"] == "True" {
				return true, nil
			} else if m["type"] == "Failed" && m["status"] == "True" {
				c.t.Fatalf("the TFJob has failed: %v", m["message"])
			}
		}
		return false, fmt.Errorf("%v %w", conditions, err)
	})
	c.logSteps(k, "weft-train-worker-0", "tensorflow")
	for _, name := range []string{"weft-train-ps-0", "weft-train-ps-1"} {
		c.eventually("parameter servers are removed", time.Minute, func(ctx context.Context) (bool, error) {
			_, err := c.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
			return err != nil, nil
		})
	}
}

// delete deletes a pod without grace, as if its node were lost.
func (c *cluster) delete(name string) {
	c.t.Helper()
	now := int64(0)
	if err := c.CoreV1().Pods(namespace).Delete(c.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) waitReady(name string) {
	c.t.Helper()
	c.eventually(name+" is ready", time.Minute, func(ctx context.Context) (bool, error) {
		p, err := c.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(p.Status.Conditions, func(condition core.PodCondition) bool {
			return condition.Type == core.PodReady && condition.Status == core.ConditionTrue
		}), fmt.Errorf("its phase is %s", p.Status.Phase)
	})
}

var stepLine = regexp.MustCompile(`step (\d+), loss ([0-9.]+)`)

// waitStep waits until a pod, or the one that has replaced it, has trained a step after last. It
// returns that step.
func (c *cluster) waitStep(k *kubelet, name, container string, last int) int {
	c.t.Helper()
	step := 0
	c.waitLog(k, name, container, func(log []byte) bool {
		for _, line := range stepLine.FindAllSubmatch(log, -1) {
			step, _ = strconv.Atoi(string(line[1]))
		}
		return step > last
	})
	return step
}

// waitLog waits until the log of a container is as wanted. Jobs add random letters to the names of
// pods.
func (c *cluster) waitLog(k *kubelet, name, container string, holds func(log []byte) bool) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%s trains", name), startTime, func(context.Context) (bool, error) {
		log := k.log(name, container)
		return holds(log), fmt.Errorf("its log ends: %s", log[max(0, len(log)-1500):])
	})
}

func (c *cluster) logSteps(k *kubelet, name, container string) {
	lines := stepLine.FindAllSubmatch(k.log(name, container), -1)
	if len(lines) == 0 {
		c.t.Errorf("%s has not trained", name)
		return
	}
	first, last := lines[0], lines[len(lines)-1]
	c.t.Logf("%s: loss %s at step %s, %s at step %s", name, first[2], first[1], last[2], last[1])
	if a, b := number(first[2]), number(last[2]); b >= a/10 {
		c.t.Errorf("%s: the loss fell only from %v to %v", name, a, b)
	}
}

func number(text []byte) float64 {
	f, _ := strconv.ParseFloat(string(text), 64) // the pattern allows only numbers
	return f
}
