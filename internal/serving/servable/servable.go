// Package servable holds one loaded version of a model, and runs its signatures by TensorFlow
// Serving's rules.
package servable

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Servable is one loaded version of a model. It may be used concurrently.
type Servable struct {
	Dir string
	// Definitions are all signatures of the model as its file has them.
	Definitions map[string]*pb.SignatureDef

	model   *serve.Model
	batches *batching // nil without batching
}

// Options configure the loading of models.
type Options struct {
	Tags    []string // of the MetaGraph; "serve" if there are none
	Session []weft.SessionOption
	// Batching merges concurrent requests; nil for none.
	Batching *Batching
}

// Load loads a model from its folder, to run in this process.
func Load(ctx context.Context, dir string, opts Options) (*Servable, error) {
	tags := opts.Tags
	if len(tags) == 0 {
		tags = []string{savedmodel.TagServe}
	}
	definitions, err := readSignatures(dir, tags)
	if err != nil {
		return nil, err
	}
	m, err := serve.Load(ctx, "local", dir, serve.WithTags(tags...), serve.WithClearDevices(), serve.WithSession(opts.Session...))
	if err != nil {
		return nil, err
	}
	s := &Servable{Dir: dir, Definitions: definitions, model: m}
	if opts.Batching != nil {
		s.batches = newBatching(*opts.Batching)
	}
	return s, nil
}

// Close releases the model. No call may be in progress.
func (s *Servable) Close() error {
	if s.batches != nil {
		s.batches.close()
	}
	return s.model.Close()
}

// Signature is a signature that can be run.
type Signature struct {
	Name       string
	Definition *pb.SignatureDef
	Inputs     []serve.Argument // sorted by name
	Outputs    []serve.Argument // sorted by name

	owner *Servable
	run   *serve.Signature
}

// Signature returns a signature by name, the default one for "". ok is false if there is none.
func (s *Servable) Signature(name string) (sig *Signature, ok bool) {
	if name == "" {
		name = savedmodel.DefaultSignature
	}
	run, err := s.model.Signature(name)
	if err != nil {
		return nil, false
	}
	return &Signature{Name: name, Definition: s.Definitions[name], Inputs: run.Inputs, Outputs: run.Outputs, owner: s, run: run}, true
}

// Input returns an input by name, or nil.
func (s *Signature) Input(name string) *serve.Argument { return argument(s.Inputs, name) }

// Output returns an output by name, or nil.
func (s *Signature) Output(name string) *serve.Argument { return argument(s.Outputs, name) }

func argument(args []serve.Argument, name string) *serve.Argument {
	for i := range args {
		if args[i].Name == name {
			return &args[i]
		}
	}
	return nil
}

// Predict runs the signature and returns the outputs that filter names, or all if it is empty. The
// caller owns them; the inputs are borrowed.
func (s *Signature) Predict(ctx context.Context, inputs map[string]tensor.Tensor, filter []string) (map[string]tensor.Tensor, error) {
	if err := s.checkInputs(inputs); err != nil {
		return nil, err
	}
	for i, name := range filter {
		if s.Output(name) == nil {
			return nil, status.InvalidArgumentf("output tensor alias not found in signature: %s Outputs expected to be in the set {%s}.",
				name, names(s.Outputs))
		}
		if slices.Contains(filter[:i], name) {
			return nil, status.InvalidArgumentf("duplicate output tensor alias: %s", name)
		}
	}
	return s.Run(ctx, inputs, filter)
}

// checkInputs checks the names of inputs as TensorFlow Serving does.
func (s *Signature) checkInputs(inputs map[string]tensor.Tensor) error {
	defaults := s.Definition.GetDefaults()
	if len(inputs) > len(s.Inputs) || len(inputs) < len(s.Inputs) && len(defaults) == 0 {
		var extra, missing []string
		for _, name := range slices.Sorted(maps.Keys(inputs)) {
			if s.Input(name) == nil {
				extra = append(extra, name)
			}
		}
		for _, in := range s.Inputs {
			if _, given := inputs[in.Name]; !given {
				missing = append(missing, in.Name)
			}
		}
		return status.InvalidArgumentf("input size does not match signature: %d!=%d len({%s}) != len({%s}). Sent extra: {%s}. Missing but required: {%s}.",
			len(inputs), len(s.Inputs), sorted(inputs), names(s.Inputs), strings.Join(extra, ","), strings.Join(missing, ","))
	}
	for _, in := range s.Inputs {
		_, given := inputs[in.Name]
		if _, byDefault := defaults[in.Name]; !given && !byDefault {
			return status.InvalidArgumentf("Signature input alias: %s(feed name: %s) not found in request and no default value provided. "+
				"Inputs expected to be in the request {%s}, or default input alias set: %s",
				in.Name, s.Definition.GetInputs()[in.Name].GetName(), sorted(inputs), sorted(defaults))
		}
	}
	return nil
}

// Run runs the signature with checked names. The caller owns the outputs, which may be more than
// those that filter names only if it is empty.
func (s *Signature) Run(ctx context.Context, inputs map[string]tensor.Tensor, filter []string) (map[string]tensor.Tensor, error) {
	var out map[string]tensor.Tensor
	var err error
	if s.owner.batches != nil {
		out, err = s.owner.batches.run(ctx, s, inputs, filter)
	} else {
		out, err = s.run.RunAnyShape(ctx, inputs, filter...)
	}
	if err != nil {
		return nil, s.explain(err, inputs)
	}
	if len(filter) > 0 {
		for name, t := range out {
			if !slices.Contains(filter, name) {
				t.Release()
				delete(out, name)
			}
		}
	}
	return out, nil
}

// explain adds to an error of the model the inputs whose shapes differ from those of the signature.
// Models may take other shapes, so the shapes alone are no error.
func (s *Signature) explain(err error, inputs map[string]tensor.Tensor) error {
	if status.CodeOf(err) != status.InvalidArgument {
		return err
	}
	for _, in := range s.Inputs {
		if t, ok := inputs[in.Name]; ok && !in.Shape.CompatibleWith(t.Shape()) {
			err = status.Errorf(status.InvalidArgument, "%w\n(The input %q has the shape %v. The signature %s has %v.)",
				err, in.Name, t.Shape(), s.Name, in.Shape)
		}
	}
	return err
}

// Release releases tensors.
func Release(tensors map[string]tensor.Tensor) {
	for _, t := range tensors {
		t.Release()
	}
}

func names(args []serve.Argument) string {
	list := make([]string, len(args))
	for i, a := range args {
		list[i] = a.Name
	}
	return strings.Join(list, ",")
}

func sorted[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ",")
}
