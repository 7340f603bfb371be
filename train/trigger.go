package train

import "time"

// trigger says when something is due again: after so many steps, or after so much time.
type trigger struct {
	steps int64 // 0 for never
	every time.Duration
	now   func() time.Time

	fired bool // at least once
	step  int64
	at    time.Time
}

func newTrigger(steps int64, every time.Duration, now func() time.Time) trigger {
	if now == nil {
		now = time.Now
	}
	return trigger{steps: steps, every: every, now: now}
}

// due reports whether it is time at a step; the first time is always.
func (t *trigger) due(step int64) bool {
	switch {
	case !t.fired:
		return true
	case step == t.step:
		return false
	}
	return t.steps > 0 && step >= t.step+t.steps || t.every > 0 && !t.now().Before(t.at.Add(t.every))
}

// fire notes that it was done at a step, and returns what has passed since the time before; zero
// for the first.
func (t *trigger) fire(step int64) (steps int64, took time.Duration) {
	now := t.now()
	if t.fired {
		steps, took = step-t.step, now.Sub(t.at)
	}
	t.fired, t.step, t.at = true, step, now
	return steps, took
}
