package memlimit

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

// files describes a machine with 32 GiB. 20 GiB are available.
func files(more ...string) fstest.MapFS {
	out := fstest.MapFS{
		"proc/meminfo":     {Data: []byte("MemTotal:       33554432 kB\nMemFree:         1048576 kB\nMemAvailable:   20971520 kB\n")},
		"proc/self/status": {Data: []byte("Name:\tweft\nVmRSS:\t 3145728 kB\nRssAnon:\t 2097152 kB\nRssFile:\t 1048576 kB\nVmSwap:\t 1048576 kB\n")},
	}
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
	}
	return out
}

const gib = 1 << 30

func TestLeft(t *testing.T) {
	v2 := []string{
		"proc/self/cgroup", "0::/pod/task\n", "sys/fs/cgroup/pod/task/memory.max", "max\n", "sys/fs/cgroup/pod/memory.max", "8589934592\n",
		"sys/fs/cgroup/pod/memory.current", "6442450944\n", "sys/fs/cgroup/pod/memory.stat", "anon 1\nfile 9\nactive_file 1073741824\ninactive_file 1073741824\n",
	}
	for _, tt := range []struct {
		name  string
		held  uint64
		fs    fstest.MapFS
		want  float64 // GiB
		total float64 // GiB
	}{
		{"a machine", 0, files(), 19, 32},
		// 2 are, and 1 is swapped
		{"memory that was given and not written to", 8 * gib, files(), 14, 32},
		{"more is promised than there is", 40 * gib, files(), -18, 32},
		{"a group above the own one", 0, files(v2...), 8 - 8./32 - 4, 8},
		{"a group with little in a machine with less", 0, files("proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 2097152 kB\n", "proc/self/cgroup", "0::/\n",
			"sys/fs/cgroup/memory.max", "3221225472", "sys/fs/cgroup/memory.current", "0"), 2 - 4./32, 3},
		{"a group without limit", 0, files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "max\n"), 19, 32},
		{"the first version, with the host's name", 0, files("proc/self/cgroup", "5:cpu,cpuacct:/docker/1\n4:hugetlb,memory:/docker/1\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296", "sys/fs/cgroup/memory/memory.usage_in_bytes", "3221225472",
			"sys/fs/cgroup/memory/memory.stat", "cache 5\ninactive_file 7\ntotal_inactive_file 1073741824\ntotal_active_file 0\n"), 4 - 4./32 - 2, 4},
		{"the first version, without limit", 0, files("proc/self/cgroup", "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"), 19, 32},
		{"only a group is known", 0, fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/\n")}, "sys/fs/cgroup/memory.max": {Data: []byte("1073741824\n")}}, 1 - 1./32, 1},
	} {
		left, known := system{tt.fs, func() uint64 { return tt.held }}.left()
		if got := float64(left) / gib; !known || math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v GiB, %v, want %v", tt.name, got, known, tt.want)
		}
		total, known := system{files: tt.fs}.total()
		if got := float64(total) / gib; !known || math.Abs(got-tt.total) > 1e-9 {
			t.Errorf("%s: %v GiB in all, %v, want %v", tt.name, got, known, tt.total)
		}
	}
	if left, known := (system{fstest.MapFS{}, Held}).left(); known {
		t.Errorf("without files: %d", left)
	}
}

// Memory counts from its allocation, not from the first write.
func TestHeld(t *testing.T) {
	const size = 256 << 20
	debug.FreeOSMemory()
	before := Held()
	room := make([]byte, size)
	if after := Held(); after < before+size*3/4 || after > before+4*size {
		t.Errorf("%d bytes are held after %d, with %d more", after, before, size)
	}
	runtime.KeepAlive(room)
}

// The numbers of this machine are plausible, if there are any.
func TestThisMachine(t *testing.T) {
	left, known := Left()
	if known != (runtime.GOOS == "linux") || known && (left < -1<<45 || left > 1<<45) {
		t.Errorf("%d bytes are left, %v", left, known)
	}
}
