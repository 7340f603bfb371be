package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// A pod runs the containers of one pod.
type pod struct {
	kubelet *kubelet
	object  *core.Pod
	number  int
	dir     string
	stop    context.CancelFunc
	grace   chan int64 // seconds that the containers have to end after stop
	box     *sandbox

	mu         sync.Mutex
	containers []*container
	ended      bool
}

// A container is one container of a pod. Its fields are guarded by the mutex of the pod.
type container struct {
	spec     *core.Container
	sidecar  bool
	process  *exec.Cmd // nil while none runs
	exited   *int      // last exit status
	restarts int32
	ready    bool
	done     bool // it is not started again
}

func (p *pod) logf(format string, args ...any) {
	p.kubelet.t.Logf("%s %s: %s", time.Now().Format("15:04:05"), p.object.Name, fmt.Sprintf(format, args...))
}

// run runs the pod until its containers have ended or ctx ends.
func (p *pod) run(ctx context.Context) {
	defer p.stop()
	if err := p.prepare(ctx); err != nil {
		if ctx.Err() == nil {
			p.kubelet.t.Errorf("%s: %v", p.object.Name, err)
		}
		return
	}
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	var mains, sidecars sync.WaitGroup
	for _, c := range p.containers {
		group := &mains
		if c.sidecar {
			group = &sidecars
		}
		group.Go(func() { p.keep(ctx, life, c) })
		group.Go(func() { p.probe(life, c) })
	}
	go func() {
		<-ctx.Done()
		p.terminate(life)
	}()
	mains.Wait()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	kill()
	p.signal(syscall.SIGKILL)
	sidecars.Wait()
	p.publish(context.WithoutCancel(ctx))
	_ = p.box.close() // nothing uses it
	<-ctx.Done()      // until it is deleted
	p.kubelet.remove(p.object)
}

