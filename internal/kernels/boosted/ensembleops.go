package boosted

import (
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	handle := []string{"tree_ensemble_handle: resource"}
	serialized := append(handle[:1:1], "stamp_token: int64", "tree_ensemble_serialized: string")
	registerHandle[*ensemble]("BoostedTreesEnsembleResourceHandleOp", "an ensemble of trees")
	registerInitialized[*ensemble]("IsBoostedTreesEnsembleInitialized", "tree_ensemble_handle", "an ensemble of trees")
	kernel.RegisterFunc(opdef.Def{
		Name: "BoostedTreesCreateEnsemble", Doc: "Creates an ensemble of trees, unless it exists.",
		In: serialized, Stateful: true, Shape: scalarsShape,
	}, func(ctx *kernel.Context) error {
		e := &ensemble{}
		if err := e.load(ctx); err != nil {
			return err
		}
		return create(ctx, e)
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "BoostedTreesDeserializeEnsemble", Doc: "Replaces an ensemble of trees by a serialized one.",
		In: serialized, Stateful: true, Shape: scalarsShape,
	}, func(ctx *kernel.Context) error {
		e, err := resource.Find[*ensemble](ctx, 0)
		if err != nil {
			return err
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.load(ctx)
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "BoostedTreesSerializeEnsemble", Doc: "Serializes an ensemble of trees.",
		In: handle, Out: []string{"stamp_token: int64", "tree_ensemble_serialized: string"}, Stateful: true, Shape: scalarsShape,
	}, func(ctx *kernel.Context) error {
		e, err := resource.Find[*ensemble](ctx, 0)
		if err != nil {
			return err
		}
		e.mu.RLock()
		defer e.mu.RUnlock()
		ctx.SetOutput(0, tensor.Scalar(e.stamp))
		ctx.SetOutput(1, tensor.Scalar(e.serialize()))
		return nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "BoostedTreesGetEnsembleStates", Doc: "Returns the sizes of an ensemble of trees, and the range of nodes of its last layer.",
		In: handle,
		Out: []string{
			"stamp_token: int64", "num_trees: int32", "num_finalized_trees: int32", "num_attempted_layers: int32", "last_layer_nodes_range: int32",
		},
		Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			if err := scalarsShape(c); err != nil {
				return err
			}
			c.Out[4] = shapefn.Of(2)
			return nil
		},
	}, states)
}

// load sets the ensemble to the serialized one in the inputs.
func (e *ensemble) load(ctx *kernel.Context) error {
	stamp, err := scalar[int64](ctx, 1, "stamp_token")
	if err != nil {
		return err
	}
	serialized, err := scalar[string](ctx, 2, "tree_ensemble_serialized")
	if err != nil {
		return err
	}
	if err := e.parse(serialized); err != nil {
		return err
	}
	e.stamp = stamp
	return nil
}

// states runs BoostedTreesGetEnsembleStates.
func states(ctx *kernel.Context) error {
	e, err := resource.Find[*ensemble](ctx, 0)
	if err != nil {
		return err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	n := int32(len(e.trees))
	finalized := n
	if n > 0 && !e.trees[n-1].finalized {
		finalized--
	}
	ctx.SetOutput(0, tensor.Scalar(e.stamp))
	ctx.SetOutput(1, tensor.Scalar(n))
	ctx.SetOutput(2, tensor.Scalar(finalized))
	ctx.SetOutput(3, tensor.Scalar(int32(e.growing.layers))) //nolint:gosec // as TensorFlow converts it
	ctx.SetOutput(4, tensor.Vector(e.growing.layerStart, max(1, e.growing.layerEnd)))
	return nil
}
