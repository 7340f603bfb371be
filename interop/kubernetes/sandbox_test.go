package kubernetes_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	core "k8s.io/api/core/v1"
)

// A sandbox is the network of a pod. A process that only sleeps keeps it.
type sandbox struct {
	ip   string
	keep *exec.Cmd
	link string
}

// newSandbox connects a new network to the bridge. number is the one of the pod on this node, and
// is not used again.
func newSandbox(number int) (*sandbox, error) {
	s := &sandbox{ip: fmt.Sprintf("10.244.%d.%d", 1+number/250, 1+number%250), link: fmt.Sprintf("pod%d", number)}
	s.keep = exec.Command("sleep", "infinity")
	s.keep.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := s.keep.Start(); err != nil {
		return nil, err
	}
	pid := strconv.Itoa(s.keep.Process.Pid)
	inside := []string{"nsenter", "--net", "--target", pid, "ip"}
	for _, args := range [][]string{
		{"ip", "link", "add", s.link, "type", "veth", "peer", "name", "eth0", "netns", pid},
		{"ip", "link", "set", s.link, "master", "pods", "up"},
		append(inside, "link", "set", "lo", "up"),
		append(inside, "addr", "add", s.ip+"/16", "dev", "eth0"),
		append(inside, "link", "set", "eth0", "up"),
	} {
		if err := command(args...); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

func (s *sandbox) close() error {
	err := s.keep.Process.Kill()
	_ = s.keep.Wait() // it was killed
	return err
}

// start starts a command in the network of the sandbox.
func (s *sandbox) start(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	outside, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer outside.Close()
	inside, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", s.keep.Process.Pid))
	if err != nil {
		return err
	}
	defer inside.Close()
	if err := unix.Setns(int(inside.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	started := cmd.Start()
	if err := unix.Setns(int(outside.Fd()), unix.CLONE_NEWNET); err != nil {
		return err // the thread ends with its goroutine, because it stays locked
	}
	runtime.UnlockOSThread()
	return started
}

// An image is a root folder to build and what runs without a command.
type image struct {
	entrypoint []string
	path       []string          // folders of programs
	files      map[string]string // files and folders of the image, and those on this machine
}

// build makes the root folder of a container. hosts is the file with the names of the cluster, and
// mounts has folders by their path in the container.
func (i *image) build(root, hosts string, mounts map[string]mount, readOnly bool) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if err := command("mount", "--bind", root, root); err != nil {
		return err
	}
	for path, source := range i.files {
		if err := bind(source, filepath.Join(root, path), true); err != nil {
			return err
		}
	}
	for path, source := range map[string]string{"/proc": "/proc", "/dev": "/dev", "/etc/hosts": hosts} {
		if err := bind(source, filepath.Join(root, path), false); err != nil {
			return err
		}
	}
	for path, m := range mounts {
		if err := bind(m.source, filepath.Join(root, path), m.readOnly); err != nil {
			return err
		}
	}
	if !readOnly {
		return nil
	}
	return command("mount", "-o", "remount,bind,ro", root)
}

// newFolder returns a folder that is removed at the end of the test, after everything that is
// mounted below it is unmounted: folders of this machine are among that, and must not be emptied.
func newFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weft-kubernetes-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, path := range slices.Backward(mountsBelow(t, dir)) {
			if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
				t.Errorf("unmount %s: %v", path, err)
			}
		}
		if left := mountsBelow(t, dir); len(left) > 0 {
			t.Errorf("%s stays, because of what is mounted there: %q", dir, left)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// mountsBelow returns the paths below a folder at which something is mounted, in the order in which
// it was mounted.
func mountsBelow(t *testing.T, dir string) []string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); strings.HasPrefix(fields[4], dir+"/") {
			out = append(out, fields[4])
		}
	}
	return out
}

// mount is a folder of the node that a container sees.
type mount struct {
	source   string
	readOnly bool
}

// bind makes a file or folder visible at a path.
func bind(source, path string, readOnly bool) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		if info.IsDir() {
			err = os.MkdirAll(path, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = os.WriteFile(path, nil, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if err := command("mount", "--rbind", source, path); err != nil || !readOnly {
		return err
	}
	return command("mount", "-o", "remount,bind,ro", path)
}

// process returns the command of a container that is not started yet.
func (i *image) process(root string, c *core.Container, user *core.PodSecurityContext, env map[string]string, expand func(string) string) *exec.Cmd {
	args := i.entrypoint
	if len(c.Command) > 0 {
		args = c.Command
	}
	args = append(append([]string{}, args...), c.Args...)
	for n := range args {
		args[n] = expand(args[n])
	}
	cmd := &exec.Cmd{Path: i.find(root, args[0]), Args: args, Dir: "/", Env: []string{"PATH=" + strings.Join(i.path, ":")}}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Chroot: root, Setsid: true}
	if mayChangeUser() && user != nil && user.RunAsUser != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(*user.RunAsUser), Gid: uint32(*user.RunAsGroup)}
		if user.FSGroup != nil {
			cmd.SysProcAttr.Credential.Groups = []uint32{uint32(*user.FSGroup)}
		}
	}
	return cmd
}

// find returns the path of a program in the root folder.
func (i *image) find(root, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for _, dir := range i.path {
		if _, err := os.Lstat(filepath.Join(root, dir, name)); err == nil {
			return filepath.Join(dir, name)
		}
	}
	return name
}
