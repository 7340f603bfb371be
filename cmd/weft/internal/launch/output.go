package launch

import (
	"bytes"
	"io"
	"os"
	"sync"
)

// tailLines is the number of last lines of a process that a report of its failure shows.
const tailLines = 5

// terminal writes whole lines of several processes to one writer.
type terminal struct {
	mu sync.Mutex
	w  io.Writer
}

func (t *terminal) writeLine(prefix string, line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// What cannot be printed is in the log file.
	_, _ = t.w.Write(append(append([]byte(prefix), line...), '\n'))
}

// output is the standard output and error of a process: a prefix and each line on the terminal, the
// bytes in a file.
type output struct {
	prefix   string
	terminal *terminal
	file     *os.File

	mu   sync.Mutex
	line []byte   // a line without its end so far; guarded by mu
	tail []string // last lines; guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	if _, err := o.file.Write(p); err != nil {
		return 0, err
	}
	for {
		before, after, found := bytes.Cut(p, []byte("\n"))
		o.line = append(o.line, before...)
		if !found {
			return n, nil
		}
		o.endLine()
		p = after
	}
}

// endLine prints the current line. The caller holds mu.
func (o *output) endLine() {
	line := bytes.TrimSuffix(o.line, []byte("\r"))
	o.terminal.writeLine(o.prefix, line)
	if len(bytes.TrimSpace(line)) > 0 {
		o.tail = append(o.tail, string(line))
		o.tail = o.tail[max(0, len(o.tail)-tailLines):]
	}
	o.line = o.line[:0]
}

// flush prints a last line without an end, and returns the last lines.
func (o *output) flush() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.line) > 0 {
		o.endLine()
	}
	return o.tail
}
