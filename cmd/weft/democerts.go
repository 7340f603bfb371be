package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/internal/trust/issue"
	"github.com/weft-ml/weft/server"
)

// demoCerts are the certificates of a demo, in a temporary folder.
type demoCerts struct{ dir string }

// demoLife is the life of the certificates of a demo.
const demoLife = 7 * 24 * time.Hour

// newDemoCerts makes a CA, and certificates of the tasks and of a client. The key of the CA is not
// written.
func newDemoCerts() (*demoCerts, error) {
	dir, err := os.MkdirTemp("", "weft-certs-")
	if err != nil {
		return nil, err
	}
	d := &demoCerts{dir}
	ca, pair, err := issue.NewCA("demo.local", "demo", time.Now(), demoLife)
	if err == nil {
		err = os.WriteFile(d.path("ca.pem"), pair.Cert, 0o644)
	}
	principals := map[string]trust.Principal{"client": {Role: trust.Client, Tenant: "demo", Name: "client"}}
	for i := range demoWorkers {
		principals[fmt.Sprintf("worker-%d", i)] = trust.Principal{Role: trust.Task, Task: cluster.Task{Job: "worker", Index: i}}
	}
	principals["ps-0"] = trust.Principal{Role: trust.Task, Task: cluster.Task{Job: "ps"}}
	for name, p := range principals {
		if err == nil {
			pair, err = ca.Issue(p, nil, time.Now(), demoLife)
		}
		if err == nil {
			err = pair.Write(d.path(name+".pem"), d.path(name+".key"))
		}
	}
	if err != nil {
		d.remove()
		return nil, err
	}
	return d, nil
}

func (d *demoCerts) path(name string) string { return filepath.Join(d.dir, name) }

func (d *demoCerts) remove() { os.RemoveAll(d.dir) }

// task returns the certificates of a task.
func (d *demoCerts) task(t cluster.Task) server.TLS {
	name := fmt.Sprintf("%s-%d", t.Job, t.Index)
	return server.TLS{Cert: d.path(name + ".pem"), Key: d.path(name + ".key"), CA: d.path("ca.pem")}
}

// options returns the options of the sessions of the demo's clients. They use the network, although
// the tasks are in this process.
func (d *demoCerts) options() []weft.SessionOption {
	if d == nil {
		return nil
	}
	return []weft.SessionOption{weft.WithNetwork(), weft.WithTLS(weft.TLS{
		Cert: d.path("client.pem"), Key: d.path("client.key"), CA: d.path("ca.pem"),
	})}
}
