// Probes sends a task hostile requests: over HTTP/2, gRPC and protocol buffers, in graphs, to
// kernels and files, against the counts of sessions and against the memory of its machine.
//
//	go run ./internal/test/probes -weft bin/weft [-only REGEXP]
//	go run ./internal/test/probes -weft bin/weft -random 30m [-seed N] [-first N] [-one]
//
// Each probe runs against a `weft server` of its own in a memory group of 3 GiB. Where groups
// cannot be made, the server gets the flag --memory-limit instead, and the program checks the peak
// of its resident memory. Next to each probe, a neighbor session trains. A probe passes if
//
//   - the process is alive,
//   - the requests fail with the code and the text that the probe has,
//   - no step of the neighbor fails, and none takes more than neighborStall,
//   - the memory is given back when the session of the probe is closed.
//
// With -random, it sends random programs (see package hostile) for a time: to sessions, to the
// eager service, and as damaged requests. Every 400 programs get a server of their own. All that
// holds for probes has to hold, but for the code of the errors. Run it with -first N -one to repeat
// a program.
//
// The program prints a line for each probe, with the slowdown of the neighbor and the peak memory,
// and exits with 1 if one fails.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

func main() {
	weft := flag.String("weft", "bin/weft", "the program under test")
	memory := flag.Int64("memory", 3<<10, "memory of the group of each server, in MiB")
	only := flag.String("only", "", "regular expression of the probes to run")
	verbose := flag.Bool("v", false, "print the log of the server and all errors")
	duration := flag.Duration("random", 0, "time for random programs, instead of the probes")
	seed := flag.Uint64("seed", 1, "seed of the random programs")
	first := flag.Uint64("first", 0, "number of the first random program")
	one := flag.Bool("one", false, "run one random program, and print it")
	dump := flag.Bool("dump", false, "print the stacks of a server that stalls the neighbor of random programs, or takes nearly all memory")
	keep := flag.String("keep", "", "folder for the graphs of random programs that have ended a server")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	t := &target{*weft, *memory << 20}
	var failed int
	if *duration > 0 {
		failed = runRandom(ctx, &randomRun{target: t, seed: *seed, only: *one, keep: *keep, dump: *dump}, *first, *duration)
	} else {
		failed = runAll(ctx, t, pattern, *verbose)
	}
	stop()
	if failed > 0 && *duration > 0 {
		os.Exit(1)
	}
	if failed > 0 {
		fmt.Fprintf(os.Stdout, "%d probes failed\n", failed)
		os.Exit(1)
	}
}

// runAll runs the probes whose names match, and returns the number of those that failed.
func runAll(ctx context.Context, t *target, pattern *regexp.Regexp, verbose bool) (failed int) {
	for _, p := range probes() {
		if !pattern.MatchString(p.name) || ctx.Err() != nil {
			continue
		}
		begin := time.Now()
		r := runProbe(ctx, t, p)
		result := "ok  "
		if len(r.faults) > 0 {
			result = "FAIL"
			failed++
		}
		fmt.Fprintf(os.Stdout, "%s %-22s %5.1f s, peak %5d MiB, left %4d MiB, neighbor p99 %.1f ms alone, %.1f ms with it, longest %.1f ms\n",
			result, p.name, time.Since(begin).Seconds(), r.peak>>20, r.left>>20, ms(r.alone), ms(r.during), ms(r.longest))
		for _, fault := range r.faults {
			fmt.Fprintf(os.Stdout, "       %s\n", fault)
		}
		if verbose {
			fmt.Fprintf(os.Stdout, "       error: %.600v\n%s", r.err, r.log)
		}
	}
	return failed
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
