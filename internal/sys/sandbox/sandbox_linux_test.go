package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A child process restricts itself: the restriction of a process cannot be undone.
func TestMain(m *testing.M) {
	if dir := os.Getenv("WEFT_SANDBOX_TEST"); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child enters a sandbox and returns an error if it can do too much or too little.
func child(dir string) error {
	own, other := filepath.Join(dir, "own"), filepath.Join(dir, "other")
	ro := filepath.Join(dir, "ro")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	if err := Enter(Require, Rules{ReadWrite: []string{own}, ReadOnly: []string{ro}}); err != nil {
		return err
	}
	var faults []string
	expect := func(what string, err, want error) {
		if !errors.Is(err, want) {
			faults = append(faults, fmt.Sprintf("%s: got %v, want %v", what, err, want))
		}
	}
	expect("writing to the root", os.WriteFile(filepath.Join(own, "a"), nil, 0o600), nil)
	expect("renaming", os.Rename(filepath.Join(own, "a"), filepath.Join(own, "b")), nil)
	expect("writing to a read-only root", os.WriteFile(filepath.Join(ro, "a"), nil, 0o600), unix.EACCES)
	_, err = os.ReadFile(filepath.Join(ro, "f"))
	expect("reading from a read-only root", err, nil)
	_, err = os.ReadFile(filepath.Join(other, "f"))
	expect("reading elsewhere", err, unix.EACCES)
	_, err = os.ReadFile("/proc/meminfo")
	expect("reading the size of memory", err, nil)
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // Landlock has rules for TCP alone
	_, err = plain.Listen(context.Background(), "tcp", "127.0.0.1:0")
	expect("listening", err, unix.EACCES)
	_, err = net.Dial("tcp", l.Addr().String())
	expect("connecting to another port", err, unix.EACCES)
	if faults != nil {
		return errors.New(strings.Join(faults, "\n"))
	}
	return nil
}

func TestEnter(t *testing.T) {
	// the version of the kernel's interface; 4 has rules for TCP
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1)
	if errno != 0 || abi < 4 {
		t.Skipf("the kernel has version %d of Landlock: %v", abi, errno)
	}
	dir := t.TempDir()
	for _, name := range []string{"own", "ro", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "f"), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "WEFT_SANDBOX_TEST="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestOff(t *testing.T) {
	if err := Enter(Off, Rules{}); err != nil {
		t.Error(err)
	}
	if _, err := os.ReadFile(os.Args[0]); err != nil {
		t.Errorf("after Enter(Off): %v", err)
	}
}
