// Command goclient measures the latency of steps with almost no computation in a Go client.
// bench.endtoend.latency runs it against Weft and TensorFlow.
//
//	goclient -target grpc://localhost:2222 -calls 1:500,8:100,64:30
//
// With -target local the step runs in this process. The output is a JSON list with the median and
// the 99th percentile, in microseconds, for each kind of step and number of clients. Every client
// has its own session.
//
// With several targets, separated by commas, the clients take turns: -calls 8:20 -turns 100 makes
// 20 calls with each of 8 clients on each target, 100 times, in an order that is drawn for each
// turn. The times of the turns are then comparable on a machine whose speed changes.
//
// A target grpcs://host:port is reached with TLS and the client's files in -certificates:
// client.pem, client.key and ca.pem.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/examples/digits"
	"github.com/weft-ml/weft/examples/mlp"
	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/local" // registers the target
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// certificates is the folder of the flag.
var certificates string

// result is the output for one kind of step.
type result struct {
	Step    string  `json:"step"`
	Clients int     `json:"clients"`
	Median  float64 `json:"median"`
	P99     float64 `json:"p99"`
	// mean time of a call in microseconds, by turn and target; only with several targets
	Turns [][]float64 `json:"turns,omitempty"`
}

// load is a number of clients and the number of calls of each.
type load struct{ clients, calls int }

func main() {
	target := flag.String("target", "", "worker 0 of a cluster with a ps and two workers, or "+inProcess+", or a list of such")
	flag.StringVar(&certificates, "certificates", "", "folder with client.pem, client.key and ca.pem")
	turns := flag.Int("turns", 0, "turns between the targets of a list")
	calls := flag.String("calls", "1:500", "list of clients:calls, where calls is per client")
	only := flag.String("steps", "", "comma-separated kinds of steps to measure (default all but "+trainingStep+")")
	flag.Parse()
	results, err := measure(context.Background(), *target, *calls, *only, *turns)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(results)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "goclient:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, target, calls, only string, turns int) ([]result, error) {
	loads, err := parseLoads(calls)
	if err != nil {
		return nil, err
	}
	kinds, err := steps(target)
	if err != nil {
		return nil, err
	}
	names := strings.Split(only, ",")
	kinds = slices.DeleteFunc(kinds, func(s step) bool {
		if only == "" {
			return s.name == trainingStep
		}
		return !slices.Contains(names, s.name)
	})
	var out []result
	for _, l := range loads {
		for _, s := range kinds {
			if turns > 0 {
				times, err := l.takeTurns(ctx, strings.Split(target, ","), s, turns)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", s.name, err)
				}
				out = append(out, result{Step: s.name, Clients: l.clients, Turns: times})
				continue
			}
			times, err := l.run(ctx, target, s)
			if err != nil {
				return nil, fmt.Errorf("%s, %d clients: %w", s.name, l.clients, err)
			}
			slices.Sort(times)
			out = append(out, result{s.name, l.clients, micros(times, 0.5), micros(times, 0.99), nil})
		}
	}
	return out, nil
}

func micros(sorted []time.Duration, share float64) float64 {
	at := min(int(share*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[at]) / float64(time.Microsecond)
}

func parseLoads(text string) ([]load, error) {
	var out []load
	for item := range strings.SplitSeq(text, ",") {
		clients, calls, _ := strings.Cut(item, ":")
		n, err := strconv.Atoi(clients)
		if err != nil {
			return nil, err
		}
		k, err := strconv.Atoi(calls)
		if err != nil {
			return nil, err
		}
		out = append(out, load{max(n, 1), max(k, 1)})
	}
	return out, nil
}

// step is one kind of step.
type step struct {
	name  string
	graph *graph.Graph
	fetch op.Output
	feeds []op.Output
	fed   []tensor.Tensor
	init  *graph.Node // runs once; nil for none
}

const inProcess = "local"

// trainingStep is the name of a step of the network of the examples.
const trainingStep = "training"

// steps returns the kinds of steps of bench.endtoend.latency for a Go client, or the only one for
// the local target.
func steps(target string) ([]step, error) {
	one := op.NewScope()
	if target == inProcess {
		return []step{{"in process", one.Graph(), op.Const(one, float32(1)), nil, nil, nil}}, nil
	}
	constant := op.Const(one.WithDevice("/job:worker/task:0"), float32(1))

	two := op.NewScope()
	batch := op.Placeholder(two.WithDevice("/job:worker/task:0"), tensor.Float32)
	mean := op.Mean(two.WithDevice("/job:worker/task:0"), batch, op.Const(two, []int32{0, 1}))

	images, err := tensor.Zeros(tensor.Float32, tensor.Shape{100, 784})
	if err != nil {
		return nil, err
	}
	trained, err := training()
	if err != nil {
		return nil, err
	}
	return []step{
		trained,
		{"callable", one.Graph(), constant, nil, nil, nil},
		{"feed", two.Graph(), mean, []op.Output{batch}, []tensor.Tensor{images}, nil},
		hops("one hop", "/job:ps/task:0"),
		hops("three hops", "/job:ps/task:0", "/job:worker/task:1", "/job:ps/task:0"),
	}, nil
}

// training returns a step that trains the network of the examples on 100 images. The variables are
// on the parameter server.
func training() (step, error) {
	s := op.NewScope().WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{PSTasks: 1, WorkerDevice: "/job:worker/task:0"}))
	model := mlp.New(s, 100)
	update := train.Minimize(s, train.NewGradientDescent(0.01), model.Loss, nil)
	fed, err := model.Feeds(digits.New(0), 100)
	loss := op.Identity(s.WithControlDependencies(update), model.Loss)
	return step{
		trainingStep, s.Graph(), loss, []op.Output{model.X, model.Y}, []tensor.Tensor{fed[model.X], fed[model.Y]}, train.VariablesInitializer(s),
	}, err
}

