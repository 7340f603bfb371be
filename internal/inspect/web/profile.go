package web

import (
	"fmt"
	"io"
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
	// parameter seconds, and maxProfile is the longest time. A busy task writes about 10 MiB of
	// trace in a second.
	defaultProfile = 30 * time.Second
	defaultTrace   = time.Second
	maxProfile     = 5 * time.Minute
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
	serveTimed(w, r, "profile", defaultProfile, pprof.StartCPUProfile, pprof.StopCPUProfile)
}

func serveTrace(w http.ResponseWriter, r *http.Request) {
	serveTimed(w, r, "trace", defaultTrace, trace.Start, trace.Stop)
}

// serveTimed writes a profile that takes the seconds of the request, or ends when the client has
// gone.
func serveTimed(w http.ResponseWriter, r *http.Request, name string, usual time.Duration, start func(io.Writer) error, stop func()) {
	d, err := secondsOf(r, usual)
	if err != nil {
		writeText(w, http.StatusBadRequest, err.Error()+"\n")
		return
	}
	// The server notices by reading that the client has gone. At the deadline for the request it
	// would take the client for gone.
	// It fails in tests, which have no connection.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(d + readTimeout))
	startFile(w, name)
	if err := start(w); err != nil {
		refuseProfile(w, err)
		return
	}
	defer stop()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

// refuseProfile answers a request while another one profiles the process.
func refuseProfile(w http.ResponseWriter, err error) {
	w.Header().Del("Content-Disposition")
	writeText(w, http.StatusConflict, err.Error()+"\n")
}

// secondsOf returns the time of the parameter seconds, or the usual one without it.
func secondsOf(r *http.Request, usual time.Duration) (time.Duration, error) {
	text := r.FormValue("seconds")
	if text == "" {
		return usual, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds > 0 && seconds <= maxProfile.Seconds()) { // also not NaN
		return 0, fmt.Errorf("seconds=%q is not a number above 0 and at most %v", text, maxProfile.Seconds())
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
