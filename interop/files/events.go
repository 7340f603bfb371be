package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tfrecord"
)

func writeEvents(_ context.Context, dir string, _ contents) error {
	w, err := summary.NewWriter(filepath.Join(dir, "events"), summary.Options{})
	if err != nil {
		return err
	}
	s := op.NewScope()
	op.Const(s.Named("one"), float32(1))
	graph, err := savedmodel.MarshalGraph(s.Graph().Def())
	if err != nil {
		return err
	}
	picture, err := summary.NewImage(1, 2, 3, []byte{1, 2, 3, 4, 5, 6})
	if err != nil {
		return err
	}
	sound, err := summary.NewAudio(8000, 1, []float32{0, 0.5})
	if err != nil {
		return err
	}
	for _, err := range []error{
		w.AddGraph(graph),
		w.AddSession(0, summary.SessionLog{Status: summary.SessionStart}),
		w.Add(1, summary.Value{Tag: "loss", Data: float32(0.5)}),
		w.Add(2, summary.Value{Tag: "loss", Data: float32(0.25)}),
		w.Add(2, summary.Value{Tag: "weights", Data: summary.NewHistogram([]float64{1, 2, 3})}),
		w.Add(2, summary.Value{Tag: "digit", Data: picture}, summary.Value{Tag: "tone", Data: sound}),
		w.Add(2, summary.Text("note", "*good*")),
		w.AddRunMetadata(2, summary.RunMetadata{Tag: "step2", Message: []byte{}}),
		w.Close(),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func readEvents(_ context.Context, dir string, held contents) error {
	files, err := summary.Files(filepath.Join(dir, "events"))
	if err != nil {
		return err
	}
	held["events"] = map[string]any{}
	for _, file := range files {
		r, err := summary.Open(file)
		if err != nil {
			return err
		}
		defer r.Close()
		for e, err := range r.Events() {
			if err != nil {
				return err
			}
			for _, v := range e.Values {
				held["events"][v.Tag] = fmt.Sprintf("%T %s", v.Data, v.Plugin)
			}
			if e.Graph != nil {
				held["events"]["graph"] = "graph"
			}
		}
	}
	return nil
}

// compressions maps file names to the compression of their records.
var compressions = map[string]tfrecord.Compression{"plain": tfrecord.None, "zlib": tfrecord.ZLIB, "gzip": tfrecord.GZIP}

func writeRecords(_ context.Context, dir string, _ contents) error {
	for name, c := range compressions {
		w, err := tfrecord.Create(filepath.Join(dir, name+".tfrecord"), c)
		if err != nil {
			return err
		}
		defer w.Abort()
		for _, b := range []string{"one", "", name} {
			if err := w.Write([]byte(b)); err != nil {
				return err
			}
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

func readRecords(_ context.Context, dir string, held contents) error {
	held["records"] = map[string]any{}
	for name, c := range compressions {
		r, err := tfrecord.Open(filepath.Join(dir, name+".tfrecord"), c)
		if err != nil {
			return err
		}
		defer r.Close()
		var list []string
		for b, err := range r.All() {
			if err != nil {
				return err
			}
			list = append(list, string(b))
		}
		held["records"][name] = list
	}
	return nil
}
