package parsing

import (
	"slices"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// sequence is the kernel of the operations that parse SequenceExample messages.
type sequence struct {
	context, lists *wanted
	version        int                      // 0 for ParseSingleSequenceExample
	keys           [2]keys                  // of version 1, whose keys are attributes
	optional       []string                 // keys of optional dense lists, in version 1
	indices        [2]atomic.Pointer[index] // index of the keys of the last run
}

// newSequenceWanted reads the attributes of the version.
func newSequenceWanted(attrs opdef.Attrs, version int) (context, lists *wanted, err error) {
	for _, group := range []struct {
		prefix, sparse, dense, denseCount string
	}{
		{"context", "Ncontext_sparse", "Tcontext_dense", "Ncontext_dense"},
		{"feature_list", "Nfeature_list_sparse", "feature_list_dense_types", "Nfeature_list_dense"},
	} {
		dense := listLength(attrs, group.dense)
		if version != 2 || group.prefix != "context" {
			dense = attrLength{"num_" + group.prefix + "_dense", attrs.Int(group.denseCount)}
		}
		if err := checkGroup(attrs, version, group.prefix, attrs.Int(group.sparse), dense.n, group.dense); err != nil {
			return nil, nil, err
		}
	}
	context, err = newWanted(attrs.Types("context_sparse_types"), attrs.Types("Tcontext_dense"), attrs.Types("context_ragged_value_types"),
		attrs.Types("context_ragged_split_types"), attrs.Shapes("context_dense_shapes"))
	if err != nil {
		return nil, nil, err
	}
	lists, err = newWanted(attrs.Types("feature_list_sparse_types"), attrs.Types("feature_list_dense_types"),
		attrs.Types("feature_list_ragged_value_types"), attrs.Types("feature_list_ragged_split_types"), attrs.Shapes("feature_list_dense_shapes"))
	if err != nil {
		return nil, nil, err
	}
	//sizedmake:ok features that the attributes list
	for _, f := range slices.Concat(context.dense, lists.dense) {
		if f.varying {
			return nil, nil, status.InvalidArgumentf("Shape %v is not fully defined", f.shape)
		}
	}
	return context, lists, nil
}

// checkGroup checks that the attributes of the context or of the feature lists have the lengths
// given by the count attributes.
func checkGroup(attrs opdef.Attrs, version int, prefix string, sparse, dense int, denseTypes string) error {
	check := func(role string, n int, lists ...string) error {
		for _, l := range lists {
			if got := listLength(attrs, l); got.n != n {
				return status.InvalidArgumentf("num_%s_%s (%d) must match the size of %s (%d)", prefix, role, n, l, got.n)
			}
		}
		return nil
	}
	sparseLists, denseLists := []string{prefix + "_sparse_types"}, []string{denseTypes, prefix + "_dense_shapes"}
	if version == 1 {
		sparseLists, denseLists = append(sparseLists, prefix+"_sparse_keys"), append(denseLists, prefix+"_dense_keys")
	}
	if err := check("sparse", sparse, sparseLists...); err != nil {
		return err
	}
	if err := check("dense", dense, denseLists...); err != nil || version != 2 {
		return err
	}
	ragged := prefix + "_ragged_value_types"
	return check("ragged", listLength(attrs, ragged).n, prefix+"_ragged_split_types")
}

func newSequence(version int) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		context, lists, err := newSequenceWanted(c.Attrs, version)
		s := &sequence{context: context, lists: lists, version: version, optional: c.Attrs.Strings("feature_list_dense_missing_assumed_empty")}
		for i, prefix := range []string{"context", "feature_list"} {
			s.keys[i] = keys{sparse: c.Attrs.Strings(prefix + "_sparse_keys"), dense: c.Attrs.Strings(prefix + "_dense_keys")}
		}
		return s, err
	}
}

