package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// chainLength is the number of functions in a chain, nearly as many as a graph may have.
const chainLength = 99_000

// chain is a graph whose functions call the next one. It has n nodes y0, y1, ... that call the
// first.
func chain(n int) (*pb.GraphDef, error) {
	g, err := parseGraph(hiddenScalar)
	if err != nil {
		return nil, err
	}
	types := &pb.AttrValue{Value: &pb.AttrValue_List{List: &pb.AttrValue_ListValue{Type: []pb.DataType{pb.DataType_DT_FLOAT}}}}
	float := &pb.AttrValue{Value: &pb.AttrValue_Type{Type: pb.DataType_DT_FLOAT}}
	call := func(name, input, function string) *pb.NodeDef {
		f := &pb.AttrValue{Value: &pb.AttrValue_Func{Func: &pb.NameAttrList{Name: function}}}
		return &pb.NodeDef{Name: name, Op: "PartitionedCall", Input: []string{input}, Attr: map[string]*pb.AttrValue{"Tin": types, "Tout": types, "f": f}}
	}
	one := func(name string) []*pb.OpDef_ArgDef {
		return []*pb.OpDef_ArgDef{{Name: name, Type: pb.DataType_DT_FLOAT}}
	}
	g.Library = &pb.FunctionDefLibrary{}
	for i := range chainLength {
		body := call("c", "x", fmt.Sprint("F", i+1))
		if i == chainLength-1 {
			body = &pb.NodeDef{Name: "c", Op: "Identity", Input: []string{"x"}, Attr: map[string]*pb.AttrValue{"T": float}}
		}
		g.Library.Function = append(g.Library.Function, &pb.FunctionDef{
			Signature: &pb.OpDef{Name: fmt.Sprint("F", i), InputArg: one("x"), OutputArg: one("y")},
			NodeDef:   []*pb.NodeDef{body}, Ret: map[string]string{"y": "c:output:0"},
		})
	}
	for i := range n {
		g.Node = append(g.Node, call(fmt.Sprint("y", i), "p", "F0"))
	}
	return g, nil
}

// chainProbe is a probe of a chain of functions. It runs several steps that need plans of their own
// at the same time. A fast machine may end a single step in time.
func chainProbe(name string, plans int) probe {
	return probe{name: name, mayPass: plans == 1, codes: []status.Code{status.ResourceExhausted, status.DeadlineExceeded}, run: func(c *client) error {
		g, err := chain(plans)
		if err != nil {
			return err
		}
		handle, err := c.create(g)
		if err != nil {
			return err
		}
		errs := make([]error, plans)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				begin := time.Now()
				errs[i] = c.step(handle, &pb.RunOptions{TimeoutInMs: 10_000}, fmt.Sprint("y", i))
				if took := time.Since(begin); took > 20*time.Second {
					errs[i] = fmt.Errorf("a step with 10 s took %v: %w", took, status.Internalf("%v", errs[i]))
				}
			})
		}
		all.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	}}
}

var chainProbes = []probe{chainProbe("call-chain", 1), chainProbe("call-chains", 6)}
