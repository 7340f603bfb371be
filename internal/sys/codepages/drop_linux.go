package codepages

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-ml/weft/internal/sys/onefile"
)

// Drop unmaps the code and the constants of the program, and returns the number of bytes that were
// resident. It leaves out mappings with changed pages, such as those of relocated programs and of
// programs with breakpoints.
func Drop() (int64, error) {
	exe, err := onefile.Executable()
	if err != nil {
		return 0, err
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	regions, err := unchanged(f, exe)
	if err != nil {
		return 0, err
	}
	var dropped int64
	for _, r := range regions {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, unix.MADV_DONTNEED); errno != 0 {
			return dropped, fmt.Errorf("madvise: %w", errno)
		}
		dropped += r.resident
	}
	return dropped, nil
}

// region is a mapping of the program.
type region struct {
	start, end uintptr
	resident   int64 // in bytes
}

// unchanged returns the mappings of a file that cannot be written and have no page of their own, in
// the format of /proc/PID/smaps.
func unchanged(smaps io.Reader, file string) ([]region, error) {
	var out []region
	var current *region // nil in a mapping that is left out
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		line := lines.Text()
		key, value, _ := strings.Cut(line, ":")
		switch {
		case strings.Contains(key, " "), strings.Contains(key, "-"): // the first line of a mapping
			current = nil
			if r, ok := header(line, file); ok {
				out = append(out, r)
				current = &out[len(out)-1]
			}
		case current == nil:
		case key == "Rss":
			current.resident = kilobytes(value)
		case key == "Anonymous" && kilobytes(value) > 0:
			out, current = out[:len(out)-1], nil
		}
	}
	return out, lines.Err()
}

// header returns the region of the first line of a mapping, such as
// "00400000-0155d000 r-xp 00000000 fe:00 1234 /usr/bin/weft", if it is one of the file and cannot
// be written.
func header(line, file string) (region, bool) {
	var r region
	var mode, offset, device string
	var inode uint64
	if n, _ := fmt.Sscanf(line, "%x-%x %s %s %s %d", &r.start, &r.end, &mode, &offset, &device, &inode); n != 6 {
		return r, false
	}
	return r, strings.HasSuffix(line, " "+file) && len(mode) == 4 && mode[0] == 'r' && mode[1] == '-' && mode[3] == 'p'
}

// kilobytes returns the number of bytes of a value such as "  12 kB".
func kilobytes(value string) int64 {
	var n int64
	_, _ = fmt.Sscanf(value, "%d", &n) // 0 if there is no number
	return n << 10
}
