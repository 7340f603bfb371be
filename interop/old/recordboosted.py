"""Records answers of the operations of boosted trees, as scripts of kernel tests.

    ENVIRONMENT/bin/python interop/old/recordboosted.py > internal/kernels/boosted/testdata/1.15.txt

It runs in the environments of TensorFlow 1.15 and 2.4. The latter has trees with several logits.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

NAMES = {tf.float32: "float", tf.int32: "int32", tf.int64: "int64", tf.string: "string", tf.bool: "bool"}
LATER = tf.__version__ >= "2"


def quoted(value):
    escaped = "".join(
        chr(b) if 32 <= b < 127 and b not in (34, 92) else "\\x%02x" % b for b in bytearray(value)
    )
    return '"%s"' % escaped


def text(value, dtype):
    value = np.asarray(value, object if dtype == tf.string else None)
    if dtype == tf.string:
        items = [quoted(v) for v in value.ravel().tolist()]
    elif dtype == tf.bool:
        items = [str(v).lower() for v in value.ravel().tolist()]
    else:
        items = ["%.9g" % v for v in value.ravel().tolist()]
    shape = "[%s]" % ",".join(str(n) for n in value.shape)
    return " ".join([NAMES[dtype], shape] + items)


def attr(value):
    kind = value.WhichOneof("value")
    return {"i": lambda: "%d" % value.i, "b": lambda: str(value.b).lower(), "s": lambda: quoted(value.s)}[kind]()


class Script:
    """Runs operations one after the other and prints them."""

    def __init__(self, name):
        tf.reset_default_graph()
        self.session, self.steps = tf.Session(), {}
        print("\nscript %s" % name)

    def step(self, name, op, tolerance=0, **inputs):
        """Returns the outputs of an operation, as tensors of the graph."""
        out = getattr(tf.raw_ops, op)(name=name, **inputs)
        node = tf.get_default_graph().get_operation_by_name(name)
        attrs = ["%s=%s" % (k, attr(v)) for k, v in sorted(node.node_def.attr.items()) if k[0] != "_"]
        print("step %s %s" % (name, " ".join([op] + attrs)))
        for tensor in node.inputs:
            step = self.steps.get(tensor.name)
            if step:
                print("in @%s" % step)
            else:
                print("in %s" % text(self.session.run(tensor), tensor.dtype))
        if tolerance:
            print("tol %g" % tolerance)
        for i, tensor in enumerate(node.outputs):
            self.steps[tensor.name] = "%s:%d" % (name, i) if i else name
        if node.outputs and node.outputs[0].dtype == tf.resource:
            print("out _")
            return out
        values = self.session.run(list(node.outputs) or node)
        for tensor, value in zip(node.outputs, values or []):
            print("out %s" % text(value, tensor.dtype))
        return values


def column(*values):
    return np.array(values, np.float32).reshape(-1, 1)


def floats(*values):
    return np.array(values, np.float32)


def ints(*values):
    return np.array(values, np.int32)


def quantiles():
    s = Script("quantiles")
    random = np.random.RandomState(1)
    streams = s.step("h", "BoostedTreesQuantileStreamResourceHandleOp", shared_name="quantiles")
    s.step("before", "IsBoostedTreesQuantileStreamResourceInitialized", quantile_stream_resource_handle=streams)
    s.step(
        "create", "BoostedTreesCreateQuantileStreamResource", quantile_stream_resource_handle=streams,
        epsilon=0.05, num_streams=np.int64(2), max_elements=1000,
    )
    s.step("after", "IsBoostedTreesQuantileStreamResourceInitialized", quantile_stream_resource_handle=streams)
    for i in range(3):
        features = [random.randint(-50, 50, 200) / 8.0, random.randint(0, 9, 200) / 1.0]
        features = [f.astype(np.float32) for f in features]
        weights = floats(1) if i == 0 else (random.randint(0, 5, 200) / 2.0).astype(np.float32)
        made = s.step(
            "make%d" % i, "BoostedTreesMakeQuantileSummaries", float_values=features,
            example_weights=weights, epsilon=0.05,
        )
        s.step(
            "add%d" % i, "BoostedTreesQuantileStreamResourceAddSummaries",
            quantile_stream_resource_handle=streams, summaries=made,
        )
    s.step("flush", "BoostedTreesQuantileStreamResourceFlush", quantile_stream_resource_handle=streams, num_buckets=np.int64(7))
    bounds = s.step(
        "bounds", "BoostedTreesQuantileStreamResourceGetBucketBoundaries",
        quantile_stream_resource_handle=streams, num_features=2,
    )
    values = [floats(-9, -6.25, 0, 0.1, 6, 99), floats(0, 1, 2.5, 4, 8, 9)]
    s.step("bucket", "BoostedTreesBucketize", float_values=values, bucket_boundaries=bounds)
    s.step(
        "again", "BoostedTreesQuantileStreamResourceAddSummaries",
        quantile_stream_resource_handle=streams, summaries=made,
    )
    s.step(
        "exact", "BoostedTreesQuantileStreamResourceFlush", quantile_stream_resource_handle=streams,
        num_buckets=np.int64(5), generate_quantiles=True,
    )
    s.step(
        "quantiles", "BoostedTreesQuantileStreamResourceGetBucketBoundaries",
        quantile_stream_resource_handle=streams, num_features=2,
    )
    s.step(
        "more", "BoostedTreesQuantileStreamResourceAddSummaries",
        quantile_stream_resource_handle=streams, summaries=made,
    )
    s.step(
        "summaries", "BoostedTreesFlushQuantileSummaries",
        quantile_stream_resource_handle=streams, num_features=2,
    )
    s.step(
        "set", "BoostedTreesQuantileStreamResourceDeserialize", quantile_stream_resource_handle=streams,
        # the shape function takes a known shape for an error
        bucket_boundaries=[tf.placeholder_with_default(v, None) for v in (floats(1, 2), floats(3))],
    )
    s.step(
        "restored", "BoostedTreesQuantileStreamResourceGetBucketBoundaries",
        quantile_stream_resource_handle=streams, num_features=2,
    )


def batch(seed, logits=1, hessians=1, size=24, features=2, dimensions=3, buckets=4):
    random = np.random.RandomState(seed)
    return {
        "nodes": random.randint(0, 3, size).astype(np.int32),
        "gradients": (random.randint(-8, 9, (size, logits)) / 8.0).astype(np.float32),
        "hessians": (random.randint(1, 9, (size, hessians)) / 8.0).astype(np.float32),
        "features": [random.randint(-1, buckets, (size, dimensions)).astype(np.int32) for _ in range(features)],
    }


SPLITS = (
    dict(l1=0.0, l2=0.0, tree_complexity=0.0, min_node_weight=0.0),
    dict(l1=0.1, l2=0.5, tree_complexity=0.25, min_node_weight=4.0),
)


def stats():
    s, b = Script("stats"), batch(2)
    common = dict(node_ids=b["nodes"], gradients=b["gradients"], hessians=b["hessians"], max_splits=4)
    lists = [np.maximum(f[:, 0], 0) for f in b["features"]]
    summary = s.step("make", "BoostedTreesMakeStatsSummary", bucketized_features_list=lists, num_buckets=4, **common)[0]
    for i, params in enumerate(SPLITS):
        s.step(
            "gains%d" % i, "BoostedTreesCalculateBestGainsPerFeature", tolerance=1e-5, node_id_range=ints(0, 3),
            stats_summary_list=[summary[0], summary[1]], max_splits=4, **params
        )
    dense = s.step("aggregate", "BoostedTreesAggregateStats", feature=b["features"][0], num_buckets=4, **common)[0]
    for i, params in enumerate(SPLITS):
        for kind in ("inequality", "equality"):
            s.step(
                "split_%s%d" % (kind, i), "BoostedTreesCalculateBestFeatureSplit", tolerance=1e-5, node_id_range=ints(0, 4),
                stats_summary=dense, logits_dimension=1, split_type=kind, **params
            )
    f = b["features"][1]
    present = np.argwhere(f >= 0).astype(np.int32)
    sparse = s.step(
        "sparse", "BoostedTreesSparseAggregateStats", feature_indices=present, feature_values=f[f >= 0],
        feature_shape=np.array(f.shape, np.int32), num_buckets=4, **common
    )
    for i, params in enumerate(SPLITS):
        s.step(
            "sparse_split%d" % i, "BoostedTreesSparseCalculateBestFeatureSplit", tolerance=1e-5, node_id_range=ints(0, 4),
            stats_summary_indices=sparse[0], stats_summary_values=sparse[1], stats_summary_shape=sparse[2],
            logits_dimension=1, **params
        )


def classes(hessians):
    """Splits with three logits and a diagonal or a full hessian."""
    s, b = Script("classes_%d" % hessians), batch(3, logits=3, hessians=hessians)
    common = dict(node_ids=b["nodes"], gradients=b["gradients"], hessians=b["hessians"], max_splits=3, num_buckets=4)
    dense = []
    for i, f in enumerate(b["features"]):
        dense += s.step("aggregate%d" % i, "BoostedTreesAggregateStats", feature=f, **common)
    params = dict(l1=0.0, l2=1.0, tree_complexity=0.1, min_node_weight=0.0)
    for kind in ("inequality", "equality"):
        s.step(
            "split_%s" % kind, "BoostedTreesCalculateBestFeatureSplit", tolerance=2e-4, node_id_range=ints(0, 3),
            stats_summary=dense[0], logits_dimension=3, split_type=kind, **params
        )
    if LATER:
        for kinds in (("inequality", "inequality"), ("equality", "inequality")):
            s.step(
                "splits_%s" % kinds[0], "BoostedTreesCalculateBestFeatureSplitV2", tolerance=2e-4, node_id_range=ints(0, 3),
                stats_summaries_list=dense, split_types=np.array(kinds), candidate_feature_ids=ints(5, 2),
                logits_dimension=3, **params
            )


def predictions(s, step, trees, features, logits=1, cached=None):
    s.step(
        "predict_%s" % step, "BoostedTreesPredict", tree_ensemble_handle=trees, bucketized_features=features,
        logits_dimension=logits, tolerance=1e-6,
    )
    if cached is None:
        cached = [ints(*[0] * len(features[0])), ints(*[-1] * len(features[0]))]
    out = s.step(
        "train_%s" % step, "BoostedTreesTrainingPredict", tree_ensemble_handle=trees, cached_tree_ids=cached[0],
        cached_node_ids=cached[1], bucketized_features=features, logits_dimension=logits, tolerance=1e-6,
    )
    s.step("states_%s" % step, "BoostedTreesGetEnsembleStates", tree_ensemble_handle=trees)
    s.step("bytes_%s" % step, "BoostedTreesSerializeEnsemble", tree_ensemble_handle=trees)
    return out[1:]


def create(s):
    trees = s.step("h", "BoostedTreesEnsembleResourceHandleOp", shared_name="trees")
    s.step("before", "IsBoostedTreesEnsembleInitialized", tree_ensemble_handle=trees)
    s.step(
        "create", "BoostedTreesCreateEnsemble", tree_ensemble_handle=trees, stamp_token=np.int64(3),
        tree_ensemble_serialized=b"",
    )
    s.step("after", "IsBoostedTreesEnsembleInitialized", tree_ensemble_handle=trees)
    return trees


def grow():
    """A tree per pruning mode, whose last layer has negative gains."""
    for mode in range(3):
        s = Script("grow_%d" % mode)
        trees = create(s)
        features = [ints(0, 1, 2, 3, 0, 5), ints(3, 2, 1, 0, 0, 4)]
        cached = predictions(s, "empty", trees, features)
        for name in ("center", "center_again"):
            s.step(
                name, "BoostedTreesCenterBias", tree_ensemble_handle=trees, mean_gradients=column(2),
                mean_hessians=column(5), l1=0.0, l2=1.0, tolerance=1e-6,
            )
        cached = predictions(s, "centered", trees, features, cached=cached)
        layers = (
            ([ints(0), ints(0)], [floats(2.5), floats(1.5)], [ints(1), ints(2)]),
            ([ints(1), ints(1, 2)], [floats(-0.5), floats(-0.25, 0.5)], [ints(0), ints(2, 0)]),
            ([ints(3, 4), ints(3, 5)], [floats(-0.5, 0.25), floats(-0.75, -0.125)], [ints(0, 0), ints(2, 3)]),
            ([ints(0), ints(0)], [floats(1.0), floats(1.0)], [ints(2), ints(1)]),
        )
        for i, (nodes, gains, thresholds) in enumerate(layers):
            if mode == 1 and i == 2:
                nodes = [ints(3, 4), ints(3, 4)]
            left = [column(*[0.5 + 0.25 * j for j in range(len(n))]) for n in nodes]
            right = [column(*[-1.0 - 0.5 * j for j in range(len(n))]) for n in nodes]
            s.step(
                "grow%d" % i, "BoostedTreesUpdateEnsemble", tree_ensemble_handle=trees, feature_ids=ints(1, 0),
                node_ids=nodes, gains=gains, thresholds=thresholds, left_node_contribs=left,
                right_node_contribs=right, max_depth=3, learning_rate=0.1, pruning_mode=mode,
            )
            cached = predictions(s, "layer%d" % i, trees, features, cached=cached)
        s.step(
            "debug", "BoostedTreesExampleDebugOutputs", tree_ensemble_handle=trees,
            bucketized_features=features, logits_dimension=1,
        )


def kinds():
    """Splits of all kinds, and a restored ensemble."""
    s = Script("kinds")
    trees = create(s)
    features = [ints(0, 1, 2, 3), ints(3, 2, 1, 0)]
    layers = (
        ([ints(0), ints(0)], [floats(2.5), floats(1.5)], ("INEQUALITY_DEFAULT_RIGHT", "EQUALITY_DEFAULT_RIGHT")),
        ([ints(1), ints(1, 2)], [floats(1.0), floats(1.5, 0.5)], ("INEQUALITY_DEFAULT_LEFT", "EQUALITY_DEFAULT_RIGHT")),
    )
    for i, (nodes, gains, types) in enumerate(layers):
        more = dict(feature_ids=ints(1, 0))
        if LATER:
            ids = [ints(*[f] * len(n)) for f, n in zip((1, 0), nodes)]
            more = dict(feature_ids=ids, logits_dimension=1)
        s.step(
            "grow%d" % i, "BoostedTreesUpdateEnsembleV2", tree_ensemble_handle=trees,
            dimension_ids=[ints(*[0] * len(n)) for n in nodes], node_ids=nodes, gains=gains,
            thresholds=[ints(*[1] * len(n)) for n in nodes], left_node_contribs=[column(*[0.5] * len(n)) for n in nodes],
            right_node_contribs=[column(*[-1.5] * len(n)) for n in nodes],
            split_types=[np.array([t] * len(n)) for t, n in zip(types, nodes)], max_depth=2, learning_rate=1.0,
            pruning_mode=0, **more
        )
        if LATER:
            predictions(s, "layer%d" % i, trees, [f.reshape(-1, 1) for f in features])
        else:
            predictions(s, "layer%d" % i, trees, features)
    stamp, serialized = s.step("save", "BoostedTreesSerializeEnsemble", tree_ensemble_handle=trees)
    s.step(
        "load", "BoostedTreesDeserializeEnsemble", tree_ensemble_handle=trees, stamp_token=np.int64(9),
        tree_ensemble_serialized=serialized,
    )
    s.step("states", "BoostedTreesGetEnsembleStates", tree_ensemble_handle=trees)


def many():
    """Trees with three logits."""
    for mode in (0, 2):
        s = Script("many_%d" % mode)
        trees = create(s)
        features = [ints(0, 1, 2, 3).reshape(2, 2), ints(3, 2, 1, 0).reshape(2, 2)]
        cached = predictions(s, "empty", trees, features, logits=3)
        for i, (nodes, gains) in enumerate((([ints(0)], [floats(2.5)]), ([ints(1, 2)], [floats(-1, 0.5)]))):
            n = len(nodes[0])
            s.step(
                "grow%d" % i, "BoostedTreesUpdateEnsembleV2", tree_ensemble_handle=trees,
                feature_ids=[ints(*[1] * n)], dimension_ids=[ints(*[1] * n)], node_ids=nodes, gains=gains,
                thresholds=[ints(*range(n))], left_node_contribs=[np.arange(3 * n).reshape(n, 3).astype(np.float32)],
                right_node_contribs=[-np.arange(3 * n).reshape(n, 3).astype(np.float32) / 4],
                split_types=[np.array(["INEQUALITY_DEFAULT_LEFT"] * n)], max_depth=2, learning_rate=0.5,
                pruning_mode=mode, logits_dimension=3,
            )
            cached = predictions(s, "layer%d" % i, trees, features, logits=3, cached=cached)


def main():
    tf.disable_eager_execution()
    print("# Recorded from TensorFlow %s on CPU by interop/old/recordboosted.py." % tf.__version__)
    if not LATER:  # boundaries of buckets have changed since
        quantiles()
    stats()
    classes(3)
    classes(9)
    kinds()
    if LATER:
        many()
    else:
        grow()


if __name__ == "__main__":
    main()
