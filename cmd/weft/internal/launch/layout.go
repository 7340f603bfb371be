// Package launch runs a cluster on one machine, or on those of a job of a cluster manager: Weft's
// servers, and a program once for each task that runs it.
package launch

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/cluster"
)

// A Layout says which jobs have servers of Weft and which run the program.
type Layout struct {
	Name    string
	Servers []string
	Program []string
	Help    string
}

// Layouts lists the layouts; the first is the default.
var Layouts = []Layout{
	{"workers", []string{"ps"}, []string{"chief", "worker"}, "Weft serves the parameter servers; the program is each worker, with a server of its own (tf.train.Server, Estimator)"},
	{"clients", []string{"ps", "chief", "worker"}, []string{"chief", "worker"}, "Weft serves all tasks; the program runs once for each worker and connects to {target}"},
	{"coordinator", []string{"ps", "worker"}, []string{"chief"}, "Weft serves parameter servers and workers; the program runs once, as the chief (ParameterServerStrategy)"},
	{"program", nil, []string{"ps", "chief", "worker"}, "the program is every task, the parameter servers included"},
}

// FindLayout returns the layout with a name.
func FindLayout(name string) (Layout, error) {
	var names []string
	for _, l := range Layouts {
		if l.Name == name {
			return l, nil
		}
		names = append(names, l.Name)
	}
	return Layout{}, fmt.Errorf("unknown layout %q; the layouts are %s", name, strings.Join(names, ", "))
}

// serves reports whether a job has servers of Weft.
func (l *Layout) serves(job string) bool { return slices.Contains(l.Servers, job) }

// runs reports whether a job runs the program.
func (l *Layout) runs(job string) bool { return slices.Contains(l.Program, job) }

// NeedsChief reports whether the chief alone runs the program.
func (l *Layout) NeedsChief() bool { return slices.Equal(l.Program, []string{"chief"}) }

// newSpec returns a cluster with the given numbers of tasks, at free ports of a host. A port is
// free when newSpec returns; a process that starts at the same time may take it.
func newSpec(host string, tasks map[string]int) (cluster.Spec, error) {
	spec := cluster.Spec{}
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // only its port was needed
		}
	}()
	for job, n := range tasks {
		var addresses []string
		for range n {
			l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
			if err != nil {
				return nil, fmt.Errorf("no free port: %w", err)
			}
			listeners = append(listeners, l)
			addresses = append(addresses, l.Addr().String())
		}
		if n > 0 {
			spec[job] = cluster.Dense(addresses...)
		}
	}
	return spec, nil
}

// placementOrder is the order in which the tasks of jobs are placed on machines.
var placementOrder = []string{psJob, "chief", "worker"}

// spread returns a cluster with the given numbers of tasks on several machines, one after the
// other. The tasks of a machine have successive ports from the given one.
func spread(hosts []string, port int, tasks map[string]int) (cluster.Spec, error) {
	spec := cluster.Spec{}
	placed := 0
	for _, job := range placementOrder {
		var addresses []string
		for range tasks[job] {
			at := port + placed/len(hosts)
			if at > math.MaxUint16 {
				return nil, fmt.Errorf("the port %d of %s/%d does not exist", at, job, len(addresses))
			}
			addresses = append(addresses, net.JoinHostPort(hosts[placed%len(hosts)], strconv.Itoa(at)))
			placed++
		}
		if len(addresses) > 0 {
			spec[job] = cluster.Dense(addresses...)
		}
	}
	return spec, spec.Validate()
}