// prepare binds the pod to the node and gives it a network.
func (p *pod) prepare(ctx context.Context) error {
	err := p.kubelet.client.CoreV1().Pods(p.object.Namespace).Bind(ctx, &core.Binding{
		ObjectMeta: meta.ObjectMeta{Name: p.object.Name, Namespace: p.object.Namespace}, Target: core.ObjectReference{Kind: "Node", Name: nodeName},
	}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	if p.box, err = newSandbox(p.number); err != nil {
		return err
	}
	p.logf("has the address %s", p.box.ip)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.object.Spec.InitContainers {
		c := &p.object.Spec.InitContainers[i]
		if c.RestartPolicy == nil || *c.RestartPolicy != core.ContainerRestartPolicyAlways {
			return fmt.Errorf("the stand-in runs init containers as sidecars only")
		}
		p.containers = append(p.containers, &container{spec: c, sidecar: true})
	}
	for i := range p.object.Spec.Containers {
		p.containers = append(p.containers, &container{spec: &p.object.Spec.Containers[i]})
	}
	return nil
}

// keep starts a container, and again after its end as the restart policy says. ctx ends when no
// further start is wanted, life when the container must have ended.
func (p *pod) keep(ctx, life context.Context, c *container) {
	root, err := p.root(ctx, c)
	if err != nil {
		if ctx.Err() == nil {
			p.kubelet.t.Errorf("%s: %v", p.object.Name, err)
		}
		return
	}
	for ctx.Err() == nil && life.Err() == nil {
		code, err := p.once(life, c, root)
		if err != nil {
			p.kubelet.t.Errorf("%s: %v", p.object.Name, err)
			return
		}
		p.mu.Lock()
		policy := p.object.Spec.RestartPolicy
		c.done = !c.sidecar && (policy == core.RestartPolicyNever || policy == core.RestartPolicyOnFailure && code == 0) || ctx.Err() != nil
		done := c.done
		if !done {
			c.restarts++
		}
		p.mu.Unlock()
		p.publish(context.WithoutCancel(ctx))
		if done {
			return
		}
		select {
		case <-ctx.Done():
		case <-life.Done():
		case <-time.After(time.Second): // a short form of the kubelet's backoff
		}
	}
}

// root builds the root folder of a container. It waits for the contents of its volumes.
func (p *pod) root(ctx context.Context, c *container) (string, error) {
	image := p.kubelet.images[c.spec.Image]
	if image == nil {
		return "", fmt.Errorf("there is no image %s", c.spec.Image)
	}
	v := &volumes{client: p.kubelet.client, pod: p.object, dir: p.dir, claims: filepath.Join(p.kubelet.dir, "claims")}
	for said := false; ; said = true {
		mounts, err := v.mounts(ctx, c.spec)
		if err == nil {
			root := filepath.Join(p.dir, c.spec.Name)
			readOnly := c.spec.SecurityContext != nil && c.spec.SecurityContext.ReadOnlyRootFilesystem != nil && *c.spec.SecurityContext.ReadOnlyRootFilesystem
			return root, image.build(root, p.kubelet.hosts(), mounts, readOnly)
		}
		if !said {
			p.logf("waits for a volume: %v", err)
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// once runs the process of a container and returns its exit status.
func (p *pod) once(life context.Context, c *container, root string) (int, error) {
	env, err := p.environment(life, c.spec)
	if err != nil {
		return 0, err
	}
	expand := expansion.MappingFuncFor(env)
	cmd := p.kubelet.images[c.spec.Image].process(root, c.spec, p.object.Spec.SecurityContext, env, func(s string) string {
		return expansion.Expand(s, expand)
	})
	log, err := os.OpenFile(p.dir+"-"+c.spec.Name+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	p.mu.Lock()
	if life.Err() != nil {
		p.mu.Unlock()
		return 0, nil
	}
	err = p.box.start(cmd)
	c.process = cmd
	p.mu.Unlock()
	if err != nil {
		return 0, fmt.Errorf("container %s: %w", c.spec.Name, err)
	}
	p.logf("container %s runs", c.spec.Name)
	p.publish(life)
	_ = cmd.Wait() // the status tells
	code := cmd.ProcessState.ExitCode()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		code = 128 + int(status.Signal())
	}
	p.logf("container %s has ended with %d", c.spec.Name, code)
	p.mu.Lock()
	defer p.mu.Unlock()
	c.process, c.exited, c.ready = nil, &code, false
	return code, nil
}

// environment returns the variables of a container.
func (p *pod) environment(ctx context.Context, c *core.Container) (map[string]string, error) {
	out := map[string]string{}
	for _, v := range c.Env {
		value := expansion.Expand(v.Value, expansion.MappingFuncFor(out))
		if from := v.ValueFrom; from != nil {
			var err error
			switch {
			case from.FieldRef != nil && from.FieldRef.FieldPath == "status.podIP":
				value = p.box.ip
			case from.FieldRef != nil:
				value, err = fieldpath.ExtractFieldPathAsString(p.object, from.FieldRef.FieldPath)
			case from.ConfigMapKeyRef != nil:
				var m *core.ConfigMap
				if m, err = p.kubelet.client.CoreV1().ConfigMaps(p.object.Namespace).Get(ctx, from.ConfigMapKeyRef.Name, meta.GetOptions{}); err == nil {
					value = m.Data[from.ConfigMapKeyRef.Key]
				}
			default:
				err = fmt.Errorf("variable %s is of a kind that the stand-in does not know", v.Name)
			}
			if err != nil {
				return nil, err
			}
		}
		out[v.Name] = value
	}
	return out, nil
}

// terminate ends the containers: with SIGTERM, and after the grace period with SIGKILL.
func (p *pod) terminate(life context.Context) {
	grace := int64(0)
	select {
	case grace = <-p.grace:
	default: // the test has ended
	}
	if grace > 0 {
		p.signal(syscall.SIGTERM)
		select {
		case <-life.Done():
			return
		case <-time.After(time.Duration(grace) * time.Second):
		}
	}
	p.signal(syscall.SIGKILL)
}

// signal sends a signal to the processes of the pod. Sidecars get it only if the others have ended.
func (p *pod) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.containers {
		if c.process != nil && (!c.sidecar || p.ended || s == syscall.SIGKILL) {
			_ = c.process.Process.Signal(s) // it may have ended
		}
	}
}

// address returns the address of a pod that runs, and whether it is ready.
func (p *pod) address() (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.box == nil {
		return "", false
	}
	return p.box.ip, p.ready()
}

func (p *pod) ready() bool {
	for _, c := range p.containers {
		if c.process == nil || !c.ready {
			return false
		}
	}
	return len(p.containers) > 0
}

// publish writes the status of the pod to the API server.
func (p *pod) publish(ctx context.Context) {
	p.mu.Lock()
	s := p.status()
	p.mu.Unlock()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.object.UID}, "status": s})
	if err == nil {
		_, err = p.kubelet.client.CoreV1().Pods(p.object.Namespace).Patch(ctx, p.object.Name, types.MergePatchType, patch, meta.PatchOptions{}, "status")
	}
	if err != nil && ctx.Err() == nil {
		p.logf("its status is not stored: %v", err)
	}
	p.kubelet.updateNames(ctx)
}

func (p *pod) status() core.PodStatus {
	now := meta.Now()
	s := core.PodStatus{Phase: core.PodPending, PodIP: p.box.ip, PodIPs: []core.PodIP{{IP: p.box.ip}}, StartTime: &now}
	running, failed, done := false, false, true
	for _, c := range p.containers {
		cs := core.ContainerStatus{Name: c.spec.Name, Image: c.spec.Image, RestartCount: c.restarts, Ready: c.ready}
		switch {
		case c.process != nil:
			cs.State.Running = &core.ContainerStateRunning{StartedAt: now}
		case c.exited != nil:
			cs.State.Terminated = &core.ContainerStateTerminated{ExitCode: int32(*c.exited), FinishedAt: now}
		default:
			cs.State.Waiting = &core.ContainerStateWaiting{Reason: "ContainerCreating"}
		}
		if c.sidecar {
			s.InitContainerStatuses = append(s.InitContainerStatuses, cs)
			continue
		}
		running = running || c.process != nil || c.exited != nil
		failed = failed || c.exited != nil && *c.exited != 0
		done = done && c.done
		s.ContainerStatuses = append(s.ContainerStatuses, cs)
	}
	switch {
	case done && failed:
		s.Phase = core.PodFailed
	case done:
		s.Phase = core.PodSucceeded
	case running:
		s.Phase = core.PodRunning
	}
	state := core.ConditionFalse
	if p.ready() && !p.ended {
		state = core.ConditionTrue
	}
	for _, kind := range []core.PodConditionType{core.PodReady, core.ContainersReady} {
		s.Conditions = append(s.Conditions, core.PodCondition{Type: kind, Status: state, LastTransitionTime: now})
	}
	return s
}
