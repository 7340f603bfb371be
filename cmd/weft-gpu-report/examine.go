package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/drivertest"
)

// part is one group of checks and measurements of a device.
type part struct {
	name string
	slow bool // left out by -quick
	run  func(e *examination) error
}

// parts run in this order.
var parts = []part{
	{"driver", false, func(e *examination) error { e.outcomes(drivertest.Check(e.device)); return nil }},
	{"launches", false, (*examination).launches},
	{"copies", false, (*examination).copies},
	{"memory", false, (*examination).memory},
	{"products", false, func(e *examination) error { e.summary("products", drivertest.BLAS(e.device)); return e.products() }},
	{"convolutions", false, func(e *examination) error {
		e.summary("convolutions", drivertest.DNN(e.device))
		return e.convolutions()
	}},
	{"training", false, (*examination).training},
	{"kernels", true, (*examination).kernels},
	{"stress", true, func(e *examination) error { return drivertest.Stress(e.device, 16, e.options.stress) }},
}

// examination is one device that is examined.
type examination struct {
	*report
	options options
	device  driver.Device
	driver  string
	number  int
	name    string // driver and number
}

func (r *report) examine(d driver.Driver, o options) {
	for i, device := range d.Devices {
		info := device.Info()
		r.Devices = append(r.Devices, info)
		e := &examination{r, o, device, d.Name, i, fmt.Sprintf("%s:%d", d.Name, i)}
		r.add(e.name, "device", time.Now(), fmt.Sprintf("%+v", info), nil)
		for _, p := range parts {
			if o.only != "" && o.only != p.name || o.quick && p.slow {
				continue
			}
			start := time.Now()
			r.add(e.name, p.name, start, "", protect(func() error { return p.run(e) }))
		}
	}
	for _, x := range drivertest.Peers(d.Devices) {
		r.add(d.Name, x.Name, time.Now(), x.Note, x.Err)
	}
}

// protect makes an error of a panic, so that the rest of the report is made.
func protect(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

func (e *examination) outcomes(list []drivertest.Outcome) {
	for _, o := range list {
		e.add(e.name, o.Name, time.Now(), o.Note, o.Err)
	}
}

// summary adds one entry for many checks, and one for each that failed or has a note.
func (e *examination) summary(what string, list []drivertest.Outcome) {
	passed := 0
	for _, o := range list {
		if o.Err == nil && o.Note == "" {
			passed++
			continue
		}
		e.add(e.name, o.Name, time.Now(), strings.ReplaceAll(o.Note, "\n", "; "), o.Err)
	}
	e.add(e.name, what+": values", time.Now(), fmt.Sprintf("%d of %d passed", passed, len(list)), nil)
}

// memory allocates until the device has none left, and checks that it then goes on.
func (e *examination) memory() error {
	free, err := e.device.FreeMemory()
	if err != nil {
		return err
	}
	piece := int(min(e.device.Info().LargestAlloc, max(free/16, 1<<20)))
	var held []driver.Mem
	start := time.Now()
	var full error
	for range 64 {
		m, err := e.device.Alloc(piece)
		if err != nil {
			full = err
			break
		}
		held = append(held, m)
	}
	took := time.Since(start)
	for _, m := range held {
		err = errors.Join(err, e.device.Free(m))
	}
	if !errors.Is(full, driver.ErrOutOfMemory) {
		err = errors.Join(err, fmt.Errorf("after %d pieces of %d MiB: %w", len(held), piece>>20, full))
	}
	e.figure(e.name, "largest number of pieces of 1/16 of the free memory", float64(len(held)), "pieces")
	e.figure(e.name, fmt.Sprintf("allocation of %d MiB", piece>>20), took.Seconds()*1e6/float64(max(len(held), 1)), "µs")
	for _, o := range drivertest.Check(e.device) {
		if o.Err != nil {
			err = errors.Join(err, fmt.Errorf("after memory was full: %s: %w", o.Name, o.Err))
		}
	}
	return err
}
