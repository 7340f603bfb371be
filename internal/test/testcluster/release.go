package testcluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/role/worker"
	"github.com/weft-ml/weft/status"
)

// A task of Options.Releases stands in for a task of a release of TensorFlow. It answers the
// questions of package peer as that release does, computes the IDs of frames in its way, and fails
// where the release would fail or end.

func (r *remote) release() peer.Release {
	if release, ok := r.view.cluster.options.Releases[r.task]; ok {
		return release
	}
	return peer.Weft
}

// HasMethod implements peer.Questioner.
func (r *remote) HasMethod(ctx context.Context, method string, _ []byte) (bool, error) {
	_, err := call(ctx, r, method, 0, func(*worker.Worker) (*pb.GetStatusResponse, error) { return nil, nil })
	return r.release() >= peer.Since(method), err
}

// describe returns the status of a task as its release sends it.
func (r *remote) describe(resp *pb.GetStatusResponse) *pb.GetStatusResponse {
	if r.release() == peer.Weft {
		return resp
	}
	out := &pb.GetStatusResponse{DeviceAttributes: resp.GetDeviceAttributes()}
	if r.release().Has(peer.ShortDeviceNames) {
		for _, d := range out.GetDeviceAttributes() {
			d.Name = short(d.GetName())
		}
	}
	return out
}

func short(name string) string { return strings.Replace(name, "/device:CPU:", "/cpu:", 1) }

func long(name string) string { return strings.Replace(name, "/cpu:", "/device:CPU:", 1) }

// checkSession fails as a task without worker sessions does.
func (r *remote) checkSession() error {
	if r.release().Has(peer.NoWorkerSessions) {
		return status.Internalf("%v has ended with a segmentation fault", r.task)
	}
	return nil
}

// receive checks a graph as the release does, and returns the context of a master of that release.
func (r *remote) receive(ctx context.Context, req *pb.RegisterGraphRequest) (context.Context, error) {
	release := r.release()
	if release == peer.Weft {
		return ctx, nil
	}
	if release.Has(peer.NoWorkerSessions) && req.GetCreateWorkerSessionCalled() {
		return nil, status.Abortedf("%v has no session %s", r.task, req.GetSessionHandle())
	}
	for _, n := range req.GetGraphDef().GetNode() {
		if release.Has(peer.ShortDeviceNames) {
			if err := r.takeDevices(n); err != nil {
				return nil, err
			}
		}
		op, known := r.view.cluster.options.Kernels.LookupOp(n.GetOp())
		if !known || !release.Has(peer.WantsDefaults) {
			continue
		}
		for i := range op.Attrs {
			if name := op.Attrs[i].Name; n.GetAttr()[name] == nil {
				return nil, status.InvalidArgumentf("NodeDef missing attr '%s' from Op<name=%s>", name, op.Name)
			}
		}
	}
	return peer.NewContext(ctx, release), nil
}

// takeDevices checks that a node has the device names that the task compares as texts, and replaces
// them by those that the worker behind the task has.
func (r *remote) takeDevices(n *pb.NodeDef) error {
	if n.GetDevice() != short(n.GetDevice()) {
		return status.InvalidArgumentf("%s unknown device.", n.GetDevice())
	}
	n.Device = long(n.GetDevice())
	for _, name := range []string{"send_device", "recv_device"} {
		v := n.GetAttr()[name]
		if device := string(v.GetS()); strings.HasPrefix(device, r.task.String()+"/") {
			if device != short(device) {
				return status.InvalidArgumentf("%s unknown device.", device)
			}
			v.Value = &pb.AttrValue_S{S: []byte(long(device))}
		}
	}
	return nil
}

// translate returns the key of a tensor that a task requests, with the names that the worker behind
// the producer has. A worker that stands in for a release with short names has long ones of its
// own.
func (r *remote) translate(key string) string {
	releases := r.view.cluster.options.Releases
	parts := strings.Split(key, ";")
	for i := range parts {
		switch {
		case strings.HasPrefix(parts[i], r.task.String()+"/"):
			parts[i] = long(parts[i])
		case releases[r.view.node.Task].Has(peer.ShortDeviceNames) && strings.HasPrefix(parts[i], r.view.node.Task.String()+"/"):
			parts[i] = short(parts[i])
		}
	}
	return strings.Join(parts, ";")
}

// Graphs returns the number of graphs that are registered on a task outside of worker sessions.
func (c *Cluster) Graphs(task cluster.Task) int {
	var registered, dropped int
	for _, call := range c.Calls() {
		if call.To == task {
			switch call.Method {
			case "RegisterGraph":
				registered++
			case "DeregisterGraph":
				dropped++
			}
		}
	}
	if dropped > registered {
		panic(fmt.Sprintf("%d graphs were dropped, and %d registered", dropped, registered))
	}
	return registered - dropped
}
