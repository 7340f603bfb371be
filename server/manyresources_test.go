package server

import (
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/kernel"
)

// manyQueue is a resource that is described as a queue.
type manyQueue struct{}

func (manyQueue) TypeName() string { return "queue" }

func (manyQueue) Describe() kernel.Description { return kernel.Description{Kind: "queue"} }

// What observers are shown of resources is bounded, because clients choose their number and names.
func TestManyResources(t *testing.T) {
	s := start(t, cluster.ServerDef{Cluster: cluster.Spec{"worker": {0: "127.0.0.1:0"}}, Job: "worker"})
	resources := s.task.Devices[0].Resources
	for i := range maxShownResources + 1 {
		if err := kernel.CreateResource(resources, "", strconv.Itoa(i), manyQueue{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := kernel.CreateResource(resources, "", "\xff"+strings.Repeat("x", 1<<20), manyQueue{}); err != nil {
		t.Fatal(err)
	}
	st := s.metricState()
	if len(st.Queues) != maxQueues || st.Resources["queue"] != maxShownResources+2 {
		t.Errorf("%d of %d queues have metrics", len(st.Queues), st.Resources["queue"])
	}
	about, err := s.inspection.GetTask(t.Context(), &pb.GetTaskRequest{})
	if err != nil || len(about.GetResources()) != maxShownResources {
		t.Errorf("%d resources are shown, %v", len(about.GetResources()), err)
	}
	for r := range s.task.Worker.Resources() {
		if _, err := proto.Marshal(r); err != nil || len(r.GetName()) > 2<<10 {
			t.Errorf("a name of %d bytes, %v", len(r.GetName()), err)
		}
	}
}
