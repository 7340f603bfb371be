package kernel

import (
	"sync"

	"github.com/weft-ml/weft/status"
)

// Resource is state that outlives a step and is found by name: a variable, a queue, a table.
type Resource interface {
	// TypeName identifies the kind of the resource. Resources of different kinds may have the same
	// name.
	TypeName() string
}

// Resources holds the resources of a device or of a step by container and name. The zero Resources
// is empty, with a default container that has no name.
type Resources struct {
	defaultContainer string

	mu sync.RWMutex
	// guarded by mu; nil while empty
	containers map[string]map[resourceKey]Resource
}

type resourceKey struct{ typeName, name string }

// NewResources returns an empty set. The empty container name means defaultContainer; in
// TensorFlow that is the name of the task's job.
func NewResources(defaultContainer string) *Resources {
	return &Resources{defaultContainer: defaultContainer}
}

// SessionTensorType is the resource type of the tensors that a session keeps between steps, and of
// their handles.
const SessionTensorType = "TensorHandle"

// SessionContainer returns the container of resources that live as long as the session with the
// given handle.
func SessionContainer(session string) string { return "_session " + session }

// DefaultContainer returns the name of the container that the empty name means.
func (r *Resources) DefaultContainer() string { return r.defaultContainer }

func (r *Resources) container(name string) string {
	if name == "" {
		return r.defaultContainer
	}
	return name
}

// LookupResource returns the resource of type T with the given name.
func LookupResource[T Resource](r *Resources, container, name string) (T, error) {
	var z T
	found, err := r.Lookup(container, z.TypeName(), name)
	if err != nil {
		return z, err
	}
	t, ok := found.(T)
	if !ok {
		return z, status.InvalidArgumentf("Resource %s/%s is a %T, not a %T", container, name, found, z)
	}
	return t, nil
}

// Lookup returns the resource of the given type and name.
func (r *Resources) Lookup(container, typeName, name string) (Resource, error) {
	container = r.container(container)
	r.mu.RLock()
	found, ok := r.containers[container][resourceKey{typeName, name}]
	_, exists := r.containers[container]
	r.mu.RUnlock()
	switch {
	case ok:
		return found, nil
	case !exists:
		return nil, status.NotFoundf("Container %s does not exist. (Could not find resource: %s/%s)", container, container, name)
	}
	return nil, status.NotFoundf("Resource %s/%s/%s does not exist.", container, name, typeName)
}

// LookupOrCreateResource returns the resource of type T with the given name. It creates the
// resource with create if there is none. create runs under a lock and must not use the resources.
func LookupOrCreateResource[T Resource](r *Resources, container, name string, create func() (T, error)) (T, error) {
	if t, err := LookupResource[T](r, container, name); status.CodeOf(err) != status.NotFound {
		return t, err
	}
	var z T
	container = r.container(container)
	key := resourceKey{z.TypeName(), name}
	r.mu.Lock()
	defer r.mu.Unlock()
	if found, ok := r.containers[container][key].(T); ok {
		return found, nil
	}
	t, err := create()
	if err != nil {
		return z, err
	}
	r.putLocked(container, key, t)
	return t, nil
}

// CreateResource adds a resource. It is an error if one of the same type and name exists.
func CreateResource(r *Resources, container, name string, res Resource) error {
	container = r.container(container)
	key := resourceKey{res.TypeName(), name}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.containers[container][key]; ok {
		return status.AlreadyExistsf("Resource %s/%s/%s", container, name, res.TypeName())
	}
	r.putLocked(container, key, res)
	return nil
}

func (r *Resources) putLocked(container string, key resourceKey, res Resource) {
	c := r.containers[container]
	if c == nil {
		if r.containers == nil {
			r.containers = map[string]map[resourceKey]Resource{}
		}
		c = map[resourceKey]Resource{}
		r.containers[container] = c
	}
	c[key] = res
}

// DeleteResource removes the resource of the given type and name.
func (r *Resources) DeleteResource(container, typeName, name string) error {
	container = r.container(container)
	key := resourceKey{typeName, name}
	r.mu.Lock()
	res, ok := r.containers[container][key]
	_, exists := r.containers[container]
	delete(r.containers[container], key)
	r.mu.Unlock()
	if !exists {
		return status.NotFoundf("Container %s does not exist.", container)
	}
	if !ok {
		return status.NotFoundf("Resource %s/%s/%s does not exist.", container, name, typeName)
	}
	closeResource(res)
	return nil
}

// Clear removes all resources of a container.
func (r *Resources) Clear(container string) {
	container = r.container(container)
	r.mu.Lock()
	gone := r.containers[container]
	delete(r.containers, container)
	r.mu.Unlock()
	for _, res := range gone {
		closeResource(res)
	}
}

// ClearAll removes all resources of all containers.
func (r *Resources) ClearAll() {
	r.mu.Lock()
	gone := r.containers
	r.containers = nil
	r.mu.Unlock()
	for _, c := range gone {
		for _, res := range c {
			closeResource(res)
		}
	}
}

// closeResource notifies a resource with waiters or files that it is no longer reachable by name.
func closeResource(res Resource) {
	if c, ok := res.(Closer); ok {
		c.Close()
	}
}
