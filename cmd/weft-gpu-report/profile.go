package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
)

// kernelTime is the time of all launches of a kernel in a step.
type kernelTime struct {
	name     string
	launches int
	time     time.Duration
}

// profile traces a step and returns the kernels that take the most time, the time of all of them,
// and how many there are.
func profile(session *weft.Session, step *graph.Node) (longest []kernelTime, all time.Duration, launches int, err error) {
	traced, err := session.RunTraced(context.Background(), weft.Step{Targets: []*graph.Node{step}}, nil)
	if err != nil {
		return nil, 0, 0, err
	}
	text, err := traced.Metadata.Marshal()
	if err != nil {
		return nil, 0, 0, err
	}
	var m pb.RunMetadata
	if err := proto.Unmarshal(text, &m); err != nil {
		return nil, 0, 0, err
	}
	kernels := map[string]*kernelTime{}
	for _, d := range m.GetStepStats().GetDevStats() {
		if !strings.HasSuffix(d.GetDevice(), "/stream:all") {
			continue
		}
		for _, n := range d.GetNodeStats() {
			name, _, _ := strings.Cut(n.GetTimelineLabel(), " ")
			k := kernels[name]
			if k == nil {
				k = &kernelTime{name: name}
				kernels[name] = k
			}
			took := time.Duration(n.GetAllEndRelNanos())
			k.launches++
			launches++
			k.time += took
			all += took
		}
	}
	for _, k := range kernels {
		longest = append(longest, *k)
	}
	slices.SortFunc(longest, func(a, b kernelTime) int { return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.name, b.name)) })
	return longest[:min(len(longest), mostKernels)], all, launches, nil
}

// mostKernels is the number of kernels of a step that the report has.
const mostKernels = 12

// profiled adds what a step consists of to the report.
func (e *examination) profiled(name string, r *trainingRun) {
	e.figure(e.name, "kernels of a step, "+name, float64(r.launches), "kernels")
	e.figure(e.name, "time of the kernels of a step, "+name, r.kernels.Seconds()*1e6, "µs")
	var parts []string
	for _, k := range r.longest {
		parts = append(parts, fmt.Sprintf("%s %d x %.1f µs", k.name, k.launches, k.time.Seconds()*1e6/float64(k.launches)))
	}
	e.add(e.name, "longest kernels of a step, "+name, time.Now(), strings.Join(parts, "; "), nil)
}
