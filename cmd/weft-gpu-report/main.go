// Command weft-gpu-report checks and measures the GPUs of a machine, and writes what it found to a
// file for the project. It needs the driver of the GPU only, neither Go nor a network.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
	_ "github.com/weft-ml/weft/internal/gpu/drivers" // what the report is about
	"github.com/weft-ml/weft/internal/sys/buildinfo"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "weft-gpu-report:", err)
		os.Exit(1)
	}
}

// options are the flags of the program.
type options struct {
	driver string
	out    string
	quick  bool
	stress int
	steps  int
	python string
	// profile is the file for the profile of the program's own time.
	profile string
	only    string
	// kernels is a regular expression for the names of the kernels to compare.
	kernels string
	// networks is a regular expression for the names of the networks to train.
	networks string
}

func run(args []string, w io.Writer) error {
	var o options
	flags := flag.NewFlagSet("weft-gpu-report", flag.ContinueOnError)
	flags.SetOutput(w)
	flags.StringVar(&o.driver, "driver", "", "driver to examine, cuda or opencl; both if empty")
	flags.StringVar(&o.out, "out", ".", "folder of the files weft-gpu-report.json and weft-gpu-report.md")
	flags.BoolVar(&o.quick, "quick", false, "leave out what takes long")
	flags.IntVar(&o.stress, "stress", 300, "rounds of each of 16 goroutines of the stress test")
	flags.IntVar(&o.steps, "steps", 300, "training steps to take the time of")
	flags.StringVar(&o.python, "python", "python3", "Python whose TensorFlow trains beside Weft")
	flags.StringVar(&o.profile, "cpuprofile", "", "file for a profile of the processor, as go tool pprof reads it")
	flags.StringVar(&o.only, "only", "", "name of the only part to run")
	flags.StringVar(&o.networks, "networks", "", "regular expression of the names of the networks to train")
	flags.StringVar(&o.kernels, "kernels", "", "regular expression of the names of the kernels to compare")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	r := &report{Started: time.Now().UTC().Truncate(time.Second), Weft: buildinfo.Read().String(), progress: w}
	drivers := []string{"cuda", "opencl"}
	if o.driver != "" {
		drivers = []string{o.driver}
	}
	found := 0
	for _, name := range drivers {
		start := time.Now()
		d, err := driver.Open(name)
		r.add(name, "open", start, "", err)
		if err != nil {
			continue
		}
		found += len(d.Devices)
		r.examine(d, o)
	}
	if err := r.write(o.out); err != nil {
		return err
	}
	switch {
	case found == 0:
		return fmt.Errorf("there is no GPU; %s says why", filepath.Join(o.out, "weft-gpu-report.md"))
	case r.Failed > 0:
		return fmt.Errorf("%d checks failed; please send %s", r.Failed, filepath.Join(o.out, "weft-gpu-report.json"))
	}
	fmt.Fprintf(w, "all checks passed; please send %s\n", filepath.Join(o.out, "weft-gpu-report.json"))
	return nil
}

// report is what the program writes.
type report struct {
	Started time.Time       `json:"started"`
	Weft    string          `json:"weft"`
	Devices []driver.Info   `json:"devices"`
	Entries []entry         `json:"entries"`
	Figures []figure        `json:"figures"`
	Failed  int             `json:"failed"`
	Skipped map[string]bool `json:"skipped,omitempty"`

	progress io.Writer
}

// entry is a check that passed or failed.
type entry struct {
	Device  string  `json:"device"`
	Name    string  `json:"name"`
	Note    string  `json:"note,omitempty"`
	Error   string  `json:"error,omitempty"`
	Seconds float64 `json:"seconds"`
}

// figure is a measured value.
type figure struct {
	Device string  `json:"device"`
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
}

func (r *report) add(device, name string, start time.Time, note string, err error) {
	e := entry{Device: device, Name: name, Note: note, Seconds: time.Since(start).Seconds()}
	if err != nil {
		e.Error = err.Error()
		r.Failed++
		fmt.Fprintf(r.progress, "%s: FAILED %s: %v\n", device, name, err)
	} else {
		fmt.Fprintf(r.progress, "%s: ok %s %s\n", device, name, note)
	}
	r.Entries = append(r.Entries, e)
}

func (r *report) figure(device, name string, value float64, unit string) {
	r.Figures = append(r.Figures, figure{device, name, value, unit})
	fmt.Fprintf(r.progress, "%s: %s: %.4g %s\n", device, name, value, unit)
}

// write makes the two files.
func (r *report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "weft-gpu-report.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "weft-gpu-report.md"))
	if err != nil {
		return err
	}
	r.markdown(f)
	return f.Close()
}

func (r *report) markdown(w io.Writer) {
	fmt.Fprintf(w, "# GPUs and Weft\n\n%s, Weft %s. %d checks, %d failed.\n\n", r.Started.Format(time.RFC3339), r.Weft, len(r.Entries), r.Failed)
	for _, d := range r.Devices {
		fmt.Fprintf(w, "- %s (%s), %s, %d MiB, %d multiprocessors, capability %d.%d\n", d.Name, d.Vendor, d.Driver, d.Memory>>20, d.Multiprocessors,
			d.Capability[0], d.Capability[1])
	}
	fmt.Fprint(w, "\n| device | figure | value | unit |\n|---|---|---:|---|\n")
	for _, f := range r.Figures {
		fmt.Fprintf(w, "| %s | %s | %.4g | %s |\n", f.Device, f.Name, f.Value, f.Unit)
	}
	fmt.Fprint(w, "\n| device | check | result |\n|---|---|---|\n")
	for _, e := range r.Entries {
		result := "ok " + e.Note
		if e.Error != "" {
			result = "**failed** " + e.Error
		}
		fmt.Fprintf(w, "| %s | %s | %s |\n", e.Device, e.Name, result)
	}
}
