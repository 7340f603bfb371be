package train

import (
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// progress writes a line for each epoch, and on a terminal a bar for the epoch that is running.
type progress struct {
	w        io.Writer // nil for none
	terminal bool
	epochs   int
	batches  int // of an epoch; 0 if it is not known
	shown    time.Time
	width    int // characters of the bar on the screen
}

// barInterval is the shortest time between two updates of the bar, so that a slow terminal does not
// slow training down.
const barInterval = 100 * time.Millisecond

func newProgress(w io.Writer, epochs, batches int) *progress {
	p := &progress{w: w, epochs: epochs, batches: batches}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	return p
}

// batches returns the number of batches of an epoch, if the data knows it, and otherwise 0.
func batches(d Dataset) int {
	if n, ok := d.(interface{ NumBatches() int }); ok {
		return n.NumBatches()
	}
	return 0
}

// batch shows the state after a batch.
func (p *progress) batch(epoch int, t *totals) {
	if !p.terminal || time.Since(p.shown) < barInterval {
		return
	}
	p.shown = time.Now()
	text := fmt.Sprintf("epoch %d/%d %d", epoch+1, p.epochs, t.batches)
	if p.batches > 0 {
		const cells = 20
		n := min(cells*t.batches/p.batches, cells)
		text = fmt.Sprintf("epoch %d/%d [%s%s] %d/%d", epoch+1, p.epochs, strings.Repeat("=", n), strings.Repeat(".", cells-n), t.batches, p.batches)
	}
	p.draw(text + valuesText(t.values()))
}

// draw replaces the bar.
func (p *progress) draw(text string) {
	fmt.Fprintf(p.w, "\r%s%s", text, strings.Repeat(" ", max(p.width-len(text), 0)))
	p.width = len(text)
}

// epoch writes the line of an epoch.
func (p *progress) epoch(e Epoch) {
	if p.w == nil {
		return
	}
	text := fmt.Sprintf("epoch %d/%d %.1fs%s", e.Epoch, p.epochs, e.Seconds, valuesText(e.Values))
	if p.terminal {
		p.draw(text)
		p.width = 0
		text = ""
	}
	fmt.Fprintln(p.w, text)
}

// stop ends the line of the bar.
func (p *progress) stop() {
	if p.width > 0 {
		fmt.Fprintln(p.w)
	}
}

// valuesText returns values as text, the loss first and values of validation last.
func valuesText(values map[string]float64) string {
	names := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return strings.Compare(rank(a), rank(b)) })
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, " %s %s", name, numberText(values[name]))
	}
	return b.String()
}

// numberText returns a number with at least four digits, and large ones without an exponent.
func numberText(v float64) string {
	if size := math.Abs(v); size >= 1e4 && size < 1e9 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// rank returns a key by which names of values are sorted.
func rank(name string) string {
	base, validation := strings.CutPrefix(name, "val_")
	key := "1" + base
	if base == "loss" {
		key = "0"
	}
	if validation {
		return "1" + key
	}
	return "0" + key
}
