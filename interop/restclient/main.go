// Command restclient trains softmax regression, the first network of TensorFlow's tutorials, over
// HTTP. Package api is generated from the description that the server serves. The images are
// random: noise around a prototype for each class.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"

	"github.com/weft-ml/weft/interop/restclient/api"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: restclient URL")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "restclient:", err)
		os.Exit(1)
	}
}

// data draws images and their labels.
type data struct {
	random     *rand.Rand
	prototypes [classes][pixels]float32
}

func newData() *data {
	d := &data{random: rand.New(rand.NewPCG(1, 2))}
	for c := range d.prototypes {
		for p := range pixels {
			d.prototypes[c][p] = d.random.Float32()
		}
	}
	return d
}

// next returns a batch as feeds: the images as base64, the labels as numbers.
func (d *data) next() *map[string]api.Tensor {
	images := make([]byte, 0, 4*batch*pixels)
	labels := make([][]float32, batch)
	for i := range batch {
		class := d.random.IntN(classes)
		labels[i] = make([]float32, classes)
		labels[i][class] = 1
		for p := range pixels {
			v := d.prototypes[class][p]/10 + 0.2*d.random.Float32()
			images = binary.LittleEndian.AppendUint32(images, math.Float32bits(v))
		}
	}
	return &map[string]api.Tensor{
		"x:0":      {Dtype: api.Float32, Shape: &[]int64{batch, pixels}, Base64: &images},
		"labels:0": {Dtype: api.Float32, Values: labels},
	}
}

func run(ctx context.Context, url string) error {
	client, err := api.NewClientWithResponses(url)
	if err != nil {
		return err
	}
	created, err := client.CreateSessionWithResponse(ctx, api.CreateSessionJSONRequestBody{GraphDef: graph()})
	if err != nil {
		return err
	}
	if created.JSON200 == nil {
		return fmt.Errorf("the session: %s", created.Body)
	}
	session := created.JSON200.Session
	step := func(feeds *map[string]api.Tensor, fetches, targets []string) (*api.RunResult, error) {
		done, err := client.RunStepWithResponse(ctx, session, nil, api.RunStepJSONRequestBody{Feeds: feeds, Fetches: &fetches, Targets: &targets})
		if err != nil {
			return nil, err
		}
		if done.JSON200 == nil {
			return nil, fmt.Errorf("a step: %s", done.JSONDefault.Message)
		}
		return done.JSON200, nil
	}
	if _, err := step(nil, nil, []string{"init"}); err != nil {
		return err
	}
	d := newData()
	for i := range 301 {
		out, err := step(d.next(), []string{"loss:0"}, []string{"train"})
		if err != nil {
			return err
		}
		if i%100 == 0 {
			fmt.Printf("step %d: loss %.3f\n", i, out.Tensors["loss:0"].Values)
		}
	}
	out, err := step(d.next(), []string{"accuracy:0"}, nil)
	if err != nil {
		return err
	}
	accuracy, ok := out.Tensors["accuracy:0"].Values.(float64)
	fmt.Printf("accuracy %.2f\n", accuracy)
	if _, err := client.CloseSessionWithResponse(ctx, session); err != nil {
		return err
	}
	if !ok || accuracy < 0.9 {
		return fmt.Errorf("the accuracy is %v, want at least 0.9", out.Tensors["accuracy:0"].Values)
	}
	return nil
}
