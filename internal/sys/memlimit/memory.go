// Package memlimit tells how much memory the process can still take: of the machine, and of the
// control groups that the process is in. It is known on Linux only.
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

// reserved is the part of what there is, one in so many, that is left to what nobody asks about:
// page tables, stacks, small tensors and other processes.
const reserved = 32

// system is where the numbers come from.
type system struct {
	files fs.FS         // from the root
	held  func() uint64 // as Held
}

var this = system{os.DirFS("/"), Held}

// Left returns how many bytes the process can take and use without coming to the end of the memory
// of the machine or of a control group; less than 0 if it has been promised more than there is. It
// is false if that is not known.
func Left() (int64, bool) { return this.left() }

// Held returns the bytes that the process has mapped, whether it uses them or keeps them for later.
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

// untouched returns the bytes that the process has been given and has not written to yet: the
// system counts them as available until then.
func (s system) untouched() int64 {
	own := s.table("proc/self/status")
	if own["RssAnon:"] == 0 { // an old system
		return 0
	}
	return max(0, int64(s.held())-(own["RssAnon:"]+own["VmSwap:"])<<10)
}

// group is a control group that bounds memory, in the words of one version of them.
type group struct {
	dir, limit, usage string
	// entries of memory.stat: files that are read again when they are wanted
	cache []string
}

// groups returns the groups that the process is in. Within a container, names may be those that the
// host has for them: what is not there is skipped.
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

// left returns the bytes that a group still allows.
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

// number reads a file with one number, which may not be there or say that there is no limit.
func (s system) number(name string) (int64, bool) {
	text, err := fs.ReadFile(s.files, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil
}

// table reads a file with a name and a number in each line. Other lines are left aside.
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
