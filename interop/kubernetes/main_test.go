package kubernetes_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// insideEnv is set for the process that runs the tests in namespaces of its own.
const insideEnv = "WEFT_TEST_NAMESPACES"

func TestMain(m *testing.M) {
	if os.Getenv(insideEnv) == "" {
		os.Exit(reexec())
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// reexec runs the tests with a network, mounts and process numbers of their own. All processes that
// they leave end with them.
func reexec() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL,
	}
	inside := insideEnv + "=root"
	if os.Geteuid() != 0 {
		inside = insideEnv + "=user"
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	cmd.Env = append(os.Environ(), inside)
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "the tests need Linux with namespaces for users:", err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// mayChangeUser reports whether containers can run as the users of their security contexts.
func mayChangeUser() bool { return os.Getenv(insideEnv) == "root" }

// prepare makes the network of the node: a bridge to which the networks of pods are connected.
func prepare() error {
	for _, args := range [][]string{
		{"mount", "--make-rprivate", "/"},
		{"mount", "-t", "proc", "proc", "/proc"},
		{"ip", "link", "set", "lo", "up"},
		{"ip", "link", "add", "pods", "type", "bridge"},
		{"ip", "addr", "add", "10.244.0.1/16", "dev", "pods"},
		{"ip", "link", "set", "pods", "up"},
	} {
		if err := command(args...); err != nil {
			return err
		}
	}
	return nil
}

// command runs a command and returns an error with its output.
func command(args ...string) error {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w\n%s", args, err, out)
	}
	return nil
}
