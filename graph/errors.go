package graph

import (
	"os"
	"sync"

	"github.com/weft-ml/weft/status"
)

func illegalName(name string) error {
	return status.AtNode(status.InvalidArgumentf("Illegal op name '%s'", name), name)
}

func notUnique(name string) error { return status.InvalidArgumentf("Node '%s' is not unique", name) }

// host is the name of this machine, for errors that any task of a cluster may return.
var host = sync.OnceValue(func() string {
	name, err := os.Hostname()
	if err != nil {
		return "this host"
	}
	return name
})

func notRegistered(op, node string) error {
	return status.AtNode(status.NotFoundf("Op type not registered '%s' in binary running on %s. Make sure the Op and Kernel "+
		"are registered in the binary running in this process.", op, host()), node)
}
