package guides

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/internal/trust/issue"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/train"
)

func trainOnCluster(ctx context.Context, def cluster.ServerDef, certs, path string) (*train.History, error) {
	file := func(name string) string { return filepath.Join(certs, name) }
	own := fmt.Sprintf("%s-%d", def.Job, def.Task)
	s, err := server.New(def, server.WithTLS(server.TLS{Cert: file(own + ".pem"), Key: file(own + ".key"), CA: file("ca.pem")}))
	if err != nil {
		return nil, err
	}
	if def.Job == "ps" {
		return nil, s.Run(ctx)
	}
	defer func() { _ = s.Shutdown(context.WithoutCancel(ctx)) }()
	if err := s.Start(); err != nil {
		return nil, err
	}

	table, err := data.ReadCSV(path, data.CSV{Label: "species", Ignore: []string{"id"}})
	if err != nil {
		return nil, err
	}
	training, validation := table.Dataset().Split(0.8, 1)
	m := &nn.Model{
		Network: nn.Sequential{&nn.Dense{Units: 16, Activation: nn.ReLU}, &nn.Dense{Units: len(table.Classes)}},
		Loss:    nn.SparseCategoricalCrossentropy{FromLogits: true},
	}
	client := weft.TLS{Cert: file("research-alice.pem"), Key: file("research-alice.key"), CA: file("ca.pem")}
	part := training.Shard(len(def.Cluster["worker"]), def.Task)
	return train.Fit(ctx, m, part.Shuffle(150, 1).Batch(16), train.FitOptions{
		Epochs: 10, Optimizer: train.NewAdam(0.02), Seed: 1, Validation: validation.Batch(30),
		Cluster: &train.FitCluster{Spec: def.Cluster, Task: def.Task, Sync: true},
		Session: []weft.SessionOption{weft.WithTLS(client)},
	})
}

// writeCertificates does what weft cert does for the tasks of a cluster and a client.
func writeCertificates(t *testing.T, tasks ...cluster.Task) (dir string) {
	t.Helper()
	dir = t.TempDir()
	ca, pair, err := issue.NewCA("weft", "cluster", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, pair issue.Pair) {
		if err := pair.Write(filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")); err != nil {
			t.Fatal(err)
		}
	}
	write("ca", pair)
	principals := map[string]trust.Principal{"research-alice": {Role: trust.Client, Tenant: "research", Name: "alice"}}
	for _, task := range tasks {
		principals[fmt.Sprintf("%s-%d", task.Job, task.Index)] = trust.Principal{Role: trust.Task, Task: task}
	}
	for name, p := range principals {
		pair, err := ca.Issue(p, nil, time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		write(name, pair)
	}
	return dir
}

// TestTrainOnCluster runs the program as a parameter server and two workers.
func TestTrainOnCluster(t *testing.T) {
	listen, err := server.StartCluster(map[string]int{"ps": 1, "worker": 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	spec := listen.Spec() // free ports
	if err := listen.Close(); err != nil {
		t.Fatal(err)
	}
	workers := []cluster.Task{{Job: "worker"}, {Job: "worker", Index: 1}}
	certs := writeCertificates(t, append(workers, cluster.Task{Job: "ps"})...)
	serving, stop := context.WithCancel(t.Context())
	var ps, others sync.WaitGroup
	ps.Go(func() {
		def := cluster.ServerDef{Cluster: spec, Job: "ps"}
		if _, err := trainOnCluster(serving, def, certs, "testdata/flowers.csv"); err != nil && serving.Err() == nil {
			t.Error(err)
		}
	})
	for _, task := range workers {
		others.Go(func() {
			def := cluster.ServerDef{Cluster: spec, Job: task.Job, Task: task.Index}
			history, err := trainOnCluster(t.Context(), def, certs, "testdata/flowers.csv")
			if err != nil {
				t.Error(task, err)
				return
			}
			if loss := history.Last()["val_loss"]; task.Index == 0 && !(loss > 0 && loss < 0.9) {
				t.Errorf("the loss is %v", loss)
			}
		})
	}
	others.Wait()
	stop()
	ps.Wait()
}
