package data

import (
	"slices"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for name, attrs := range map[string][]string{
		"AutoShardDataset":             append(withSpec("auto_shard_policy: int = 0"), "num_replicas: int = 0"),
		"ExperimentalAutoShardDataset": withSpec("auto_shard_policy: int = 0"),
	} {
		kernel.RegisterNew(opdef.Def{
			Name: name,
			Doc: "Creates the dataset of one of several workers. It has the elements of a shard of the input files, or a shard of " +
				"the elements.",
			In: []string{"input_dataset: variant", "num_workers: int64", "index: int64"}, Out: []string{"handle: variant"}, Attrs: attrs,
			Shape: opdef.ScalarShape,
		}, iterating(autoShard))
	}
}

// shardPolicy is the way of distributing a dataset to workers. The values are those of
// tensorflow.data.AutoShardPolicy.
type shardPolicy int64

const (
	shardAuto shardPolicy = iota // files if possible, elements otherwise
	shardFiles
	shardElements
	shardHints             // datasets marked with the shard hint
	shardOff   shardPolicy = -1
)

// policyOf returns the policy in serialized options.
func policyOf(options string) shardPolicy {
	// distribute_options of tensorflow.data.Options, and auto_shard_policy in these
	const distribute, policy = 2, 1
	v, _ := varintField(messageField(options, distribute), policy)
	return shardPolicy(int64(v)) //nolint:gosec // only the bits count
}

// sharder rewrites a dataset into the shard of one worker.
type sharder struct {
	r                        *run
	n                        *node
	workers, index, replicas int64
}

func autoShard(n *node, ctx *kernel.Context, r *run) error {
	d, err := datasetOf(ctx.Input(0))
	if err != nil {
		return err
	}
	v, err := n.scalars(ctx, "num_workers", "index")
	if err != nil {
		return err
	}
	s := &sharder{r, n, v[0], v[1], int64(n.Attrs.Int("num_replicas"))}
	if s.workers <= 0 {
		return status.InvalidArgumentf("num_workers must be greater than zero.")
	}
	if s.index < 0 || s.index >= s.workers {
		return status.InvalidArgumentf("index must be between 0 and %d", s.workers-1)
	}
	policy := shardPolicy(n.Attrs.Int("auto_shard_policy"))
	if p := policyOf(options(d)); p != shardAuto {
		policy = p
	}
	if policy < shardOff || policy > shardHints {
		return status.InvalidArgumentf("auto_shard_policy is invalid.")
	}
	if s.replicas < 0 {
		return status.InvalidArgumentf("num_replicas should be >= 0")
	}
	out, err := s.by(policy, ctx.Input(0))
	if err == nil {
		ctx.SetOutput(0, out)
	}
	return err
}

func (s *sharder) by(policy shardPolicy, t *tensor.Tensor) (tensor.Tensor, error) {
	switch policy {
	case shardAuto:
	case shardOff:
		return t.Retain(), nil
	case shardFiles:
		if s.workers == 1 {
			return t.Retain(), nil
		}
		return s.files(t)
	case shardElements:
		return s.elements(t)
	case shardHints:
		return s.hints(t)
	}
	out, err := s.files(t)
	if status.CodeOf(err) == status.NotFound {
		return s.elements(t)
	}
	return out, err
}

// Operations that sharding by files handles, without version suffixes.
var (
	fileReaders  = []string{"ArrayRecordDataset", "FixedLengthRecordDataset", "RecordIODataset", "SSTableDataset", "TextLineDataset", "TFRecordDataset"}
	withoutFiles = []string{"GeneratorDataset", "RangeDataset", "SparseTensorsSliceDataset", "TensorDataset", "TensorSliceDataset"}
	callers      = []string{
		"ExperimentalParallelInterleaveDataset", "FlatMapDataset", "InterleaveDataset", "LegacyParallelInterleaveDataset", "ParallelInterleaveDataset",
	}
	passers = []string{
		"AssertNextDataset", "BatchDataset", "CacheDataset", "ExperimentalMapAndBatchDataset", "ExperimentalParseExampleDataset",
		"ExperimentalRebatchDataset", "FilterDataset", "FinalizeDataset", "MapAndBatchDataset", "MapDataset", "MaxIntraOpParallelismDataset",
		"ModelDataset", "OptimizeDataset", "OptionsDataset", "PaddedBatchDataset", "ParallelBatchDataset", "ParallelMapDataset",
		"ParseExampleDataset", "PrefetchDataset", "PrivateThreadPoolDataset", "RebatchDataset", "RepeatDataset", "ShardDataset",
		"ShuffleAndRepeatDataset", "ShuffleDataset", "SkipDataset", "TakeDataset", "UnbatchDataset", "WindowDataset",
	}
	joiners = []string{"ConcatenateDataset", "ZipDataset"}
)

