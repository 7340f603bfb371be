package master

import (
	"log/slog"
	"slices"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// remoteDevice is a device of the cluster, as its task describes it.
type remoteDevice struct {
	name  device.Spec // full
	own   device.Spec // name that the task itself gives it; may lack the task
	attrs *pb.DeviceAttributes
}

// devices are the devices that a session can use, in the order of their tasks.
type devices []remoteDevice

// onTask returns a device under the name that its task has in this cluster. A task may have been
// started under another name, or know only "/cpu:0"; the rest of its description is taken as it is.
func onTask(task cluster.Task, attrs *pb.DeviceAttributes) (remoteDevice, error) {
	name, err := device.Parse(attrs.GetName())
	if err == nil && name.Type == "" {
		name.Type = attrs.GetDeviceType()
	}
	given := name
	name.Job, name.Replica, name.Task = task.Job, 0, task.Index
	if err != nil || !name.IsFull() {
		return remoteDevice{}, status.InvalidArgumentf("%v has a device with the name '%s'", task, attrs.GetName())
	}
	out := &pb.DeviceAttributes{
		Name: name.String(), DeviceType: attrs.GetDeviceType(), MemoryLimit: attrs.GetMemoryLimit(), Locality: attrs.GetLocality(),
		Incarnation: attrs.GetIncarnation(), PhysicalDeviceDesc: attrs.GetPhysicalDeviceDesc(), XlaGlobalId: attrs.GetXlaGlobalId(),
	}
	return remoteDevice{name, given, out}, nil
}

// warnOfNames logs the tasks that have another name in their own cluster specification. They do not
// take parts of steps under the name that they have here.
func (d devices) warnOfNames(log *slog.Logger) {
	warned := map[cluster.Task]bool{}
	for i := range d {
		task, own := taskOf(d[i].name), taskOf(d[i].own)
		if own.Job != "" && own != task && !warned[task] {
			log.Warn("a task has another name in its own cluster specification", "peer", task, "own_name", own)
			warned[task] = true
		}
	}
}

// names returns the full names.
func (d devices) names() []string {
	out := make([]string, len(d))
	for i := range d {
		out[i] = d[i].attrs.Name
	}
	return out
}

// attributes returns the descriptions.
func (d devices) attributes() []*pb.DeviceAttributes {
	out := make([]*pb.DeviceAttributes, len(d))
	for i := range d {
		out[i] = d[i].attrs
	}
	return out
}

// of returns the devices of one task.
func (d devices) of(task cluster.Task) devices {
	return slices.DeleteFunc(slices.Clone(d), func(r remoteDevice) bool { return taskOf(r.name) != task })
}

// notOf returns the devices of all other tasks.
func (d devices) notOf(task cluster.Task) devices {
	return slices.DeleteFunc(slices.Clone(d), func(r remoteDevice) bool { return taskOf(r.name) == task })
}

// incarnations returns the incarnations of all devices, by full name.
func (d devices) incarnations() map[string]uint64 {
	out := make(map[string]uint64, len(d))
	for i := range d {
		out[d[i].attrs.Name] = d[i].attrs.Incarnation
	}
	return out
}

// client returns the device that feeds come from and fetches go to: a CPU of the given task.
func (d devices) client(task cluster.Task) (remoteDevice, error) {
	for i := range d {
		if taskOf(d[i].name) == task && d[i].name.Type == "CPU" {
			return d[i], nil
		}
	}
	return remoteDevice{}, status.InvalidArgumentf("%v has no CPU device for the client", task)
}

func taskOf(name device.Spec) cluster.Task { return cluster.Task{Job: name.Job, Index: name.Task} }

// filters are partial device names. A device is visible if it matches one of them, or if there are
// none.
type filters []device.Spec

func parseFilters(texts []string) (filters, error) {
	if err := cluster.CheckFilters(texts); err != nil {
		return nil, err
	}
	out := make(filters, len(texts))
	for i, text := range texts {
		var err error
		if out[i], err = device.Parse(text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (f filters) match(name device.Spec) bool {
	return len(f) == 0 || slices.ContainsFunc(f, func(spec device.Spec) bool { return spec.IsCompatible(name) })
}

// tasks returns the tasks that may have a visible device, and self.
func (f filters) tasks(all []cluster.Task, self cluster.Task) []cluster.Task {
	return slices.DeleteFunc(slices.Clone(all), func(t cluster.Task) bool {
		name := device.Spec{Job: t.Job, Replica: 0, Task: t.Index, ID: device.Unset}
		return t != self && !f.match(name)
	})
}
