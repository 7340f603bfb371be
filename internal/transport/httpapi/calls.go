package httpapi

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/weft-ml/weft/internal/proto/pb"
	roles "github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/transport/openapi"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// call is a call of a client.
type call struct {
	context.Context //nolint:containedctx // a call has the life of its context

	master    rpc.Master
	quota     *quota.Quota // of graphs; may be nil
	inspector rpc.Inspection
	params    map[string]string // of the path and the query
	tail      []byte            // bytes after the JSON of the request
	out       []byte            // bytes after the JSON of the answer
}

func (c *call) session() string { return c.params["session"] }

// operation is a row of the table.
type operation struct {
	openapi.Operation
	rpc   string // path of the call in the table of package trust
	graph bool   // the request may have the size of one with a graph
	serve func(c *call, decode func(any) error) (any, error)
}

// with returns the function of an operation whose request is a Req.
func with[Req, Resp any](f func(c *call, req *Req) (*Resp, error)) func(*call, func(any) error) (any, error) {
	return func(c *call, decode func(any) error) (any, error) {
		req := new(Req)
		if err := decode(req); err != nil {
			return nil, err
		}
		resp, err := f(c, req)
		if err != nil {
			return nil, err
		}
		return resp, nil
	}
}

// without returns the function of an operation without a body.
func without[Resp any](f func(c *call) (*Resp, error)) func(*call, func(any) error) (any, error) {
	return func(c *call, _ func(any) error) (any, error) {
		resp, err := f(c)
		if err != nil {
			return nil, err
		}
		return resp, nil
	}
}

// operations returns the table of the API: the handlers and their description are made of it.
func operations() []operation {
	session := openapi.Parameter{Name: "session", In: "path", Description: "Handle of the session."}
	callable := openapi.Parameter{Name: "handle", In: "path", Description: "Handle of the callable.", Type: "integer", Format: "int64"}
	row := func(method, path, id, tag, summary string, req, resp any, parameters ...openapi.Parameter) openapi.Operation {
		return openapi.Operation{
			Method: method, Path: path, ID: id, Tag: tag, Summary: summary, Request: req, Response: resp, Parameters: parameters,
		}
	}
	binary := func(o openapi.Operation) openapi.Operation { o.Binary = true; return o }
	return []operation{
		{row("POST", "/v1/sessions", "createSession", "sessions", "Start a session with a first graph", CreateSessionRequest{}, CreateSessionResult{}),
			rpc.MethodCreateSession, true, with(createSession)},
		{row("DELETE", "/v1/sessions/{session}", "closeSession", "sessions", "End a session", nil, Empty{}, session),
			rpc.MethodCloseSession, false, without(closeSession)},
		{row("POST", "/v1/sessions/{session}/extend", "extendSession", "sessions", "Add nodes to the graph of a session",
			ExtendSessionRequest{}, ExtendSessionResult{}, session), rpc.MethodExtendSession, true, with(extendSession)},
		{binary(row("POST", "/v1/sessions/{session}/run", "runStep", "steps", "Run a step, or the next part of a partial run",
			RunRequest{}, RunResult{}, session)), rpc.MethodRunStep, false, with(runStep)},
		{row("POST", "/v1/sessions/{session}/partial-runs", "partialRunSetup", "steps", "Declare the feeds and fetches of a partial run",
			PartialRunRequest{}, PartialRunResult{}, session), rpc.MethodPartialRunSetup, false, with(setUpPartialRun)},
		{row("POST", "/v1/sessions/{session}/callables", "makeCallable", "callables", "Prepare a step that runs many times",
			MakeCallableRequest{}, MakeCallableResult{}, session), rpc.MethodMakeCallable, false, with(makeCallable)},
		{binary(row("POST", "/v1/sessions/{session}/callables/{handle}/run", "runCallable", "callables", "Run a prepared step",
			RunCallableRequest{}, RunCallableResult{}, session, callable)), rpc.MethodRunCallable, false, with(runCallable)},
		{row("DELETE", "/v1/sessions/{session}/callables/{handle}", "releaseCallable", "callables", "Drop a prepared step", nil, Empty{}, session, callable),
			rpc.MethodReleaseCallable, false, without(releaseCallable)},
		{row("GET", "/v1/devices", "listDevices", "cluster", "List the devices of the cluster, or of a session", nil, &pb.ListDevicesResponse{},
			openapi.Parameter{Name: "session", In: "query", Description: "Handle of a session."}), rpc.MethodListDevices, false, without(listDevices)},
		{row("POST", "/v1/reset", "reset", "cluster", "Drop containers of variables, and all sessions", ResetRequest{}, Empty{}),
			rpc.MethodReset, false, with(reset)},
		{row("GET", "/v1/server", "getServer", "cluster", "Describe the task that answers", nil, &pb.TaskInfo{}),
			rpc.MethodGetTask, false, without(func(c *call) (*pb.TaskInfo, error) { return c.inspector.GetTask(c, &pb.GetTaskRequest{}) })},
		{row("GET", "/v1/cluster", "getCluster", "cluster", "Describe all tasks of the cluster", nil, &pb.ClusterInfo{}),
			rpc.MethodGetCluster, false, without(func(c *call) (*pb.ClusterInfo, error) { return c.inspector.GetCluster(c, &pb.GetClusterRequest{}) })},
	}
}

