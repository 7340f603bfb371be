package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/tfrecord"
)

// writePipelines writes files of data, and for each pipeline a graph that reads them: with the
// placeholder "epoch", the node "start", which begins an epoch, and "next", a batch. It holds the
// batches of two epochs that the program reads.
func writePipelines(ctx context.Context, dir string, held contents) error {
	pipelines, err := pipelinesOf(dir)
	if err != nil {
		return err
	}
	for name, d := range pipelines {
		s := op.NewScope()
		epoch := op.Placeholder(s.Named("epoch"), tensor.Int64, op.PlaceholderShape(tensor.MakePartial()))
		types, shapes := d.Types()
		iterator := op.IteratorV2(s, "batches", "", types, shapes)
		op.MakeIterator(s.Named("start"), d.Graph(s, epoch, nil), iterator)
		op.IteratorGetNext(s.Named("next"), iterator, types, shapes)
		g, err := s.Finalize()
		if err != nil {
			return err
		}
		graph, err := savedmodel.MarshalGraph(g.Def())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".pb"), graph, 0o600); err != nil {
			return err
		}
		held[name] = map[string]any{}
		for epoch := range 2 {
			batches := [][]any{}
			for e, err := range d.Batches(ctx, epoch) {
				if err != nil {
					return err
				}
				var values []any
				for i := range e {
					values = append(values, e[i].Go())
				}
				batches = append(batches, values)
			}
			held[name][fmt.Sprint(epoch)] = batches
		}
	}
	return nil
}

// pipelinesOf writes the files and returns the data sets.
func pipelinesOf(dir string) (map[string]*data.Dataset, error) {
	var text strings.Builder
	records, err := tfrecord.Create(filepath.Join(dir, "examples.tfrecord"), "")
	if err != nil {
		return nil, err
	}
	for i := range 40 {
		fmt.Fprintf(&text, "%d%s\n", i, strings.Repeat(" 0.1", i%3))
		m, err := proto.Marshal(&pb.Example{Features: &pb.Features{Feature: map[string]*pb.Feature{
			"number": {Kind: &pb.Feature_Int64List{Int64List: &pb.Int64List{Value: []int64{int64(i)}}}},
			"vector": {Kind: &pb.Feature_FloatList{FloatList: &pb.FloatList{Value: make([]float32, i%4)}}},
			"text":   {Kind: &pb.Feature_BytesList{BytesList: &pb.BytesList{Value: [][]byte{fmt.Append(nil, i)}}}},
		}}})
		if err == nil {
			err = records.Write(m)
		}
		if err == nil && i < 12 {
			err = writeImage(filepath.Join(dir, "images", fmt.Sprint(i%2)), i)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := records.Close(); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "lines.txt")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	images, _, err := data.ImageFolder(filepath.Join(dir, "images"), 7, 5, 2)
	if err != nil {
		return nil, err
	}
	lines := data.TextLines(path).MapOps(2, func(s *op.Scope, line []op.Output) []op.Output {
		_, words, _ := op.StringSplitV2(s, op.Reshape(s, line[0], op.Const(s, []int32{1})), op.Const(s, " "))
		numbers := op.StringToNumber(s, words)
		return []op.Output{numbers, op.Sum(s, numbers, op.Const(s, int32(0)))}
	})
	first, second := lines.Split(0.6, 4)
	examples := data.TFRecord(filepath.Join(dir, "examples.tfrecord")).ParseExamples(2,
		data.Feature{Name: "number", DType: tensor.Int64}, data.Feature{Name: "vector", DType: tensor.Float32, Shape: []int64{-1}},
		data.Feature{Name: "text", DType: tensor.String})
	return map[string]*data.Dataset{
		"first":    first.Shuffle(9, 3).PaddedBatch(4),
		"second":   second.Skip(1).Take(9).PaddedBatch(4).Prefetch(2),
		"cached":   lines.Shuffle(5, 1).Cache().Shuffle(9, 3).PaddedBatch(4),
		"examples": examples.Shuffle(100, 0).Shard(2, 1).PaddedBatch(4),
		"images":   images.Shuffle(4, 1).BatchDropRemainder(5),
	}, nil
}

// writeImage writes the image i to a folder, as PNG or JPEG.
func writeImage(dir string, i int) error {
	img := image.NewNRGBA(image.Rect(0, 0, 9+i, 20-i))
	for y := range 20 - i {
		for x := range 9 + i {
			img.Set(x, y, color.NRGBA{uint8(20 * x), uint8(12 * y), uint8(x * y * i), 255})
		}
	}
	var b bytes.Buffer
	name, err := "png", png.Encode(&b, img)
	if i%3 == 0 {
		b.Reset()
		name, err = "jpg", jpeg.Encode(&b, img, nil)
	}
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".", name)), b.Bytes(), 0o600)
}
