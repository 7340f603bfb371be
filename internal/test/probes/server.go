package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// target is what the probes run against.
type target struct {
	weft   string // path of the program
	memory int64  // memory of each server, in bytes
}

// server is a process under test.
type server struct {
	cmd     *exec.Cmd
	address string
	log     bytes.Buffer // standard error; complete once ended is closed
	group   string       // folder of its memory group; "" if groups cannot be made
	ended   chan struct{}
	err     error // of Wait; set before ended is closed
}

// startServer starts a task on a free port of the loopback interface and waits until it serves.
func startServer(t *target, name string, more []string) (*server, error) {
	ports, err := os.MkdirTemp("", "weft-probe")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(ports)
	port := filepath.Join(ports, "port")
	args := []string{"server", "--cluster-spec=ps|127.0.0.1:0", "--job-name=ps", "--port-file=" + port}
	args = append(args, more...)
	s := &server{ended: make(chan struct{}), group: makeGroup(name, t.memory)}
	if s.group == "" {
		s.cmd = exec.Command(t.weft, append(args, fmt.Sprintf("--memory-limit=%d", t.memory/10*9))...)
	} else {
		// the shell joins the group before it becomes the server
		script := `echo $$ > "$0/cgroup.procs"; exec "$@"`
		s.cmd = exec.Command("sh", append([]string{"-c", script, s.group, t.weft}, args...)...)
	}
	s.cmd.Stderr = &s.log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	for {
		text, err := os.ReadFile(port)
		if number := strings.TrimSpace(string(text)); err == nil && number != "" {
			s.address = "127.0.0.1:" + number[strings.LastIndex(number, ":")+1:]
			return s, nil
		}
		select {
		case <-s.ended:
			return nil, fmt.Errorf("%w: %s", s.err, s.log.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// hasEnded reports whether the server has ended by itself.
func (s *server) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	case <-time.After(time.Second): // the connection ends before the process
		return false
	}
}

// stop ends the server and returns its log.
func (s *server) stop() string {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
	if s.group != "" {
		_ = os.Remove(s.group)
	}
	return s.log.String()
}

// reason says why a server has ended.
func (s *server) reason() string {
	text, _, _ := strings.Cut(s.log.String(), "\ngoroutine ")
	if at := max(strings.Index(text, "fatal error"), strings.Index(text, "panic:")); at > 0 {
		text = text[at:]
		text = text[:min(len(text), 600)]
	}
	if len(text) > 600 {
		text = text[len(text)-600:]
	}
	return strings.TrimSpace(fmt.Sprintf("%v %s", s.err, text))
}

// makeGroup makes a control group with a memory limit, below that of this process, and returns its
// folder. It returns "" if that is not possible.
func makeGroup(name string, memory int64) string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		parent, limit := "/sys/fs/cgroup", "memory.max"
		if parts[1] == "memory" {
			parent, limit = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if parts[1] != "" {
			continue
		}
		dir := filepath.Join(parent, parts[2], fmt.Sprintf("weft-probe-%d-%s", os.Getpid(), name))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		if os.WriteFile(filepath.Join(dir, limit), []byte(strconv.FormatInt(memory, 10)), 0o644) == nil {
			return dir
		}
		_ = os.Remove(dir)
	}
	return ""
}

// resident returns the memory of the process in bytes.
func (s *server) resident() int64 { return s.status("VmRSS:") }

// peak returns the most memory that the process has had.
func (s *server) peak() int64 { return s.status("VmHWM:") }

// status returns a size from /proc/PID/status.
func (s *server) status(name string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), name)
	words := strings.Fields(rest)
	if len(words) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(words[0], 10, 64)
	return n << 10
}