func createSession(c *call, req *CreateSessionRequest) (*CreateSessionResult, error) {
	graph, release, err := c.graphOf(req.Graph.of, req.GraphBytes)
	if err != nil {
		return nil, err
	}
	defer release()
	resp, err := c.master.CreateSession(c, &pb.CreateSessionRequest{GraphDef: graph, Config: req.Config.of, Target: req.Target})
	if err != nil {
		return nil, err
	}
	return &CreateSessionResult{resp.GetSessionHandle(), resp.GetGraphVersion()}, nil
}

func closeSession(c *call) (*Empty, error) {
	_, err := c.master.CloseSession(c, &pb.CloseSessionRequest{SessionHandle: c.session()})
	return &Empty{}, err
}

func extendSession(c *call, req *ExtendSessionRequest) (*ExtendSessionResult, error) {
	graph, release, err := c.graphOf(req.Graph.of, req.GraphBytes)
	if err != nil {
		return nil, err
	}
	defer release()
	resp, err := c.master.ExtendSession(c, &pb.ExtendSessionRequest{SessionHandle: c.session(), GraphDef: graph, CurrentGraphVersion: req.Version})
	if err != nil {
		return nil, err
	}
	return &ExtendSessionResult{resp.GetNewGraphVersion()}, nil
}

// checkForm checks the form of the elements of an answer.
func checkForm(form string) error {
	switch form {
	case "", formValues, formBase64, formBytes:
		return nil
	}
	return status.InvalidArgumentf("form must be values, base64 or bytes, got %q", form)
}

// decodeAll returns the tensors of a request. The caller releases them.
func (c *call) decodeAll(in []*Tensor, name func(i int) string) (out []tensor.Tensor, err error) {
	for i, t := range in {
		var v tensor.Tensor
		if t == nil {
			err = status.InvalidArgumentf("it is null")
		} else {
			v, err = t.decode(c.tail)
		}
		if err != nil {
			for k := range out {
				out[k].Release()
			}
			return nil, status.Errorf(status.CodeOf(err), "feed %s: %w", name(i), err)
		}
		out = append(out, v)
	}
	return out, nil
}

