package train_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// TestCollections exports a graph with a collection of each kind, imports it, and exports it again.
func TestCollections(t *testing.T) {
	s := newScope()
	v := train.NewVariable(s, "v", tensor.Shape{2}, tensor.Float32, train.Ones)
	train.NewPartitioned(s, "p", tensor.Shape{3}, tensor.Float32, train.Ones, 2)
	loss := op.Cond(s, op.Const(s, true), func(s *op.Scope) []op.Output { return []op.Output{op.L2Loss(s, v.Value)} },
		func(s *op.Scope) []op.Output { return []op.Output{op.Const(s, float32(1))} })[0]
	s.AddToCollection(train.Losses, loss)
	s.AddToCollection(train.TrainOps, train.Minimize(s, train.NewAdam(.1), loss, train.GlobalStep(s)))
	queue := op.FIFOQueueV2(s.Named("queue"), []tensor.DType{tensor.Float32})
	train.AddQueueRunner(s, train.NewQueueRunner(s, queue, op.QueueEnqueueV2(s, queue, []op.Output{loss})))
	s.AddToCollection("numbers", int64(1), int64(2))
	s.AddToCollection("parts", float32(.5))
	s.AddToCollection("words", "a", "b")
	saver := train.NewSaver(s, train.SaverOptions{MaxToKeep: 3, Sharded: true})
	want, err := train.ExportMetaGraph(s, saver)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		train.GlobalVariables, train.TrainableVariables, train.Losses, train.TrainOps, train.QueueRunners, train.Savers, "numbers", "parts", "words",
		"cond_context", "global_step",
	} {
		if _, ok := want.Collections[name]; !ok {
			t.Errorf("there is no collection %q", name)
		}
	}
	again := newScope()
	imported := train.ImportMetaGraph(again, want, op.ImportOptions{}, train.SaverOptions{MaxToKeep: 3})
	if err := again.Err(); err != nil {
		t.Fatal(err)
	}
	got, err := train.ExportMetaGraph(again, imported)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Collections, want.Collections) || !reflect.DeepEqual(got.Saver, want.Saver) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestCollectionsThatFitNoGraph(t *testing.T) {
	for name, c := range map[string]savedmodel.Collection{
		train.Losses:          {Nodes: []string{"none:0"}},
		train.TrainOps:        {Nodes: []string{"none"}},
		train.GlobalVariables: {Bytes: [][]byte{{0xff}}},
		train.QueueRunners:    {Bytes: [][]byte{{}}},
		train.Savers:          {Bytes: [][]byte{{}}},
	} {
		s := newScope()
		op.Const(s, float32(1))
		m, err := train.ExportMetaGraph(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.Collections[name] = c
		again := newScope()
		train.ImportMetaGraph(again, m, op.ImportOptions{}, train.SaverOptions{})
		if err := again.Err(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