// Compute implements kernel.Kernel.
func (s *sequence) Compute(ctx *kernel.Context) error {
	a, err := s.arguments(ctx)
	if err == nil {
		err = s.check(ctx, a)
	}
	if err != nil {
		return err
	}
	serialized := ctx.Input(0)
	b := &batch{ctx: ctx, records: tensor.Values[string](serialized), single: serialized.Rank() == 0, names: a.names}
	b.words = contextWords{a.names}
	if s.version == 0 {
		b.words, b.sole = soleContextWords{contextWords{a.names}}, true
		if b.records, err = b.canonicalize(b.records); err != nil {
			return err
		}
	}
	context, lists := s.context.named(a.context, a.fills), s.lists.named(a.lists, nil)
	for i := range lists.dense {
		lists.dense[i].optional = a.optional[i]
	}
	var where [2]*found
	for i, k := range []keys{a.context, a.lists} {
		where[i] = newFound(cachedIndex(&s.indices[i], k), len(b.records))
	}
	if err := b.scan(where[0], where[1]); err != nil {
		return err
	}
	if err := b.checkMost(context, where[0]); err != nil {
		return err
	}
	out, err := b.features(0, context, where[0])
	if err != nil {
		return err
	}
	return b.featureLists(out, lists, where[1], s.version != 0)
}

// checkMost checks that the maximum number of values of a dense context feature in any record is
// the expected number.
func (b *batch) checkMost(context *wanted, f *found) error {
	if b.sole {
		return nil
	}
	for i := range context.dense {
		d := &context.dense[i]
		l, err := b.lists(d, f.of(d.key))
		if err != nil {
			return err
		}
		if most := max(l.most, d.fill.NumElements()); most != d.stride {
			return status.InvalidArgumentf("Inconsistent max number of elements for feature %s: expected %d, but found %d", d.key, d.stride, most)
		}
	}
	return nil
}

// arguments holds the inputs of any version of the operation.
type arguments struct {
	context, lists keys
	optional       []bool // by dense list
	fills          []*tensor.Tensor
	names          names
}

func (s *sequence) arguments(ctx *kernel.Context) (a arguments, err error) {
	texts := func(i int) []string { return tensor.Values[string](ctx.Input(i)) }
	switch s.version {
	case 0:
		return s.singleArguments(ctx)
	case 1:
		a = arguments{context: s.keys[0], lists: s.keys[1], names: texts(1), fills: inputs(ctx, 2, len(s.context.dense))}
		a.optional, err = membership(ctx, a.lists.dense, s.optional)
	case 2:
		a = arguments{names: texts(1), fills: inputs(ctx, 9, len(s.context.dense))}
		a.context, a.lists = keys{texts(2), texts(3), texts(4)}, keys{texts(5), texts(6), texts(7)}
		a.optional = tensor.Values[bool](ctx.Input(8))
	}
	return a, err
}

func (s *sequence) singleArguments(ctx *kernel.Context) (a arguments, err error) {
	next := 2
	for _, arg := range []struct {
		name string
		n    int
		keys *[]string
	}{
		{"context_sparse_keys", len(s.context.sparse), &a.context.sparse}, {"context_dense_keys", len(s.context.dense), &a.context.dense},
		{"feature_list_sparse_keys", len(s.lists.sparse), &a.lists.sparse}, {"feature_list_dense_keys", len(s.lists.dense), &a.lists.dense},
	} {
		if *arg.keys, err = scalars(ctx, arg.name, next, arg.n); err != nil {
			return a, err
		}
		next += arg.n
	}
	optional := ctx.Input(1)
	if optional.Rank() != 1 {
		return a, status.InvalidArgumentf("Expected feature_list_dense_missing_assumed_empty to be a vector, got shape: %v", optional.Shape())
	}
	if a.optional, err = membership(ctx, a.lists.dense, tensor.Values[string](optional)); err != nil {
		return a, err
	}
	a.fills = inputs(ctx, next, len(s.context.dense))
	name := ctx.Input(ctx.NumInputs() - 1)
	if name.NumElements() > 0 && name.Rank() != 0 {
		return a, status.InvalidArgumentf("Expected debug_name to be a scalar, got shape: %v", name.Shape())
	}
	a.names = tensor.Values[string](name)
	return a, nil
}