func runStep(c *call, req *RunRequest) (*RunResult, error) {
	if err := checkForm(req.Form); err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(req.Feeds))
	given := make([]*Tensor, len(names))
	for i, name := range names {
		given[i] = req.Feeds[name]
	}
	tensors, err := c.decodeAll(given, func(i int) string { return names[i] })
	if err != nil {
		return nil, err
	}
	step := &roles.RunStepRequest{Session: c.session(), Fetches: req.Fetches, Targets: req.Targets, Options: req.Options.of, PartialRun: req.Partial}
	for i, name := range names {
		step.Feeds = append(step.Feeds, roles.NamedTensor{Name: name, Tensor: tensors[i]})
	}
	defer step.Release()
	resp, err := c.master.RunStep(c, step)
	if err != nil {
		return nil, err
	}
	defer resp.Release()
	out := &RunResult{Tensors: map[string]*Tensor{}, Metadata: message[pb.RunMetadata, *pb.RunMetadata]{resp.Metadata}}
	for i := range resp.Tensors {
		t := &resp.Tensors[i]
		if out.Tensors[t.Name], err = encode(&t.Tensor, req.Form, &c.out); err != nil {
			return nil, status.Errorf(status.CodeOf(err), "fetch %s: %w", t.Name, err)
		}
	}
	return out, nil
}

func setUpPartialRun(c *call, req *PartialRunRequest) (*PartialRunResult, error) {
	resp, err := c.master.PartialRunSetup(c, &pb.PartialRunSetupRequest{
		SessionHandle: c.session(), Feed: req.Feeds, Fetch: req.Fetches, Target: req.Targets,
	})
	if err != nil {
		return nil, err
	}
	return &PartialRunResult{resp.GetPartialRunHandle()}, nil
}

func makeCallable(c *call, req *MakeCallableRequest) (*MakeCallableResult, error) {
	resp, err := c.master.MakeCallable(c, &pb.MakeCallableRequest{SessionHandle: c.session(), Options: req.Options.of})
	if err != nil {
		return nil, err
	}
	return &MakeCallableResult{resp.GetHandle()}, nil
}

// callable returns the handle in the path.
func (c *call) callable() (int64, error) {
	handle, err := strconv.ParseInt(c.params["handle"], 10, 64)
	if err != nil {
		return 0, status.InvalidArgumentf("the handle of a callable is a number, got %q", c.params["handle"])
	}
	return handle, nil
}

func runCallable(c *call, req *RunCallableRequest) (*RunCallableResult, error) {
	handle, err := c.callable()
	if err == nil {
		err = checkForm(req.Form)
	}
	if err != nil {
		return nil, err
	}
	step := &roles.RunCallableRequest{Session: c.session(), Handle: handle}
	if step.Feeds, err = c.decodeAll(req.Feeds, strconv.Itoa); err != nil {
		return nil, err
	}
	defer step.Release()
	resp, err := c.master.RunCallable(c, step)
	if err != nil {
		return nil, err
	}
	defer resp.Release()
	out := &RunCallableResult{Fetches: []*Tensor{}, Metadata: message[pb.RunMetadata, *pb.RunMetadata]{resp.Metadata}}
	for i := range resp.Fetches {
		t, err := encode(&resp.Fetches[i], req.Form, &c.out)
		if err != nil {
			return nil, status.Errorf(status.CodeOf(err), "fetch %d: %w", i, err)
		}
		out.Fetches = append(out.Fetches, t)
	}
	return out, nil
}

func releaseCallable(c *call) (*Empty, error) {
	handle, err := c.callable()
	if err == nil {
		_, err = c.master.ReleaseCallable(c, &pb.ReleaseCallableRequest{SessionHandle: c.session(), Handle: handle})
	}
	return &Empty{}, err
}

func listDevices(c *call) (*pb.ListDevicesResponse, error) {
	return c.master.ListDevices(c, &pb.ListDevicesRequest{SessionHandle: c.session()})
}

func reset(c *call, req *ResetRequest) (*Empty, error) {
	_, err := c.master.Reset(c, &pb.ResetRequest{Container: req.Containers, DeviceFilters: req.DeviceFilters})
	return &Empty{}, err
}
