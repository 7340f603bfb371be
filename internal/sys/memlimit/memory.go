// Package memlimit measures how much memory the process can still allocate, on the machine and in
// the control groups of the process. It works on Linux only.
package memlimit

import (
	"bytes"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/metrics"
	"strconv"
	"strings"
)

// reserved is the divisor of the part of memory that is left for unchecked allocations: page
// tables, stacks, small tensors and other processes.
const reserved = 32

// system is the source of the numbers.
type system struct {
	files fs.FS         // file system of the machine
	held  func() uint64 // Held, or its replacement in tests
}

var this = system{os.DirFS("/"), Held}

// Left returns the number of bytes that the process can allocate and use before the machine or a
// control group is out of memory. It is negative if more memory has been allocated than there is.
// Left reports false if the number is unknown.
func Left() (int64, bool) { return this.left() }

// Total returns the number of bytes that the machine has, or the smallest limit of the control
// groups of the process if that is less. It reports false if the number is unknown.
func Total() (int64, bool) { return this.total() }

func (s system) total() (int64, bool) {
	total := int64(math.MaxInt64)
	if info := s.table("proc/meminfo"); info["MemTotal:"] > 0 {
		total = info["MemTotal:"] << 10
	}
	for _, g := range s.groups() {
		if limit, ok := s.number(path.Join(g.dir, g.limit)); ok {
			total = min(total, limit)
		}
	}
	return total, total < math.MaxInt64
}

// Held returns the number of bytes that the process has mapped, used or not.
func Held() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

func (s system) left() (int64, bool) {
	left := int64(math.MaxInt64)
	if info := s.table("proc/meminfo"); info["MemTotal:"] > 0 {
		left = (info["MemAvailable:"] - info["MemTotal:"]/reserved) << 10
	}
	for _, g := range s.groups() {
		left = min(left, g.left(s))
	}
	return left - s.untouched(), left < math.MaxInt64
}

// untouched returns the number of bytes that the process has mapped and not yet written. The system
// counts them as available.
func (s system) untouched() int64 {
	own := s.table("proc/self/status")
	if own["RssAnon:"] == 0 { // not reported by old kernels
		return 0
	}
	return max(0, int64(s.held())-(own["RssAnon:"]+own["VmSwap:"])<<10)
}

// group is a control group that limits memory, with the file names of its version.
type group struct {
	dir, limit, usage string
	// entries of memory.stat for file caches, which can be reclaimed
	cache []string
}

// groups returns the control groups of the process. In a container, names may be those of the host;
// groups without files are skipped.
func (s system) groups() []group {
	text, err := fs.ReadFile(s.files, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var out []group
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		g := group{"sys/fs/cgroup", "memory.max", "memory.current", []string{"inactive_file", "active_file"}}
		switch {
		case strings.Contains(","+parts[1]+",", ",memory,"):
			g = group{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", []string{"total_inactive_file", "total_active_file"}}
		case parts[1] != "":
			continue
		}
		for root, at := g.dir, path.Clean("/"+parts[2]); ; at = path.Dir(at) {
			g.dir = root + strings.TrimSuffix(at, "/")
			out = append(out, g)
			if at == "/" {
				break
			}
		}
	}
	return out
}

// left returns the number of bytes that a group still allows.
func (g group) left(s system) int64 {
	limit, ok := s.number(path.Join(g.dir, g.limit))
	if !ok {
		return math.MaxInt64
	}
	usage, _ := s.number(path.Join(g.dir, g.usage))
	stat := s.table(path.Join(g.dir, "memory.stat"))
	for _, name := range g.cache {
		usage -= stat[name]
	}
	return limit - limit/reserved - max(usage, 0)
}

// number reads a file with one number. It reports false if there is no file or no limit.
func (s system) number(name string) (int64, bool) {
	text, err := fs.ReadFile(s.files, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil
}

// table reads a file with a name and a number in each line. It ignores other lines.
func (s system) table(name string) map[string]int64 {
	text, err := fs.ReadFile(s.files, name)
	if err != nil {
		return nil
	}
	out := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 {
			if n, err := strconv.ParseInt(words[1], 10, 64); err == nil {
				out[words[0]] = n
			}
		}
	}
	return out
}