// membership returns, for each key, whether it is in a set.
func membership(ctx *kernel.Context, keys, set []string) ([]bool, error) {
	is := map[string]bool{}
	for _, k := range keys {
		is[k] = false //sizedmake:ok keys of features, as many as the inputs of the node
	}
	at := progress(ctx.Context())
	for _, k := range set {
		if err := at.Pass(len(k)); err != nil {
			return nil, err
		}
		if _, known := is[k]; known {
			is[k] = true //sizedmake:ok it is known
		}
	}
	out := membudget.Make[bool](len(keys))
	for i, k := range keys {
		out[i] = is[k]
	}
	return out, nil
}

func (s *sequence) check(ctx *kernel.Context, a arguments) error {
	serialized := ctx.Input(0)
	switch rank := serialized.Rank(); {
	case s.version == 0 && rank != 0:
		return status.InvalidArgumentf("Expected serialized to be a scalar, got shape: %v", serialized.Shape())
	case rank > 1:
		return status.InvalidArgumentf("Expected serialized to be a scalar or vector, got shape: %v", serialized.Shape())
	case len(a.names) > 0 && len(a.names) != serialized.NumElements():
		return status.InvalidArgumentf("example_names must be empty or have the correct number of elements")
	}
	for _, l := range []struct {
		name, number string
		n, want      int
	}{
		{"context_dense_keys", "len(Tcontext_dense)", len(a.context.dense), len(s.context.dense)},
		{"context_sparse_keys", "Ncontext_sparse", len(a.context.sparse), len(s.context.sparse)},
		{"context_ragged_keys", "len(context_ragged_value_types)", len(a.context.ragged), len(s.context.ragged)},
		{"feature_list_dense_keys", "Nfeature_list_dense", len(a.lists.dense), len(s.lists.dense)},
		{"feature_list_dense_missing_assumed_empty", "Nfeature_list_dense", len(a.optional), len(s.lists.dense)},
		{"feature_list_sparse_keys", "Nfeature_list_sparse", len(a.lists.sparse), len(s.lists.sparse)},
		{"feature_list_ragged_keys", "len(feature_list_ragged_value_types)", len(a.lists.ragged), len(s.lists.ragged)},
	} {
		if l.n != l.want {
			return status.InvalidArgumentf("Expected len(%s) to match %s", l.name, l.number)
		}
	}
	for i, fill := range a.fills {
		if want := tensor.Shape(s.context.dense[i].row); fill.NumElements() > 0 && !fill.Shape().Equal(want) {
			return status.InvalidArgumentf("default_value[%d].shape() == %v != context_dense_shapes[%d] == %v", i, fill.Shape(), i, want)
		}
	}
	if s.version == 0 {
		return nil
	}
	if err := a.context.checkRoles("Context"); err != nil {
		return err
	}
	return a.lists.checkRoles("Sequence")
}

// checkRoles checks that no key is used for several kinds of feature.
func (k keys) checkRoles(noun string) error {
	sparse, ragged := map[string]bool{}, map[string]bool{}
	for _, key := range k.sparse {
		sparse[key] = true //sizedmake:ok keys of features, as many as the attributes list
	}
	for _, key := range k.ragged {
		if sparse[key] {
			return status.InvalidArgumentf("%s feature %s cannot be both ragged and sparse", noun, key)
		}
		ragged[key] = true //sizedmake:ok keys of features, as many as the attributes list
	}
	for _, key := range k.dense {
		if sparse[key] || ragged[key] {
			return status.InvalidArgumentf("%s feature %s cannot be both dense and sparse", noun, key)
		}
	}
	return nil
}
