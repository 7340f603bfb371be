package server

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// cgroupLimits are the files that say how much memory a container may use, of both versions of control groups.
var cgroupLimits = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// machineMemory returns the bytes of memory that this process can have at most, or 0 if that is not known.
func machineMemory() int64 {
	total := int64(0)
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) == nil {
		total = int64(uint64(info.Totalram) * uint64(info.Unit)) //nolint:unconvert // the types differ between architectures
	}
	for _, path := range cgroupLimits {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && limit > 0 && (total == 0 || limit < total) {
			total = limit
		}
	}
	return total
}
