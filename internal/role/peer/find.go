package peer

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/internal/proto/pb"
)

// A Questioner asks a task whether it has a method.
type Questioner interface {
	// HasMethod calls a method with a request and reports whether the task knows the method. It
	// returns an error if the task has not answered.
	HasMethod(ctx context.Context, method string, request []byte) (bool, error)
}

// A question is a call that is harmless on every release: it names a session or a context that does
// not exist, or it is refused for what it lacks.
type question struct {
	method  string
	request []byte
	since   Release // first release that has the method
}

// questions are asked from the newest release to the oldest. Releases without any of the methods
// are known by the names of their devices.
var questions = []question{
	{method: "/tensorflow.eager.EagerService/RunComponentFunction", since: TF23},
	{method: "/tensorflow.WorkerService/MarkRecvFinished", since: TF113},
	{method: "/tensorflow.WorkerService/GetStepSequence", since: TF19},
	{method: "/tensorflow.WorkerService/DeleteWorkerSession", request: unusedSession, since: TF15},
}

// shortNamesQuestion is asked if the names of the devices are short. The task serves clients, too.
var shortNamesQuestion = question{method: "/tensorflow.MasterService/PartialRunSetup", since: TF10}

// unusedSession is a DeleteWorkerSessionRequest with a handle that no master has given.
var unusedSession = protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "weft-asks-for-methods")

// Since returns the first release that has a method for which [Find] asks.
func Since(method string) Release {
	for _, q := range append(slices.Clip(questions), shortNamesQuestion) {
		if q.method == method {
			return q.since
		}
	}
	return Unknown
}

// Find returns the release of the task that has answered GetStatus.
func Find(ctx context.Context, status *pb.GetStatusResponse, task Questioner) (Release, error) {
	ask, otherwise := questions, TF14
	switch {
	case IsMarked(status):
		return Weft, nil
	case hasShortNames(status):
		ask, otherwise = []question{shortNamesQuestion}, TF012
	}
	for i := range ask {
		switch has, err := task.HasMethod(ctx, ask[i].method, ask[i].request); {
		case err != nil:
			return Unknown, err
		case has:
			return ask[i].since, nil
		}
	}
	return otherwise, nil
}

// hasShortNames reports whether a device has a name such as "/job:ps/replica:0/task:0/cpu:0".
func hasShortNames(status *pb.GetStatusResponse) bool {
	for _, d := range status.GetDeviceAttributes() {
		if name := d.GetName(); strings.HasPrefix(name, "/job:") && !strings.Contains(name, "/device:") {
			return true
		}
	}
	return false
}
