package train

import "time"

// A trigger decides when a periodic action is due: after a number of steps or after some time.
type trigger struct {
	steps int64         // between two actions; 0 for no limit
	every time.Duration // between two actions; 0 for no limit
	now   func() time.Time

	fired bool      // at least once
	step  int64     // of the last action
	at    time.Time // of the last action
}

func newTrigger(steps int64, every time.Duration, now func() time.Time) trigger {
	if now == nil {
		now = time.Now
	}
	return trigger{steps: steps, every: every, now: now}
}

// due reports whether the action is due at a step. The first action always is.
func (t *trigger) due(step int64) bool {
	switch {
	case !t.fired:
		return true
	case step == t.step:
		return false
	}
	return t.steps > 0 && step >= t.step+t.steps || t.every > 0 && !t.now().Before(t.at.Add(t.every))
}

// fire records the action at a step. It returns the steps and the time since the last action; zero
// for the first.
func (t *trigger) fire(step int64) (steps int64, took time.Duration) {
	now := t.now()
	if t.fired {
		steps, took = step-t.step, now.Sub(t.at)
	}
	t.fired, t.step, t.at = true, step, now
	return steps, took
}
