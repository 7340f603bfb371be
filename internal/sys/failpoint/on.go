//go:build failpoints

package failpoint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Enabled tells whether places can fail.
const Enabled = true

// Injected is the error of the action "error".
var Injected = errors.New("injected")

// Sleep is how long a place sleeps.
const Sleep = 100 * time.Millisecond

// hook is called by every place; nil for nothing.
var hook atomic.Pointer[func(place string) error]

func init() {
	if list := os.Getenv("WEFT_FAILPOINTS"); list != "" {
		f, err := parse(list)
		if err != nil {
			panic(err)
		}
		hook.Store(&f)
	}
}

// Hit returns the error with which a place is to fail, or nil. It may sleep or panic instead.
func Hit(place string) error {
	if f := hook.Load(); f != nil {
		return (*f)(place)
	}
	return nil
}

// Set makes every place call f, until restore is called. f may be called concurrently.
func Set(f func(place string) error) (restore func()) {
	before := hook.Swap(&f)
	return func() { hook.Store(before) }
}

// Do does what an action of WEFT_FAILPOINTS says.
func Do(action, place string) error {
	switch action {
	case "error":
		return fmt.Errorf("failpoint %s: %w", place, Injected)
	case "eio":
		return syscall.EIO
	case "enospc":
		return syscall.ENOSPC
	case "sleep":
		time.Sleep(Sleep)
		return nil
	}
	panic("failpoint " + place)
}

// rule is what one place does.
type rule struct {
	action      string
	probability float64
}

func parse(list string) (func(place string) error, error) {
	rules := map[string]rule{}
	for item := range strings.SplitSeq(list, ",") {
		place, what, ok := strings.Cut(item, "=")
		action, odds, _ := strings.Cut(what, ":")
		probability, err := strconv.ParseFloat(odds, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("WEFT_FAILPOINTS: %q is not PLACE=ACTION:PROBABILITY", item)
		}
		rules[place] = rule{action, probability}
	}
	return func(place string) error {
		if r, ok := rules[place]; ok && rand.Float64() < r.probability {
			return Do(r.action, place)
		}
		return nil
	}, nil
}
