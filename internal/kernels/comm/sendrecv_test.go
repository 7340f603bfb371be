package comm

import (
	"testing"

	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func attrs(typeAttr string) opdef.Attrs {
	return opdef.Attrs{
		typeAttr: tensor.Float32, "tensor_name": "edge_1_x", "send_device": "/job:a/replica:0/task:0/device:CPU:0",
		"send_device_incarnation": int64(-2), "recv_device": "/job:b/replica:0/task:0/device:CPU:0",
	}
}

const keyText = "/job:a/replica:0/task:0/device:CPU:0;fffffffffffffffe;/job:b/replica:0/task:0/device:CPU:0;edge_1_x;0:0"

func TestEveryPair(t *testing.T) {
	for _, names := range [][2]string{{"_Send", "_Recv"}, {"_HostSend", "_HostRecv"}, {"Send", "Recv"}} {
		env := kerneltest.NewEnv()
		env.Step.Rendezvous = rendezvous.New()
		send, err := env.Make(names[0], attrs("T"))
		if err != nil {
			t.Fatal(err)
		}
		recv, err := env.Make(names[1], attrs("tensor_type"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := send.Run(tensor.Scalar(float32(i))); err != nil {
				t.Fatal(err)
			}
			out, err := recv.Run()
			if err != nil || tensor.Value[float32](&out[0]) != float32(i) {
				t.Errorf("%v: got %v, error %v", names, out, err)
			}
		}
	}
}

func TestKeyAndDeadTensors(t *testing.T) {
	c := &kernel.Construction{Attrs: attrs("T")}
	send, err := newSend(c)
	if err != nil {
		t.Fatal(err)
	}
	table := rendezvous.New()
	ctx := &kernel.Context{Step: &kernel.Step{Rendezvous: table}, Dead: true}
	ctx.Bind(make([]kernel.Value, 1), nil, nil)
	if err := send.Compute(ctx); err != nil {
		t.Fatal(err)
	}
	recv, err := newRecv(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx = &kernel.Context{Step: ctx.Step}
	ctx.Bind(nil, make([]kernel.Value, 1), []tensor.DType{tensor.Float32})
	if err := recv.Compute(ctx); err != nil || !ctx.Dead {
		t.Errorf("dead %t, error %v", ctx.Dead, err)
	}
	if err := send.Compute(ctx); err != nil {
		t.Fatal(err)
	}
	if _, dead, err := table.Await(t.Context(), keyText); err != nil || !dead {
		t.Errorf("dead %t, error %v", dead, err)
	}
}

func TestFailures(t *testing.T) {
	bad := attrs("T")
	bad["send_device"] = "not a device"
	if _, err := newSend(&kernel.Construction{Attrs: bad}); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("bad key: %v", err)
	}
	env := kerneltest.NewEnv()
	recv, err := env.Make("_Recv", attrs("tensor_type"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recv.Run(); status.CodeOf(err) != status.Internal {
		t.Errorf("no rendezvous: %v", err)
	}
	table := rendezvous.New()
	table.Abort(status.Abortedf("gone"))
	env.Step.Rendezvous = table
	if _, err := recv.Run(); status.CodeOf(err) != status.Aborted {
		t.Errorf("aborted rendezvous: %v", err)
	}
}
