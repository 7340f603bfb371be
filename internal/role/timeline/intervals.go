package timeline

import (
	"cmp"
	"slices"
	"time"
)

// interval is a time with an end.
type interval struct{ start, end time.Duration }

// intervals are sorted and do not overlap.
type intervals []interval

// union returns the times that are in one of the intervals.
func union(in []interval) intervals {
	slices.SortFunc(in, func(a, b interval) int { return cmp.Compare(a.start, b.start) })
	var out intervals
	for _, i := range in {
		switch n := len(out); {
		case i.end <= i.start:
		case n > 0 && i.start <= out[n-1].end:
			out[n-1].end = max(out[n-1].end, i.end)
		default:
			out = append(out, i)
		}
	}
	return out
}

// without returns the times of a that are not in b.
func (a intervals) without(b intervals) intervals {
	var out intervals
	for _, i := range a {
		for len(b) > 0 && b[0].end <= i.start {
			b = b[1:]
		}
		at := i.start
		for _, hole := range b {
			if hole.start >= i.end {
				break
			}
			if hole.start > at {
				out = append(out, interval{at, hole.start})
			}
			at = max(at, hole.end)
		}
		if at < i.end {
			out = append(out, interval{at, i.end})
		}
	}
	return out
}

// total returns the sum of the lengths.
func (a intervals) total() time.Duration {
	var out time.Duration
	for _, i := range a {
		out += i.end - i.start
	}
	return out
}
