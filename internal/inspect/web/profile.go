package web

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"strings"
	"time"
)

// The pages of profiles have the paths and parameters of net/http/pprof, so that "go tool pprof"
// and "go tool trace" read them. That package is not used, because it takes 0.8 MiB of the memory
// of every task.

const (
	// defaultProfile and defaultTrace are how long the CPU profile and the trace last without the
	// parameter seconds, and maxProfile is the longest time.
	defaultProfile = 30 * time.Second
	defaultTrace   = time.Second
	maxProfile     = 10 * time.Minute
)

// serveProfiles lists the profiles.
func serveProfiles(w http.ResponseWriter, _ *http.Request) {
	var text strings.Builder
	text.WriteString("profile?seconds=30  CPU profile\ntrace?seconds=1     execution trace\ncmdline             the command line\n")
	for _, p := range pprof.Profiles() {
		fmt.Fprintf(&text, "%-19s %d entries (?debug=1 for text)\n", p.Name(), p.Count())
	}
	writeText(w, http.StatusOK, text.String())
}

// serveProfile writes the profile in the path.
func serveProfile(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	p := pprof.Lookup(name)
	if p == nil {
		writeText(w, http.StatusNotFound, "there is no profile "+strconv.Quote(name)+"\n")
		return
	}
	if name == "heap" && r.FormValue("gc") == "1" {
		runtime.GC()
	}
	debug, _ := strconv.Atoi(r.FormValue("debug")) // 0 if it is not a number
	if debug != 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	} else {
		startFile(w, name)
	}
	_ = p.WriteTo(w, debug) // the client may have gone
}

// startFile sets the headers of a binary response.
func startFile(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
}

func serveCommandLine(w http.ResponseWriter, _ *http.Request) {
	writeText(w, http.StatusOK, strings.Join(os.Args, "\x00"))
}

func serveCPU(w http.ResponseWriter, r *http.Request) {
	startFile(w, "profile")
	if err := pprof.StartCPUProfile(w); err != nil {
		refuseProfile(w, err)
		return
	}
	wait(r.Context(), r, defaultProfile)
	pprof.StopCPUProfile()
}

func serveTrace(w http.ResponseWriter, r *http.Request) {
	startFile(w, "trace")
	if err := trace.Start(w); err != nil {
		refuseProfile(w, err)
		return
	}
	wait(r.Context(), r, defaultTrace)
	trace.Stop()
}

// refuseProfile answers a request while another one profiles the process.
func refuseProfile(w http.ResponseWriter, err error) {
	w.Header().Del("Content-Disposition")
	writeText(w, http.StatusConflict, err.Error()+"\n")
}

// wait waits for the seconds of a request, or until the client has gone.
func wait(ctx context.Context, r *http.Request, usual time.Duration) {
	d := usual
	if seconds, err := strconv.ParseFloat(r.FormValue("seconds"), 64); err == nil && seconds > 0 {
		d = time.Duration(min(seconds, maxProfile.Seconds()) * float64(time.Second))
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
