package main

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/gpu/cases"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/hostgpu"
	"github.com/weft-ml/weft/internal/gpu/source"
	_ "github.com/weft-ml/weft/internal/gpu/twins" // what the kernels are compared with
	_ "github.com/weft-ml/weft/kernels"            // what the twins call
)

// familyResult is what was found of the kernels of one family.
type familyResult struct {
	kernels, cases int
	worst          float64 // units of the last place
	loading        time.Duration
	errs           []error
}

// maxErrors bounds the errors of a family that the report has.
const maxErrors = 10

// kernels runs every kernel with all its cases, and compares with the same kernels on the CPU.
func (e *examination) kernels() error {
	chosen, err := regexp.Compile(e.options.kernels)
	if err != nil {
		return err
	}
	var programs []*source.Program
	for _, p := range source.Programs() {
		if slices.ContainsFunc(p.Kernels, chosen.MatchString) {
			programs = append(programs, p)
		}
	}
	next := make(chan *source.Program)
	var mu sync.Mutex
	results := map[string]*familyResult{}
	var wg sync.WaitGroup
	start := time.Now()
	for range min(runtime.NumCPU(), 16) {
		wg.Go(func() {
			for p := range next {
				// A device of its own, since errors of devices stay.
				r := e.program(p, hostgpu.Open(hostgpu.Options{Devices: 1, Memory: 1 << 30})[0])
				mu.Lock()
				all := results[p.Family]
				if all == nil {
					all = &familyResult{}
					results[p.Family] = all
				}
				all.kernels += r.kernels
				all.cases += r.cases
				all.worst = max(all.worst, r.worst)
				all.loading += r.loading
				all.errs = append(all.errs, r.errs...)
				mu.Unlock()
			}
		})
	}
	for _, p := range programs {
		next <- p
	}
	close(next)
	wg.Wait()
	var loading time.Duration
	kernels := 0
	for family, r := range results {
		note := fmt.Sprintf("%d kernels, %d cases, at most %.3g ulp, %d failed", r.kernels, r.cases, r.worst, len(r.errs))
		var err error
		if len(r.errs) > 0 {
			err = fmt.Errorf("%s: %w", note, errors.Join(r.errs[:min(len(r.errs), maxErrors)]...))
		}
		e.add(e.name, "kernels of family "+family, start, note, err)
		loading += r.loading
		kernels += r.kernels
	}
	e.figure(e.name, "kernels", float64(kernels), "kernels")
	e.figure(e.name, "compile a program of kernels", loading.Seconds()*1e3/float64(max(len(programs), 1)), "ms")
	return nil
}

// text returns a program in the language of the device.
func (e *examination) text(p *source.Program) string {
	if e.device.Info().Language == driver.PTX {
		return p.PTX()
	}
	return p.Text()
}

// program runs the kernels of one program.
func (e *examination) program(p *source.Program, twin driver.Device) (r familyResult) {
	start := time.Now()
	m, err := e.device.Load(e.text(p))
	r.loading = time.Since(start)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("%v: %w", p.Kernels, err))
		return r
	}
	mine, err1 := e.device.NewStream()
	theirs, err2 := twin.NewStream()
	other, err3 := twin.Load("")
	if err := errors.Join(err1, err2, err3); err != nil {
		r.errs = append(r.errs, err)
		return r
	}
	r.kernels = len(p.Kernels)
	for _, c := range cases.Of(p) {
		r.cases++
		worst, err := e.compare(&c, m, mine, twin, other, theirs)
		if err != nil {
			r.errs = append(r.errs, err)
			continue
		}
		r.worst = max(r.worst, worst)
	}
	if err := errors.Join(mine.Close(), theirs.Close()); err != nil {
		r.errs = append(r.errs, err)
	}
	return r
}

func (e *examination) compare(c *cases.Case, m driver.Module, s driver.Stream, twin driver.Device, tm driver.Module, ts driver.Stream) (float64, error) {
	k, err1 := m.Kernel(c.Kernel)
	t, err2 := tm.Kernel(c.Kernel)
	if err := errors.Join(err1, err2); err != nil {
		return 0, err
	}
	got, err := cases.Run(e.device, s, k, c)
	if err != nil {
		return 0, err
	}
	want, err := cases.Run(twin, ts, t, c)
	if err != nil {
		return 0, fmt.Errorf("on the CPU: %w", err)
	}
	return cases.Compare(c, got, want)
}
