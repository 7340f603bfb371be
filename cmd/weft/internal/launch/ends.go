package launch

import (
	"slices"
	"strings"
	"syscall"
	"time"
)

// processEnded handles the end of a process.
func (s *supervisor) processEnded(e exit) {
	p := e.process
	p.running = false
	tail := p.out.flush()
	code := status(e.err)
	if s.stopping {
		if code != 0 && code != 128+int(syscall.SIGTERM) && code != 128+int(syscall.SIGKILL) {
			s.fail(p, code, e.at, tail)
		}
		s.endServers()
		return
	}
	if code == 0 && !p.server {
		left := s.unfinished()
		if len(left) == 0 {
			s.say("%s has succeeded", p.name())
			s.drain()
			return
		}
		s.say("%s has succeeded; waiting for %s", p.name(), strings.Join(left, ", "))
		return
	}
	s.fail(p, code, e.at, tail)
	if p.restarts < s.MaxRestarts {
		p.restarts++
		s.say("%s failed with status %d; restart %d of %d", p.name(), code, p.restarts, s.MaxRestarts)
		s.restart, s.due = append(s.restart, p), append(s.due, time.After(restartDelay))
		return
	}
	s.say("%s failed with status %d: ending the others", p.name(), code)
	s.failures[len(s.failures)-1].final = true
	s.drain()
}

func (s *supervisor) fail(p *process, code int, at time.Time, tail []string) {
	s.failures = append(s.failures, failure{name: p.name(), status: code, at: at, tail: tail})
}

// unfinished names the programs of workers and the chief that have not succeeded. The rest of the
// cluster ends when there are none.
func (s *supervisor) unfinished() []string {
	var names []string
	for _, p := range s.programs {
		if p.task.Job != psJob && (p.running || slices.Contains(s.restart, p)) {
			names = append(names, p.name())
		}
	}
	return names
}

// psJob is the job of parameter servers, whose programs run until the others have ended.
const psJob = "ps"

// drain asks the programs to end. The servers end after them.
func (s *supervisor) drain() {
	if s.stopping {
		return
	}
	s.stopping = true
	s.restart, s.due = nil, nil
	s.drained = time.After(s.DrainTimeout)
	for _, p := range s.programs {
		p.signal(syscall.SIGTERM)
	}
	s.endServers()
}

// endServers ends the servers if no program runs.
func (s *supervisor) endServers() {
	for _, p := range s.programs {
		if p.running {
			return
		}
	}
	if s.killed || s.asked {
		return
	}
	s.asked = true
	for _, p := range s.servers {
		p.signal(syscall.SIGTERM)
	}
}

// kill ends all processes at once.
func (s *supervisor) kill() {
	s.stopping, s.killed, s.drained = true, true, nil
	s.restart, s.due = nil, nil
	for _, p := range s.all() {
		p.signal(syscall.SIGKILL)
	}
}

// abandon kills all processes, waits for them, and returns err.
func (s *supervisor) abandon(err error) error {
	s.kill()
	for s.anyLeft() {
		e := <-s.ended
		e.process.running = false
		e.process.out.flush()
	}
	return err
}

// nextRestart returns the channel for the first process that waits for its restart; nil if none
// does.
func (s *supervisor) nextRestart() <-chan time.Time {
	if len(s.due) == 0 {
		return nil
	}
	return s.due[0]
}

// causeWindow is how long before the end of the cluster a failure counts as its cause. Earlier ones
// were overcome by a restart.
const causeWindow = time.Minute

// causes returns the failures that ended the cluster, in the order of time: those since
// causeWindow before the first process that was not started again. The first is the likely cause of
// the others.
func (s *supervisor) causes() []failure {
	byTime := slices.SortedFunc(slices.Values(s.failures), func(a, b failure) int { return a.at.Compare(b.at) })
	final := slices.IndexFunc(byTime, func(f failure) bool { return f.final })
	if final < 0 {
		return nil
	}
	since := byTime[final].at.Add(-causeWindow)
	return slices.DeleteFunc(byTime, func(f failure) bool { return f.at.Before(since) })
}

// report prints what failed, or that nothing did.
func (s *supervisor) report(code int) {
	for i, f := range s.causes() {
		what := "then"
		if i == 0 {
			what = "root cause"
		}
		s.say("%s: %s failed at %s with status %d", what, f.name, f.at.Format("15:04:05.000"), f.status)
		if i == 0 && len(f.tail) > 0 {
			s.say("its last lines:\n    %s", strings.Join(f.tail, "\n    "))
		}
	}
	if code == 0 {
		s.say("all programs have succeeded")
	}
}