// anyVersion reports whether op is a version of one of the given operations.
func anyVersion(op string, of []string) bool {
	return slices.ContainsFunc(of, func(name string) bool { return isVersion(op, name) })
}

// files shards the source files nearest to the output.
func (s *sharder) files(t *tensor.Tensor) (tensor.Tensor, error) {
	m := nodeDatasetOf(t)
	if m == nil {
		return tensor.Tensor{}, status.NotFoundf("Did not find a shardable source, walked to a node which is not a dataset.")
	}
	op := m.op()
	switch {
	case op == "AssertCardinalityDataset": // the assertion does not hold for a shard
		return s.files(&m.inputs[0])
	case anyVersion(op, withoutFiles):
		return tensor.Tensor{}, status.NotFoundf("Found an unshardable source dataset: %s", op)
	case anyVersion(op, joiners):
		return m.rewrite(s.r, s.files)
	}
	calls := anyVersion(op, callers)
	if calls {
		if depth := s.functionOverTensors(m); depth >= 0 {
			return s.below(m, depth)
		}
	}
	if calls || anyVersion(op, passers) {
		reads, err := readsFiles(m.n)
		if err != nil {
			return tensor.Tensor{}, err
		}
		if reads {
			return s.source(m)
		}
	}
	switch {
	case anyVersion(op, fileReaders):
		return s.source(m)
	case calls, anyVersion(op, passers):
		below, err := s.files(&m.inputs[0])
		if err != nil {
			return tensor.Tensor{}, err
		}
		return m.withFirst(s.r, below)
	}
	return tensor.Tensor{}, status.NotFoundf("Did not find a shardable source, walked to a node which is not a dataset: %s. Consider either "+
		"turning off auto-sharding or switching the auto_shard_policy to DATA to shard this dataset. You can do this by creating a new "+
		"`tf.data.Options()` object then setting `options.experimental_distribute.auto_shard_policy = AutoShardPolicy.DATA` before applying "+
		"the options object to the dataset via `dataset.with_options(options)`.", op)
}

// functionOverTensors searches below m for a function call on the rows of tensors, which may return
// datasets of files. It returns how many stages below m that call is, or -1 if there is none.
func (s *sharder) functionOverTensors(m *nodeDataset) int {
	for depth := 0; ; depth++ {
		m = nodeDatasetOf(&m.inputs[0])
		//sizedmake:ok part of a graph
		if m == nil || !anyVersion(m.op(), append(callers, passers...)) {
			return -1
		}
		if anyVersion(m.op(), callers) {
			if in := nodeDatasetOf(&m.inputs[0]); in != nil && (in.op() == "TensorSliceDataset" || in.op() == "TensorDataset") {
				return depth
			}
			return -1
		}
	}
}

// below shards the input of the dataset that is depth stages below m.
func (s *sharder) below(m *nodeDataset, depth int) (tensor.Tensor, error) {
	if depth == 0 {
		return s.source(m)
	}
	t, err := s.below(nodeDatasetOf(&m.inputs[0]), depth-1)
	if err != nil {
		return t, err
	}
	return m.withFirst(s.r, t)
}

// readsFiles reports whether a function of a node creates datasets of files.
func readsFiles(n *node) (bool, error) {
	f := n.Attrs.Func("f")
	if f.Name == "" {
		return false, nil
	}
	lib, err := n.libraryOf(f.Name)
	if err != nil {
		return false, err
	}
	functions := map[string]*pb.FunctionDef{}
	for _, f := range lib.GetFunction() {
		//sizedmake:ok part of a graph
		functions[f.GetSignature().GetName()] = f
	}
	return functionReadsFiles(functions, f.Name), nil
}

// functionReadsFiles reports whether a function, or one that it calls for each element, creates
// datasets of files. It removes each visited function from functions, so that a recursion ends.
func functionReadsFiles(functions map[string]*pb.FunctionDef, name string) bool {
	f := functions[name]
	delete(functions, name)
	return slices.ContainsFunc(f.GetNodeDef(), func(n *pb.NodeDef) bool {
		return anyVersion(n.GetOp(), fileReaders) && len(n.GetInput()) > 0 ||
			anyVersion(n.GetOp(), callers) && functionReadsFiles(functions, n.GetAttr()["f"].GetFunc().GetName())
	})
}

// source shards the input of m. A shuffle before the shard is moved behind it, so that all workers
// split the elements in the same order.
func (s *sharder) source(m *nodeDataset) (tensor.Tensor, error) {
	if nodeDatasetOf(&m.inputs[0]) == nil {
		return tensor.Tensor{}, status.NotFoundf("Unable to shard this input. You may need to wrap the inputs to your reader dataset in a " +
			"TensorSliceDataset.")
	}
	in := m.inputs[0].Retain()
	var shuffle *nodeDataset
	for _, op := range []string{"ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3"} {
		rest, last, err := s.removeShuffle(op, &in)
		in.Release()
		if err != nil {
			return tensor.Tensor{}, err
		}
		if in, shuffle = rest, last; shuffle != nil {
			break
		}
	}
	out, err := s.shard(&in)
	in.Release()
	if err != nil {
		return out, err
	}
	if shuffle != nil {
		if out, err = s.shuffle(shuffle, out); err != nil {
			return out, err
		}
	}
	return m.withFirst(s.r, out)
}