// hops returns a step whose value starts on the first task and passes through the others to worker
// 0.
func hops(name string, tasks ...string) step {
	s := op.NewScope()
	x := op.RandomUniform(s.WithDevice(tasks[0]), op.Const(s.WithDevice(tasks[0]), []int32{}), tensor.Float32)
	for _, task := range append(tasks[1:], "/job:worker/task:0") {
		at := s.WithDevice(task)
		x = op.AddV2(at, x, op.Const(at, float32(1)))
	}
	return step{name, s.Graph(), x, nil, nil, nil}
}

// run runs all clients concurrently and returns the times of their calls. The first fifth of each
// client's calls is a warm-up.
func (l load) run(ctx context.Context, target string, s step) ([]time.Duration, error) {
	clients, closeSessions, err := l.open(ctx, target, s)
	if err != nil {
		return nil, err
	}
	defer closeSessions()
	return l.call(ctx, clients, s.fed)
}

// open opens a session for each client.
func (l load) open(ctx context.Context, target string, s step) (clients []*weft.Callable, closeSessions func(), err error) {
	var closers []func()
	closeSessions = func() {
		for _, c := range closers {
			c()
		}
	}
	for range l.clients {
		c, closeSession, err := open(ctx, target, s)
		if err != nil {
			closeSessions()
			return nil, nil, err
		}
		clients, closers = append(clients, c), append(closers, closeSession)
	}
	return clients, closeSessions, nil
}

// call makes the calls of all clients concurrently and returns their times without the warm-up.
func (l load) call(ctx context.Context, clients []*weft.Callable, feeds []tensor.Tensor) ([]time.Duration, error) {
	times := make([][]time.Duration, len(clients))
	errs := make([]error, len(clients))
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() { times[i], errs[i] = call(ctx, c, feeds, l.calls) })
	}
	wg.Wait()
	return slices.Concat(times...), errors.Join(errs...)
}

// open opens a session for a step.
func open(ctx context.Context, target string, s step) (c *weft.Callable, closeSession func(), err error) {
	options := []weft.SessionOption{weft.WithTimeout(30 * time.Second)}
	if address, ok := strings.CutPrefix(target, "grpcs://"); ok {
		target = "grpc://" + address
		options = append(options, weft.WithTLS(weft.TLS{
			Cert: filepath.Join(certificates, "client.pem"), Key: filepath.Join(certificates, "client.key"), CA: filepath.Join(certificates, "ca.pem"),
		}))
	}
	session, err := weft.NewSession(target, s.graph, options...)
	if err != nil {
		return nil, nil, err
	}
	if s.init != nil {
		err = session.Exec(ctx, nil, s.init)
	}
	if err == nil {
		c, err = session.Prepare(ctx, weft.Step{Feeds: s.feeds, Fetches: []op.Output{s.fetch}})
	}
	if err != nil {
		session.Close()
		return nil, nil, err
	}
	return c, func() { session.Close() }, nil
}

// takeTurns makes the calls of all clients on each target, in each turn. It returns the mean time
// of a call in microseconds, by turn and target. The order of the targets is drawn for each turn.
func (l load) takeTurns(ctx context.Context, targets []string, s step, turns int) ([][]float64, error) {
	clients := make([][]*weft.Callable, len(targets))
	for i, target := range targets {
		opened, closeSessions, err := l.open(ctx, target, s)
		if err != nil {
			return nil, err
		}
		defer closeSessions()
		clients[i] = opened
	}
	order := rand.New(rand.NewPCG(1, 2))
	out := make([][]float64, turns)
	for turn := range out {
		out[turn] = make([]float64, len(targets))
		for _, at := range order.Perm(len(targets)) {
			times, err := l.call(ctx, clients[at], s.fed)
			if err != nil {
				return nil, err
			}
			var sum time.Duration
			for _, d := range times {
				sum += d
			}
			out[turn][at] = float64(sum) / float64(len(times)) / float64(time.Microsecond)
		}
	}
	return out, nil
}

func call(ctx context.Context, c *weft.Callable, feeds []tensor.Tensor, calls int) ([]time.Duration, error) {
	out := make([]time.Duration, 0, calls)
	for range calls {
		start := time.Now()
		values, err := c.Run(ctx, feeds...)
		if err != nil {
			return nil, err
		}
		out = append(out, time.Since(start))
		for i := range values {
			values[i].Release()
		}
	}
	return out[calls/5:], nil
}
