package master

import (
	"fmt"
	"strings"
	"sync"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/peer"
)

// maxDifferences is the number of differences between cluster specifications that are logged.
const maxDifferences = 5

// clusterCheck compares the cluster specifications of tasks of Weft with the master's. They may
// differ on purpose, for example behind address translation, so a difference is no error.
type clusterCheck struct {
	own  cluster.Spec // nil for no check
	hash uint64       // of own

	mu     sync.Mutex
	logged map[cluster.Task]string // last differences of each task; guarded by mu
}

// clusterCheck returns the check for the tasks of a session. Those of a cluster that the session
// has brought are not compared.
func (s *session) clusterCheck() *clusterCheck {
	if s.ownCluster {
		return &clusterCheck{}
	}
	return &s.master.clusters
}

// ask makes a request ask for the task's specification if it is another.
func (c *clusterCheck) ask(req *pb.GetStatusRequest) {
	if c.own != nil {
		peer.AskCluster(req, c.hash)
	}
}

// differences describes what a task's specification has otherwise than the master's. It returns ""
// if there is nothing new to log.
func (c *clusterCheck) differences(task cluster.Task, resp *pb.GetStatusResponse) string {
	theirs, err := peer.ClusterOf(resp)
	var text string
	switch {
	case err != nil:
		text = err.Error()
	case theirs != nil:
		text = strings.Join(compareClusters(c.own, theirs), "; ")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.logged[task] == text {
		return ""
	}
	if c.logged == nil {
		c.logged = map[cluster.Task]string{}
	}
	c.logged[task] = text
	return text
}

// compareClusters lists the tasks that both specifications have with different addresses, at most
// maxDifferences. A task that one of them lacks is no mistake: a task needs to know only those that
// it calls.
func compareClusters(own, theirs cluster.Spec) []string {
	var out []string
	for _, t := range own.Tasks() {
		here, there := own.Address(t), theirs.Address(t)
		if there == "" || here == there {
			continue
		}
		if len(out) == maxDifferences {
			return append(out, "and others")
		}
		out = append(out, fmt.Sprintf("%v has the address %s there and %s here", t, there, here))
	}
	return out
}
