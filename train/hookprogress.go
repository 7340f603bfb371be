package train

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/op"
)

// ProgressHook draws a progress bar on a terminal: the global step, the last step, and an estimate
// of the time that is left. What a program prints to the same terminal in between goes through the
// hook, which is an [io.Writer] that puts the text above the bar:
//
//	bar := &train.ProgressHook{Out: os.Stderr, Last: 1000}
//	log.SetOutput(bar)
//	fmt.Fprintln(bar, "a line above the bar")
type ProgressHook struct {
	BaseHook
	Out   io.Writer        // a terminal
	Last  int64            // value of the global step at the end
	Every time.Duration    // least time between two drawings; 100 ms if 0
	Now   func() time.Time // the clock; time.Now if nil

	step  *Variable
	due   trigger
	first int64 // the step at the start
	begin time.Time

	mu   sync.Mutex // orders writes to Out
	bar  string     // the bar on the terminal, "" for none; guarded by mu
	open bool       // the text before the bar does not end with a newline; guarded by mu
}

const (
	progressEvery = 100 * time.Millisecond // often enough to look continuous
	progressWidth = 40                     // characters; the line fits 80 columns
)

// Begin implements [SessionRunHook].
func (h *ProgressHook) Begin(s *op.Scope) (err error) {
	if h.Every == 0 {
		h.Every = progressEvery
	}
	h.due = newTrigger(0, h.Every, h.Now)
	h.step, err = globalStepOf(s, "ProgressHook")
	return err
}

// AfterCreateSession implements [SessionRunHook].
func (h *ProgressHook) AfterCreateSession(ctx context.Context, sess Session, _ *Coordinator) (err error) {
	h.begin = h.due.now()
	h.first, err = readStep(ctx, sess, h.step)
	return err
}

// BeforeRun implements [SessionRunHook].
func (h *ProgressHook) BeforeRun(context.Context, *RunContext) (RunArgs, error) {
	return RunArgs{Fetches: []op.Output{h.step.Value}}, nil
}

// AfterRun implements [SessionRunHook].
func (h *ProgressHook) AfterRun(_ context.Context, _ *RunContext, values RunValues) error {
	if at := stepValue(&values.Fetched[0]) + 1; h.due.due(at) {
		h.due.fire(at)
		return h.draw(at)
	}
	return nil
}

// End implements [SessionRunHook].
func (h *ProgressHook) End(ctx context.Context, sess Session) error {
	at, err := readStep(ctx, sess, h.step)
	if err == nil {
		err = h.draw(at)
	}
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bar = "" // the last drawing stays on the terminal
	_, err = fmt.Fprintln(h.Out)
	return err
}

const eraseLine = "\r\x1b[K"

// Write writes text above the bar. It may be called concurrently with steps and other writes. While
// text does not end with a newline the bar is hidden.
func (h *ProgressHook) Write(text []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(text) == 0 {
		return 0, nil
	}
	if h.bar != "" && !h.open {
		if _, err := io.WriteString(h.Out, eraseLine); err != nil {
			return 0, err
		}
	}
	n, err := h.Out.Write(text)
	if n > 0 {
		h.open = text[n-1] != '\n'
	}
	if err == nil && h.bar != "" && !h.open {
		_, err = io.WriteString(h.Out, h.bar)
	}
	return n, err
}

func (h *ProgressHook) draw(at int64) error {
	part := 1.0
	if h.Last > 0 {
		part = min(float64(at)/float64(h.Last), 1)
	}
	full := int(part * progressWidth)
	left := ""
	if done := at - h.first; done > 0 && h.Last > at {
		took := h.due.now().Sub(h.begin)
		left = fmt.Sprintf("  %v left", (took / time.Duration(done) * time.Duration(h.Last-at)).Round(time.Second))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bar = fmt.Sprintf("[%s%s] %d/%d%s", strings.Repeat("#", full), strings.Repeat(".", progressWidth-full), at, h.Last, left)
	if h.open {
		return nil
	}
	_, err := io.WriteString(h.Out, eraseLine+h.bar)
	return err
}
