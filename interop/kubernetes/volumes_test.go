package kubernetes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// volumes are the folders of a pod's volumes, by name.
type volumes struct {
	client kubernetes.Interface
	pod    *core.Pod
	dir    string // of the pod
	claims string // folder of all persistent volumes
}

// mounts returns the folders that a container sees, by path.
func (v *volumes) mounts(ctx context.Context, c *core.Container) (map[string]mount, error) {
	out := map[string]mount{}
	for _, m := range c.VolumeMounts {
		dir, err := v.folder(ctx, m.Name)
		if err != nil {
			return nil, err
		}
		out[m.MountPath] = mount{source: dir, readOnly: m.ReadOnly}
	}
	return out, nil
}

// folder returns the folder of a volume, with the contents that it has in the API server.
func (v *volumes) folder(ctx context.Context, name string) (string, error) {
	for _, vol := range v.pod.Spec.Volumes {
		if vol.Name != name {
			continue
		}
		dir := filepath.Join(v.dir, "volumes", name)
		var files map[string][]byte
		var err error
		switch {
		case vol.EmptyDir != nil:
		case vol.PersistentVolumeClaim != nil:
			dir = filepath.Join(v.claims, v.pod.Namespace, vol.PersistentVolumeClaim.ClaimName)
		case vol.Secret != nil:
			files, err = v.secret(ctx, vol.Secret.SecretName, vol.Secret.Items)
		case vol.ConfigMap != nil:
			files, err = v.configMap(ctx, vol.ConfigMap.Name, vol.ConfigMap.Items)
		case vol.Projected != nil:
			files, err = v.projected(ctx, vol.Projected)
		default:
			err = fmt.Errorf("volume %s is of a kind that the stand-in does not know", name)
		}
		if err != nil {
			return "", err
		}
		return dir, v.write(dir, files)
	}
	return "", fmt.Errorf("there is no volume %s", name)
}

// write writes the files of a volume for the group of the pod.
func (v *volumes) write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o440); err != nil {
			return err
		}
	}
	if group := v.pod.Spec.SecurityContext.FSGroup; group != nil && mayChangeUser() {
		if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, -1, int(*group))
		}); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o2775)
}

func (v *volumes) projected(ctx context.Context, p *core.ProjectedVolumeSource) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, source := range p.Sources {
		if source.Secret == nil {
			return nil, fmt.Errorf("the stand-in projects secrets only")
		}
		files, err := v.secret(ctx, source.Secret.Name, source.Secret.Items)
		if err != nil {
			return nil, err
		}
		for name, data := range files {
			out[name] = data
		}
	}
	return out, nil
}

func (v *volumes) secret(ctx context.Context, name string, items []core.KeyToPath) (map[string][]byte, error) {
	secret, err := v.client.CoreV1().Secrets(v.pod.Namespace).Get(ctx, name, meta.GetOptions{})
	if err != nil {
		return nil, err
	}
	return pick(secret.Data, items)
}

func (v *volumes) configMap(ctx context.Context, name string, items []core.KeyToPath) (map[string][]byte, error) {
	m, err := v.client.CoreV1().ConfigMaps(v.pod.Namespace).Get(ctx, name, meta.GetOptions{})
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	for key, value := range m.Data {
		data[key] = []byte(value)
	}
	return pick(data, items)
}

// pick returns the keys that a volume names, or all if it names none.
func pick(data map[string][]byte, items []core.KeyToPath) (map[string][]byte, error) {
	if len(items) == 0 {
		return data, nil
	}
	out := map[string][]byte{}
	for _, item := range items {
		value, ok := data[item.Key]
		if !ok {
			return nil, fmt.Errorf("key %s is missing", item.Key)
		}
		out[item.Path] = value
	}
	return out, nil
}