// removeShuffle removes the datasets of a shuffling operation and returns the last one found.
func (s *sharder) removeShuffle(op string, t *tensor.Tensor) (out tensor.Tensor, last *nodeDataset, err error) {
	m := nodeDatasetOf(t)
	if m == nil {
		return t.Retain(), nil, nil
	}
	if m.op() == op {
		out, last, err = s.removeShuffle(op, &m.inputs[0])
		if last == nil {
			last = m
		}
		return out, last, err
	}
	out, err = m.rewrite(s.r, func(in *tensor.Tensor) (tensor.Tensor, error) {
		rest, found, err := s.removeShuffle(op, in)
		if found != nil {
			last = found
		}
		return rest, err
	})
	if last == nil && err == nil { // unchanged
		out.Release()
		return t.Retain(), nil, nil
	}
	return out, last, err
}

// shuffle shuffles t with the parameters of an existing shuffling dataset.
func (s *sharder) shuffle(as *nodeDataset, t tensor.Tensor) (tensor.Tensor, error) {
	attrs := specAttrs(nodeDatasetOf(&t).elementSpec())
	if v, ok := as.n.Attrs["reshuffle_each_iteration"]; ok {
		attrs["reshuffle_each_iteration"] = v
	}
	inputs := as.inputs.retain()
	inputs[0].Release()
	inputs[0] = t
	return s.n.newDataset(s.r, as.op(), attrs, inputs...)
}

func specAttrs(s *spec) opdef.Attrs {
	return opdef.Attrs{"output_types": s.types, "output_shapes": s.shapes}
}

// shard returns the worker's shard of the elements of a dataset.
func (s *sharder) shard(t *tensor.Tensor) (tensor.Tensor, error) {
	d, err := datasetOf(t)
	if err != nil {
		return tensor.Tensor{}, err
	}
	attrs := specAttrs(d.elementSpec())
	attrs["require_non_empty"] = true
	return s.n.newDataset(s.r, "ShardDataset", attrs, t.Retain(), tensor.Scalar(s.workers), tensor.Scalar(s.index))
}

// elements shards the elements. Trailing prefetches and options stay behind the shard.
func (s *sharder) elements(t *tensor.Tensor) (tensor.Tensor, error) {
	m := nodeDatasetOf(t)
	if m == nil {
		return s.shard(t)
	}
	switch m.op() {
	case "PrefetchDataset", "OptionsDataset", "FinalizeDataset":
		in, err := s.elements(&m.inputs[0])
		if err != nil {
			return in, err
		}
		return m.withFirst(s.r, in)
	case "RebatchDatasetV2":
		batches, err := s.batchesPerReplica(m)
		if err != nil {
			return batches, err
		}
		defer batches.Release()
		return s.shard(&batches)
	}
	return s.shard(t)
}

// batchesPerReplica splits each batch into one batch per replica, whatever its size.
func (s *sharder) batchesPerReplica(m *nodeDataset) (tensor.Tensor, error) {
	if s.replicas < 1 {
		return tensor.Tensor{}, status.InvalidArgumentf("Cannot rewrite RebatchDatasetV2 to legacy RebatchDataset with invalid num_replicas "+
			"argument. `num_replicas` is %d, but expected to be >= 1.", s.replicas)
	}
	of := *m.elementSpec()
	//sizedmake:ok components of an element
	of.shapes = slices.Clone(of.shapes)
	for i, shape := range of.shapes {
		if shape.RankKnown() && shape.Rank() > 0 {
			dims := shape.Dims()
			dims[0] = tensor.UnknownDim
			of.shapes[i] = tensor.MakePartial(dims...)
		}
	}
	return s.n.newDataset(s.r, "RebatchDataset", specAttrs(&of), m.inputs[0].Retain(), tensor.Scalar(s.replicas))
}

// hints replaces the shard hint by the parameters of the worker.
func (s *sharder) hints(t *tensor.Tensor) (tensor.Tensor, error) {
	m := nodeDatasetOf(t)
	if m == nil {
		return t.Retain(), nil
	}
	if d, ok := m.dataset.(*shardDataset); ok && d.shards == shardHint {
		in, err := s.hints(&m.inputs[0])
		if err != nil {
			return in, err
		}
		defer in.Release()
		return s.shard(&in)
	}
	return m.rewrite(s.r, s.hints)
}
