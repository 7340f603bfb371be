// Command predictclient measures how fast a model server answers one request of TensorFlow
// Serving's PredictionService. bench.endtoend.serving runs it against Weft and TensorFlow.
//
//	predictclient -target localhost:8500 -request FILE -calls 1:500,8:100,64:30
//
// The file has a serialized PredictRequest. The output is a JSON list with requests per second, the
// median and the 99th percentile, in microseconds, for each number of clients. Every client has its
// own connection. The first fifth of its calls is a warm-up.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/transport/grpch2"
)

// result is the output for one number of clients.
type result struct {
	Clients int     `json:"clients"`
	Rate    float64 `json:"rate"`
	Median  float64 `json:"median"`
	P99     float64 `json:"p99"`
}

func main() {
	target := flag.String("target", "", "address of the server")
	file := flag.String("request", "", "file with a PredictRequest")
	calls := flag.String("calls", "1:500", "list of clients:calls, where calls is per client")
	flag.Parse()
	if err := measure(*target, *file, *calls); err != nil {
		fmt.Fprintln(os.Stderr, "predictclient:", err)
		os.Exit(1)
	}
}

func measure(target, file, calls string) error {
	request, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var out []result
	for load := range strings.SplitSeq(calls, ",") {
		c, n, _ := strings.Cut(load, ":")
		clients, err := strconv.Atoi(c)
		if err != nil {
			return err
		}
		each, err := strconv.Atoi(n)
		if err != nil {
			return err
		}
		r, err := run(target, request, clients, each)
		if err != nil {
			return fmt.Errorf("%d clients: %w", clients, err)
		}
		out = append(out, r)
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// run makes calls from several clients at once.
func run(target string, request []byte, clients, calls int) (result, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var warm, done sync.WaitGroup
	begin := make(chan struct{})
	times := make([][]time.Duration, clients)
	warm.Add(clients)
	for i := range clients {
		done.Go(func() {
			conn := grpch2.NewClient(target, func(ctx context.Context) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", target)
			})
			defer conn.Close()
			call := func() {
				answer := conn.Call(ctx, &grpch2.Request{
					Path: "/tensorflow.serving.PredictionService/Predict", Data: [][]byte{request}, WaitForReady: true,
					NewBody: func(size int) grpch2.Body { return grpch2.NewChunks(size) },
				})
				if answer.Code != 0 {
					cancel(fmt.Errorf("code %d: %s", answer.Code, answer.Text))
				}
			}
			for range calls/5 + 1 {
				call()
			}
			warm.Done()
			<-begin
			for range calls {
				start := time.Now()
				call()
				times[i] = append(times[i], time.Since(start))
			}
		})
	}
	warm.Wait()
	start := time.Now()
	close(begin)
	done.Wait()
	took := time.Since(start)
	if err := context.Cause(ctx); err != nil {
		return result{}, err
	}
	all := slices.Concat(times...)
	slices.Sort(all)
	micros := func(p float64) float64 {
		return float64(all[min(len(all)-1, int(p*float64(len(all))))].Nanoseconds()) / 1e3
	}
	return result{clients, float64(len(all)) / took.Seconds(), micros(0.5), micros(0.99)}, nil
}
