// Package scalars keeps the course of the numbers that summary operations report, such as losses,
// for people who look at a task.
package scalars

import (
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// maxSeries is the number of tags that a Board keeps.
	maxSeries = 100
	// maxPoints is the number of points of a tag: more than a chart has pixels to tell apart.
	maxPoints = 1024
	// maxTag is the length of a tag, in bytes.
	maxTag = 256
)

// NoStep is the step of a point whose operation knows none.
const NoStep = -1

// A Point is the value of a tag at a time.
type Point struct {
	Time  time.Time
	Step  int64 // global step, or NoStep
	Value float64
}

// A Board keeps the points of tags. A tag with too many points keeps every second one of them, then
// every fourth, and so on, and always the last one. The zero Board is empty. A nil *Board keeps
// nothing. Its methods may be called concurrently.
type Board struct {
	mu     sync.Mutex
	series map[string]*series // by tag; guarded by mu
}

// series is the course of one tag.
type series struct {
	points []Point
	every  int // number of values that one point stands for
	since  int // values since the last point that was kept
	last   Point
}

// Add adds a value. Tags beyond the largest number are ignored.
func (b *Board) Add(tag string, step int64, value float64) {
	if b == nil {
		return
	}
	p := Point{time.Now(), step, value}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.series[tag]
	if s == nil {
		if len(b.series) >= maxSeries || len(tag) > maxTag {
			return
		}
		if b.series == nil {
			b.series = map[string]*series{}
		}
		s = &series{every: 1}
		b.series[strings.Clone(tag)] = s
	}
	s.add(p)
}

func (s *series) add(p Point) {
	s.last = p
	if s.since++; s.since < s.every {
		return
	}
	s.since = 0
	if len(s.points) == maxPoints {
		for i := range maxPoints / 2 {
			s.points[i] = s.points[2*i+1]
		}
		s.points = s.points[:maxPoints/2]
		s.every *= 2
	}
	s.points = append(s.points, p)
}

// A Series is the course of a tag, the oldest point first.
type Series struct {
	Tag    string
	Points []Point
}

// Series returns the tags in their order.
func (b *Board) Series() []Series {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Series, 0, len(b.series))
	for tag, s := range b.series {
		points := slices.Clone(s.points)
		if s.since > 0 {
			points = append(points, s.last)
		}
		out = append(out, Series{tag, points})
	}
	slices.SortFunc(out, func(a, b Series) int { return strings.Compare(a.Tag, b.Tag) })
	return out
}
