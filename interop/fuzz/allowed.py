"""Operations that are not tried, and expected differences. Every entry has its reason."""
import math
import re

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import summary_pb2, types_pb2

from interop.fuzz import compare

PRODUCER = 2474  # producer version of graphs

# Operations that are not tried.
SKIPPED = {
    r"^_": "made by the runtime, not by clients",
    r"^(Read|Write)File$|Reader|^(Save|Restore|Load)|Checkpoint|MatchingFiles|TextFile|SummaryWriter|^Write.*Summary|ImportEvent"
    r"|(TFRecord|TextLine|FixedLengthRecord|CSV)(Dataset|DatasetV2|)$|SaveDataset|LoadDataset|Snapshot": "files, or what needs them",
    r"Barrier|[Ss]tage(Peek|Size|Clear|NoKey|)$|^(Ordered)?Map(Stage|Peek|Unstage|Size|Clear|Incomplete)|^Stack(V2|Push|Pop|Close|$)|Mutex|Accumulator"
    r"|Session|^Resource(Create|Initialized|Using)Op": "state that lasts for several steps, or that steps wait for",
    r"^Collective|^Nccl|^Send|^Recv|Xla|TPU|Tpu|^Batch$|^Unbatch(Grad)?$|Rpc|MultiDevice|RemoteCall|^BatchFunction": "several tasks, steps or devices",
    r"^(Abort|Print|PrintV2|Timestamp|Placeholder.*|Const|Assert|Enter|Exit|Switch|Merge|NextIteration|LoopCond|Ref(Switch|Enter|Exit|Merge|NextIteration))$":
        "ends the process, depends on the time, or has a meaning only in a graph",
    r"^NonDeterministicInts$|Sleep": "what it says",
    r"^(PyFunc|EagerPyFunc|PyFuncStateless|Bucketize.*Debug|Debug.*|CheckNumericsV2|.*Copy|CopyHost)$": "calls back, or debugs",
    r"Boosted|DecisionTree|Skipgram|Tfrt|Risc": "families that graphs of sessions do not use",
}

# Operations that get no infinite, NaN or very large values. The algorithms differ in how these affect
# other elements, and in when they fail.
ORDINARY = r"^Bessel|^Ndtri$|^Erf$|^Betainc$|^I?gamma|^Igammac$|^Igamma|^Zeta$|^Polygamma$|FFT|Spectrogram|^Xdivy$|^Xlogy$|Linalg|Matrix|Cholesky|Eig|^Svd$|^Qr$|^Lu$|Tridiagonal" \
    r"|Random|Poisson|Gamma|Binomial|TruncatedNormal"

ALL = tuple(range(99))  # outputs

# Outputs with undefined elements in TensorFlow: (operation, output numbers, reason, condition).
UNDEFINED = [
    (r"^BlockLSTM(V2)?$", (0, 2, 3, 4, 5), "steps behind the longest sequence are not written",
     lambda c: c.given("seq_len_max") < c.given("x").shape[0]),
    (r"^Empty$", (0,), "nobody asked for zeros", lambda c: not c.attrs["init"].b),
    (r"^FakeParam$", (0,), "the values are not defined", None),
    (r"^FusedBatchNorm(V2|V3)?$", (3, 4), "what training would keep is not written without it, or without images",
     lambda c: not c.attrs["is_training"].b or c.given("x").size == 0),
    (r"^SparseSegment(Mean|SqrtN|Sum)Grad(V2)?$", (0, 1), "nothing is written where there are no indices",
     lambda c: c.given("indices").size == 0),
    (r"^TopKV2$", (0, 1), "without sorted, the order is not defined", lambda c: not c.attrs["sorted"].b),
    (r"^ExtractGlimpse(V2)?$", (0,), "noise that is drawn without a seed", lambda c: c.attrs["noise"].s != b"zero"),
    (r"^SelfAdjointEigV2$", (1,), "vectors are given up to a factor", None),
    (r"^QuantizedMatMul$", (0,), "nothing is written where there is nothing to add up", lambda c: c.given("a").size == 0),
    (r"^I?R?FFT", (0,), "nothing is written where there is nothing to transform", lambda c: c.inputs[0].size == 0),
    (r"^Svd$", (1, 2), "vectors are given up to a factor", None),
    (r"^DatasetToGraph|^DatasetFingerprint$|^StubResourceHandleOp$", (0,), "names of nodes and devices", None),
    (r"^(MutableHashTable(OfTensors)?|MutableDenseHashTable|HashTable|(FIFO|RandomShuffle|PaddingFIFO|Priority)Queue)$", (0,), "names of what has none", None),
    (r"^TemporaryVariable$", (0,), "nothing has been assigned", None),
    (r"^LookupTableExport(V2)?$", (0, 1), "entries come in any order", None),
    (r"^(Shuffle|GlobalShuffle|ExperimentalRandom|Random|Sampling)", ALL, "no seed is given",
     lambda c: {"seed", "seed2"} <= set(c.names) and not c.given("seed").any() and not c.given("seed2").any()),
    (r"^ShuffleDatasetV2$", ALL, "there is no generator of seeds", None),
    (r"^ParallelBatchDataset$", ALL, "batches may come in any order", lambda c: c.attrs["deterministic"].s == b"false"),
    (r"^ImageSummary$", (0,), "images are compressed otherwise", None),
    (r"ChooseFastestDataset$", ALL, "whichever is the fastest", None),
    (r"^SparseMatrixOrderingAMD$", (0,), "rows of the same degree come in any order", None),
    (r"^Eig$", (0, 1), "values come in any order, vectors up to a factor", None),
]

# Larger tolerances than in compare: (operation, type, tolerance, reason).
TOLERANCES = [
    (r"^FusedBatchNormGrad", "float32", 5e-4, "terms that cancel are multiplied by large factors"),
    (r"^BlockLSTMGrad", "float16", 3e-2, "sums of products that were rounded to 16 bits, in another order, cancel"),
    (r"^CTC", "float64", 1e-5, "TensorFlow takes exponents and logarithms of doubles in single precision"),
]

def says(pattern):
    """Returns the condition that TensorFlow's error matches a pattern."""
    return lambda case, theirs, ours: re.search(pattern, theirs)


def weft_says(pattern):
    """Returns the condition that Weft's error matches a pattern."""
    return lambda case, theirs, ours: re.search(pattern, ours)


# Expected differences: (pattern of the operation, pattern of the outcomes, reason, condition). The
# outcomes are "TensorFlow's / Weft's": "ok" or the name of an error code; "ok / other" are different
# results. A condition gets the case and what both sides returned: results, or the text of the error.
DIFFERENCES = [
    (r"", r"UNIMPLEMENTED / .*", "removed from newer graphs, and served here whatever the graph's version", says("It has been removed in version")),
    (r"^EncodePng$", r"ok / other", "another compressor; what it writes is read back alike", lambda c, x, y: same_pixels(x, y)),
    (r"^(Where|Tile)$", r"UNIMPLEMENTED / ok", "types that TensorFlow's CPU kernel has not are served here",
     says("No WhereOp available for float16|TileOp : The input data type is not supported")),
    (r"^(Max|Avg)Pool|Conv|^FusedBatchNorm", r"(INVALID_ARGUMENT|UNIMPLEMENTED) / (INVALID_ARGUMENT|UNIMPLEMENTED|ok)",
     "layouts and dilations that TensorFlow's CPU kernels have not are served here; other mistakes are then found first",
     says("ND?HWC|dilat")),
    (r"^Cholesky$", r"ok / other", "of a matrix that has no factor, TensorFlow leaves what it began with above the diagonal",
     lambda c, x, y: np.isnan(x[0]).any() and compare.close(np.tril(x[0]), np.tril(y[0]), compare.TOLERANCE)),
    (r"^(Lower|Upper)Bound$", r"ok / other", "a search in lines that are not sorted",
     lambda c, *_: not all((a[..., 1:] >= a[..., :-1]).all() for a in [c.given("sorted_inputs")])),
    (r"^RaggedTensorToTensor$", r"ok / INVALID_ARGUMENT", "rows that begin behind their end or not at the first value, or splits that are a scalar: TensorFlow does not look",
     lambda c, *_: any(a.ndim == 0 or a.size == 1 and a[0] > 0 or (a < 0).any() or (np.diff(a) < 0).any() for a, n in zip(c.inputs, c.names) if n == "row_partition_tensors")),
    (r"^BlockLSTMGrad", r"ok / INVALID_ARGUMENT", "TensorFlow does not look at the shapes of states and gates, nor at the lengths of peepholes",
     lambda c, *_: len({c.given(n).shape[-2:] for n in ("cs_prev", "h_prev", "i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad")}) > 1
     or any(c.given(n).size != c.given("cs_prev").shape[-1] for n in ("wci", "wcf", "wco"))),
    (r"^SparseAdd$", r"ok / INVALID_ARGUMENT", "a threshold of another type: TensorFlow takes its bytes for one of the values' type",
     lambda c, *_: c.given("thresh").dtype != np.real(c.given("a_values")).dtype),
    (r"^(Sparse|Ragged)Bincount$", r"ok / INVALID_ARGUMENT", "TensorFlow reads a weight for each value, whether there is one or not",
     lambda c, *_: 0 < c.given("weights").size < c.given("values").size),
    (r"^Conv2DBackprop(Filter|Input)$", r"INVALID_ARGUMENT / ok", "gradients of groups are served here",
     says("Gradients for grouped convolutions are not supported|filter_size does not have enough elements")),
    (r"^Conv2DBackpropFilter$", r"INVALID_ARGUMENT / ok", "of filters and images without elements TensorFlow still looks at the sizes",
     lambda c, *_: 0 in c.given("filter_sizes") or c.given("input").size == 0),
    (r"^DepthwiseConv2dNativeBackprop", r"ok / .*", "TensorFlow's gradients leave dilations aside: its client never asks for them",
     lambda c, *_: any(d != 1 for d in c.attrs["dilations"].list.i)),
    (r"^CTCLoss", r"ok / other", "labels that are no classes: TensorFlow reads what lies behind the inputs",
     lambda c, *_: c.given("labels_values").max(initial=0) >= c.given("inputs").shape[2] - 1),
    (r"^Erf$", r"ok / other", "infinities in float64: the quotient of polynomials that TensorFlow's packets end with gives NaN",
     lambda c, *_: c.inputs[0].dtype == np.float64 and np.isinf(c.inputs[0]).any()),
    (r"^RGBToHSV$", r"ok / other", "colours that are no numbers: the largest of numbers and NaN is either", lambda c, *_: not modest(c)),
    (r"^RandomGammaGrad$", r"ok / other", "samples far below their mean, for which TensorFlow's series ends with 0",
     lambda c, *_: (c.given("alpha") > 10 * c.given("sample")).any()),
    (r"^LoadAndRemapMatrix$", r"NOT_FOUND / INVALID_ARGUMENT", "a file name with a NUL in it: TensorFlow's ends there",
     lambda c, *_: any(b"\0" in v for v in c.given("ckpt_path").ravel())),
    (r"^LSTMBlockCell(Grad)?$", r"ok / INVALID_ARGUMENT", "TensorFlow does not look at the lengths of peepholes",
     lambda c, *_: len({c.given(n).size for n in ("wci", "wcf", "wco")}) > 1),
    (r"^(CumulativeLogsumexp|NthElement)$", r"ok / other", "NaN has no place among numbers", lambda c, *_: np.isnan(np.asarray(c.inputs[0], float)).any()),
    (r"^Conv2DBackpropInput$", r"INVALID_ARGUMENT / ok", "of images without elements TensorFlow still looks at the sizes",
     lambda c, *_: c.given("out_backprop").size == 0 or 0 in c.given("input_sizes")),
    (r"Bincount$", r"RESOURCE_EXHAUSTED / INTERNAL", "a result of more than the 2 GiB that a message holds: TensorFlow needs it once for each thread",
     says("OOM when allocating tensor")),
    (r"^MatrixBandPart$", r"ok / other", "the least integer, which TensorFlow negates",
     lambda c, *_: any((a == np.iinfo(a.dtype).min).any() for a, n in zip(c.inputs, c.names) if n in ("num_lower", "num_upper"))),
    (r"^Arg(Min|Max)$", r"ok / INVALID_ARGUMENT", "of a dimension TensorFlow takes the lower 32 bits",
     lambda c, *_: abs(int(c.given("dimension"))) >= 1 << 31),
    (r"^Fractional(Avg|Max)PoolGrad$", r"ok / INVALID_ARGUMENT", "windows that end before they begin, or behind the image: TensorFlow does not look",
     lambda c, *_: any((np.diff(a) < 0).any() or a.max(initial=0) > pooled_size(c, "col" in n)
                       for a, n in zip(c.inputs, c.names) if n.endswith("_sequence"))),
    (r"^Extract(Image|Volume)Patches$", r"UNIMPLEMENTED / INVALID_ARGUMENT", "of two mistakes the other one is found first",
     says("Only support (ksizes|strides|rates) across space")),
    (r"^Cholesky$", r"ok / other", "of complex matrices that are not Hermitian, TensorFlow factors what it finds",
     lambda c, *_: c.inputs[0].dtype.kind == "c"),
    (r"Vocab|FixedUnigram", r"NOT_FOUND / INVALID_ARGUMENT", "a file name with a NUL in it: TensorFlow's ends there",
     lambda c, *_: b"\0" in c.attrs["vocab_file"].s if "vocab_file" in c.attrs else True),
    (r"^StringFormat$", r"ok / other", "TensorFlow prints complex numbers as question marks, and not by their dimensions",
     lambda c, *_: any(a.dtype.kind == "c" for a in c.inputs)),
    (r"^(Where|Reverse)$", r"INVALID_ARGUMENT / ok", "scalars and tensors without elements, which TensorFlow's CPU kernels refuse",
     says("WhereOp : Unhandled input dimensions|Invalid input first dimension. Found 0")),
    (r"^Segment", r"RESOURCE_EXHAUSTED / INVALID_ARGUMENT", "TensorFlow takes memory for the last segment before it looks at the order",
     lambda c, *_: (np.diff(c.given("segment_ids")) < 0).any()),
    (r"^DrawBoundingBoxes", r"ok / other", "boxes that are not finite: TensorFlow makes integers of them, for which C++ has no rule",
     lambda c, *_: not np.isfinite(c.given("boxes")).all()),
    (r"^FusedResizeAndPadConv2D$", r"ok / other", "pixels that are not finite: TensorFlow leaves a neighbour with the weight 0 aside, unlike in ResizeBilinear",
     lambda c, *_: not modest(c)),
    (r"^CTCBeamSearchDecoder$", r"INVALID_ARGUMENT / ok", "scores that are not finite, or far apart: TensorFlow runs out of beams",
     lambda c, *_: not (np.abs(c.given("inputs")) < 1e4).all()),
    (r"^Svd$", r"ok / other", "of complex matrices with NaN TensorFlow gives zeros, of real ones NaN",
     lambda c, *_: c.inputs[0].dtype.kind == "c" and np.isnan(c.inputs[0]).any()),
    (r"^BandedTriangularSolve$", r"ok / INVALID_ARGUMENT", "TensorFlow counts the bands only where shapes are known beforehand",
     lambda c, *_: c.given("matrix").shape[-2] > c.given("matrix").shape[-1]),
    (r"^(SparseDenseCwiseDiv|ScaleAndTranslate|BandedTriangularSolve)$", r"INVALID_ARGUMENT / ok", "numbers below the normal ones, which are 0 for TensorFlow",
     lambda c, *_: any(map(below_normal, c.inputs))),
    (r"^Round$", r"ok / other", "TensorFlow rounds integers to 0", lambda c, *_: c.inputs[0].dtype.kind in "iu"),
    (r"^TopK$", r"INVALID_ARGUMENT / ok", "TensorFlow's kernel asks for an attribute that the operation has not",
     says("has constraint on attr 'index_type' not in NodeDef")),
    (r"^NearestNeighbors$", r"ok / other", "distances that are no numbers come in any order", lambda c, *_: not modest(c)),
    (r"^(RandomGammaGrad|Igamma.*)$", r"ok / other", "outside of the domain: TensorFlow gives what its series ends with",
     lambda c, *_: not all((np.asarray(a) > 0).all() for a in c.inputs)),
    (r"^ImageProjectiveTransform", r"ok / other", "transforms that are not finite: TensorFlow makes integers of places that are nowhere, for which C++ has no rule",
     lambda c, *_: not np.isfinite(c.given("transforms")).all()),
    (r"^(Batch)?Matrix(Inverse|Solve|SolveLs)$", r"ok / other", "matrices that are nearly singular, which make much of roundings",
     lambda c, x, y: roundings(c, x[0], y[0])),
    (r"^ImageProjectiveTransform", r"ok / INVALID_ARGUMENT", "TensorFlow logs that there is no such mode, and goes by memory that was never set",
     lambda c, *_: c.attrs["interpolation"].s not in (b"NEAREST", b"BILINEAR")
     or c.attrs["fill_mode"].s not in (b"REFLECT", b"WRAP", b"CONSTANT", b"NEAREST")),
    (r"^AvgPool(3D)?Grad$", r"ok / INVALID_ARGUMENT", "TensorFlow takes gradients of any size that do not reach beyond the end of the image",
     lambda c, x, y: "Expected grad shape to be" in y),
    (r"^SparseReorder$", r"ok / INVALID_ARGUMENT", "TensorFlow sorts indices without making a shape of the sizes",
     lambda c, *_: bad_sizes(c.given("input_shape"))),
    (r"^SparseCross", r"ok / other", "indices out of range: TensorFlow counts in memory that is not its own",
     lambda c, *_: any((a < 0).any() for a, n in zip(c.inputs, c.names) if n == "indices")),
    (r"^(Static)?RegexReplace$", r"ok / other", "bytes that are no characters: here an expression may match them",
     lambda c, *_: any(not_text(v) for v in c.inputs[0].ravel())),
    (r"^((Cos|Sin|Tan|Acos|Asin|Atan)h?|Expm?1?|Log(1p)?|R?Sqrt|(Inv|Reciprocal|Rsqrt|Sqrt|Tanh|Sigmoid)(Grad)?|Pow|Mul|MulNoNan|(Real)?Div|DivNoNan|X(divy|logy|log1py)"
     r"|Square|Sign|(Banded|Matrix)TriangularSolve|.*MatMul.*|Einsum|Prod|Cumprod|Conv.*|(Resource)?(Sparse)?Apply.*)$", r"ok / other",
     "complex numbers that are not finite, or whose squares are not: TensorFlow has one formula for packets and one for the rest, and an element's place decides",
     lambda c, *_: any(a.dtype.kind == "c" for a in c.inputs) and not modest(c)),
    (r"Div|^Inv|^Reciprocal|^Rsqrt|^Pow$|^TridiagonalSolve$", r"ok / other", "complex numbers divided by 0: the same",
     lambda c, *_: any(a.dtype.kind == "c" and not a.all() for a in c.inputs)),
    (r"^(?!(SelfAdjoint)?Eig)", r"ok / other", "numbers below the normal ones: TensorFlow's threads take them for 0, but for eigenvalues",
     lambda c, *_: any(map(below_normal, c.inputs))),
    (r"^LRN$", r"ok / other", "numbers whose squares are not finite: TensorFlow's product with a matrix gives all channels a share of 0 in them",
     lambda c, *_: not modest(c)),
    (r"^FractionalMaxPoolGrad$", r"ok / INVALID_ARGUMENT", "TensorFlow reads as many gradients as there are outputs, whatever their shape",
     lambda c, *_: c.given("out_backprop").shape != c.given("orig_output").shape),
    (r"^RaggedTensorToTensor$", r"ok / other", "rows that end behind the last value: TensorFlow reads what is there",
     lambda c, *_: any(a.max(initial=0) > c.given("values").shape[0] for a, n in zip(c.inputs, c.names) if n == "row_partition_tensors")),
    (r"^RaggedTensorToTensor$", r"ok / other", "rows of values that are not in order: TensorFlow puts those that belong farther in front behind the last one",
     lambda c, *_: any((np.diff(a) < 0).any() for a, kind in zip(c.inputs[3:], c.attrs["row_partition_types"].list.s) if kind == b"VALUE_ROWIDS")),
    (r"^RaggedTensorToSparse$", r"ok / other", "splits that are a scalar: TensorFlow reads a first dimension, and finds anything",
     lambda c, *_: any(a.ndim == 0 for a, n in zip(c.inputs, c.names) if n == "rt_nested_splits")),
    (r"^Zeta$", r"ok / other", "in single precision TensorFlow adds up nine terms before its series, which is for numbers above 0",
     lambda c, *_: c.given("q").dtype != np.float64 and (c.given("q") < -9).any()),
    (r"^BesselY1$", r"ok / other", "of 0, TensorFlow gives NaN in single precision, and minus infinity in double",
     lambda c, x, y: c.inputs[0].dtype != np.float64 and compare.close(x[0][c.inputs[0] != 0], y[0][c.inputs[0] != 0], compare.TOLERANCE)),
    (r"^DecodeProtoV2$", r"ok / DATA_LOSS", "numbers of ten bytes with bits beyond the 64th, which are not taken here where messages are sanitized",
     lambda c, *_: c.attrs["sanitize"].b and any(re.search(rb"[\x80-\xff]{9}[\x02-\x7f]", v) for v in c.given("bytes").ravel())),
    (r"^SamplingDataset$", r"ok / other", "no seed is given", lambda c, *_: not c.given("seed").any() and not c.given("seed2").any()),
    (r"^RandomIndexShuffle$", r"ok / INVALID_ARGUMENT", "TensorFlow only asserts that there are enough rounds, and an even number",
     lambda c, *_: c.attrs["rounds"].i < 4 or c.attrs["rounds"].i % 2),
    (r"^KmeansPlusPlus", r"ok / other", "points that are infinitely far away, or nowhere", lambda c, *_: not modest(c)),
    (r"^ParallelConcat$", r"ok / INVALID_ARGUMENT", "TensorFlow leaves rows unwritten for which there is no value",
     lambda c, *_: len(c.inputs) != c.attrs["shape"].shape.dim[0].size),
    (r"^SparseCross", r"ok / other", "indices that are not in order: TensorFlow counts the rows as they come",
     lambda c, *_: any((np.diff(a[:, 0]) < 0).any() for a, n in zip(c.inputs, c.names) if n == "indices" and a.ndim == 2 and a.size)),
    (r"^(Conv([23]D)?|DepthwiseConv2dNative(BackpropInput)?|Fused(ResizeAnd)?PadConv2D)$", r"ok / other", "a filter that is not finite: TensorFlow also multiplies it by the zeros around an image",
     lambda c, x, y: (c.attrs["padding"].s != b"VALID" or c.op.endswith("BackpropInput")) and not np.isfinite(c.given("filter").astype(np.complex128)).all()
     and same_where_finite(x, y)),
    (r"^Conv3DBackpropFilterV2$", r"ok / other", "an image that is not finite: TensorFlow also multiplies by it the zeros around a gradient",
     lambda c, x, y: c.attrs["padding"].s != b"VALID" and not modest(c) and same_where_finite(x, y)),
    (r"^Stateless(.*V[23]|Shuffle)$", r"ok / INVALID_ARGUMENT", "TensorFlow asks for one element of a counter, and reads two",
     lambda c, *_: "counter" in c.names and c.given("counter").shape == (1,)),
    (r"^MaxPool3D$", r"ok / other", "NaN: the largest of numbers and NaN is either, as Eigen's packets have it",
     lambda c, *_: np.isnan(c.inputs[0].astype(np.float32)).any()),
    (r"^Adjust(Hue|Saturation)$", r"ok / other", "hues that are no numbers: TensorFlow makes integers of them, for which C++ has no rule",
     lambda c, *_: not modest(c)),
    (r"^ScaleAndTranslate(Grad)?$", r"ok / other", "pixels that are not finite: TensorFlow multiplies them by weights of 0 in results far off",
     lambda c, *_: not modest(c)),
    (r"^DepthwiseConv2dNative", r"ok / INVALID_ARGUMENT", "TensorFlow's kernel takes any number of dilations that are 1",
     lambda c, *_: len(c.attrs["dilations"].list.i) != 4),
    (r"^(Avg|Max)Pool", r"INVALID_ARGUMENT / UNIMPLEMENTED", "of two mistakes the other one is found first",
     says("tensor_in_shape must have 2 spatial dimensions|ksize must be a positive int32 value|ksize field must have non-negative dimensions")),
    (r"^CacheDataset", r"ok / INVALID_ARGUMENT", "a file name with a NUL in it: TensorFlow's ends there", lambda c, *_: b"\0" in c.given("filename").item()),
    (r"^ImmutableConst$", r"NOT_FOUND / INVALID_ARGUMENT", "a file name with a NUL in it: TensorFlow's ends there",
     lambda c, *_: b"\0" in c.attrs["memory_region_name"].s),
    (r"^Unicode(Decode(WithOffsets)?|Encode|Transcode)$", r"(ok / other|ok / INVALID_ARGUMENT)", "ICU's tables of these encodings have more characters",
     lambda c, *_: c.attrs["input_encoding"].s.lower() in MORE_CHARACTERS),
    (r"^CTCBeamSearchDecoder$", r"ok / other", "scores that are not finite or far apart, so that beams with a probability of 0 are left",
     lambda c, *_: not (np.abs(c.given("inputs")) < 1e4).all()),
    (r"^Cast$", r"ok / other", "numbers that the type has not: TensorFlow's packets saturate, and the rest goes around",
     lambda c, *_: c.inputs[0].dtype == np.float32 and (c.attrs["DstT"].type == types_pb2.DT_UINT16) and not ((c.inputs[0] > -1) & (c.inputs[0] < 1 << 16)).all()),
    (r"^(SetSize|(Dense|Sparse)ToSparseSetOperation)$", r"ok / other", "sets that come in pieces: without being asked to, TensorFlow does not look at the order, and takes each piece for a set",
     lambda c, *_: not c.attrs["validate_indices"].b and any(sorted(a.tolist()) != a.tolist() for a, n in zip(c.inputs, c.names) if n.endswith("_indices"))),
    (r"^(SetSize|(Dense|Sparse)ToSparseSetOperation)$", r"ok / INTERNAL", "indices out of range: without being asked to, TensorFlow does not look at all of them",
     lambda c, *_: not c.attrs["validate_indices"].b and any((a < 0).any() or (a >= c.given(n.replace("indices", "shape"))).any()
                                                              for a, n in zip(c.inputs, c.names) if n.endswith("_indices"))),
    (r"^ArgMax$", r"INVALID_ARGUMENT / ok", "a dimension of 16 bits, of which TensorFlow reads 32, and which is then seldom in range",
     lambda c, x, y: c.given("dimension").dtype == np.int16 and "Expected dimension in the range" in x),
    (r"^QuantizeAndDequantizeV[1-4]$", r"ok / other", "NaN: the least and the greatest of numbers and NaN is either, as Eigen's packets have it",
     lambda c, *_: not c.attrs["range_given"].b and np.isnan(c.given("input").astype(float)).any()),
    (r"^TensorStridedSliceUpdate$", r"INVALID_ARGUMENT / ok", "types that TensorFlow's CPU kernel has not are served here", says("Unsupported data type")),
    (r"PrivateThreadPoolDataset$", r"ok / INVALID_ARGUMENT|INVALID_ARGUMENT / ok", "of a number of threads TensorFlow takes the lower 32 bits",
     lambda c, *_: not -1 << 31 <= int(c.given("num_threads")) < 1 << 31),
    (r"^OptimizeDataset", r"INTERNAL / (ok|INVALID_ARGUMENT)", "no optimizer reads its configuration here", says("Wrong format for optimizer options")),
    (r"^Stateful", r"(UNIMPLEMENTED|INVALID_ARGUMENT) / ok", "of no numbers neither algorithm nor state matter here", lambda c, x, y: y[0].size == 0),
    (r"^(Resource|Tensor)?StridedSlice(Assign|Update)$", r"ok / INVALID_ARGUMENT", "TensorFlow takes values with more dimensions than the slice if the first are 1",
     lambda c, x, y: "into final shape" in y and c.given("value").shape[:1] == (1,)),
    (r"^SparseReduce(Max|Sum)(Sparse)?$", r"ok / INTERNAL", "indices out of range, which TensorFlow does not find if no dimension is reduced",
     lambda c, *_: c.given("reduction_axes").size == 0 and (c.given("input_indices") >= c.given("input_shape")).any()),
    (r"^AvgPoolGrad$", r"ok / UNIMPLEMENTED", "of no images TensorFlow looks at nothing", lambda c, *_: c.given("grad").size == 0),
    (r"^(AnonymousRandomSeedGenerator|ExperimentalRandomDataset)$", r"INVALID_ARGUMENT / ok", "TensorFlow's kernel asks for an input that the operation has not",
     says("Unknown input name: reshuffle|Given index was 2")),
    (r"^ResourceGather$", r"ok / INVALID_ARGUMENT", "TensorFlow does not compare the dimensions of batches",
     lambda c, *_: c.attrs["batch_dims"].i > 0),
    (r"^Resource(Scatter(?!Nd))", r"ok / INVALID_ARGUMENT", "TensorFlow asks of the shape of updates only that it begins like that of the indices, if there are any",
     lambda c, *_: c.given("indices").size == 0 or c.given("updates").shape[:c.given("indices").ndim] == c.given("indices").shape),
    (r"^(Resource(Sparse)?|Sparse)?Apply", r"ok / INVALID_ARGUMENT", "TensorFlow does not compare all shapes of slots",
     lambda c, x, y: "same shape" in y),
    (r"^(Resource)?SparseApply(?!Adagrad(V2)?$)", r"ok / INVALID_ARGUMENT", "of gradients that are a scalar TensorFlow reads a first dimension, and whatever is behind the scalar",
     lambda c, *_: c.given("grad").ndim == 0),
    (r"SparseApply(Centered)?RMSProp$", r"ok / other", "running means that are infinite, of which TensorFlow's formula for sparse gradients takes no differences",
     lambda c, x, y: any(np.isinf(a).any() for a, n in zip(c.inputs, c.names) if n in ("mg", "ms")) and same_where_finite(x, y)),
    (r"Adagrad|Ftrl", r"ok / other", "accumulators below 0, of which there are no roots, and the step 0",
     lambda c, *_: any((np.real(a) <= 0).any() for a, n in zip(c.inputs, c.names) if "accum" in n or n == "global_step")),
    (r"^(Resource)?Apply(PowerSign|AddSign)$", r"ok / INVALID_ARGUMENT", "TensorFlow takes the first element of any tensor for a number",
     lambda c, x, y: "is not a scalar" in y),
    (r"^Inplace", r"ok / INVALID_ARGUMENT", "TensorFlow reads a first dimension that scalars have not", lambda c, *_: c.inputs[0].ndim == 0),
    (r"^FakeQuant", r"ok / other", "ranges that end before they begin, or nowhere",
     lambda c, *_: not (c.attrs["min"].f <= c.attrs["max"].f if "min" in c.attrs else (np.isfinite(c.given("max") - c.given("min")) & (c.given("min") <= c.given("max"))).all())),
    (r"^FusedBatchNormGrad", r"ok / other", "a scale that is not finite, by which TensorFlow multiplies what terms add up to and not each of them",
     lambda c, *_: not np.isfinite(c.given("scale")).all()),
    (r"^FusedBatchNormGrad", r"ok / other", "one element for each channel: what is left of equal numbers, times a large factor",
     lambda c, *_: c.given("x").size == c.given("scale").size),
    (r"^(QuantizeDownAndShrinkRange|RequantizationRange)$", r"ok / other", "ranges that are no numbers",
     lambda c, *_: not (np.isfinite(c.given("input_min")) & np.isfinite(c.given("input_max"))).all()),
    (r"ChooseFastestDataset$", r"(INVALID_ARGUMENT / ok|ok / INVALID_ARGUMENT)", "whichever is the fastest",
     lambda c, x, y: "Cannot batch tensors" in str(x) + str(y)),
    (r"^RaggedCross$", r"ok / INVALID_ARGUMENT", "TensorFlow does not compare the indices and the values of sparse tensors",
     lambda c, x, y: "Invalid SparseTensor" in y),
    (r"^RaggedGather$", r"INTERNAL / INVALID_ARGUMENT", "TensorFlow sets fewer outputs than it is asked for, or more",
     lambda c, *_: c.attrs["OUTPUT_RAGGED_RANK"].i != c.attrs["PARAMS_RAGGED_RANK"].i + c.given("indices").ndim - 1),
    (r"^DatasetFromGraph$", r"NOT_FOUND / INVALID_ARGUMENT", "a graph without nodes has no result of a name either", lambda c, *_: c.given("graph_def").item() == b""),
    (r"^QueueDequeue(Many|UpTo)V2$", r"(ok|OUT_OF_RANGE) / INVALID_ARGUMENT", "of a count that is no scalar TensorFlow takes the first element",
     lambda c, *_: c.given("n").ndim > 0),
    (r"^RangeDataset$", r"ok / other", "numbers beyond 64 bits, with which TensorFlow goes on below", lambda c, *_: any((np.abs(a.astype(float)) > 1e18).any() for a in c.inputs)),
    (r"^RequantizePerChannel$", r"ok / INVALID_ARGUMENT", "of no elements TensorFlow looks at nothing", lambda c, *_: c.given("input").size == 0),
    (r"^QuantizedConv2D$", r"ok / other", "ranges without 0: TensorFlow surrounds images by the lowest bits of the number that it takes for 0",
     lambda c, *_: c.attrs["padding"].s == b"SAME" and not c.given("min_input") <= 0 <= c.given("max_input")),
    (r"^QuantizedAvgPool$", r"ok / other", "averages are rounded here, as in TensorFlow with oneDNN; without it, as in this comparison, they are cut off",
     lambda c, x, y: np.abs(x[0].astype(int) - y[0].astype(int)).max(initial=0) <= 1),
    (r"^QuantizedAvgPool$", r"UNIMPLEMENTED / INVALID_ARGUMENT", "of two mistakes the other one is found first", weft_says("shape must be rank 0")),
    (r"^Quantized(Add|Mul)$", r"ok / UNIMPLEMENTED", "TensorFlow repeats the smaller tensor as if its last dimensions were those of the other",
     weft_says("Broadcast between")),
    (r"^QuantizedConv2D", r"INTERNAL / INVALID_ARGUMENT", "TensorFlow's kernel ends without saying why", says("Missing 0-th output")),
    (r"^RequantizePerChannel$", r"ok / INVALID_ARGUMENT", "TensorFlow does not compare the number of ranges with that of channels",
     lambda c, x, y: "has incorrect size" in y),
    (r"^TensorListScatterIntoExistingList$", r"ok / INVALID_ARGUMENT", "TensorFlow writes what has an index below 0 in front of the list",
     lambda c, *_: (c.given("indices") < 0).any()),
    (r"^TensorListScatterIntoExistingList$", r"INVALID_ARGUMENT / ok|ok / other", "elements in between, which TensorFlow takes for tensors without elements",
     lambda c, *_: set(range(len(c.given("input_handle")), c.given("indices").max())) - set(c.given("indices"))),
    (r"^(Resource)?ScatterNd", r"ok / other|ok / INVALID_ARGUMENT", "of indices that are a vector TensorFlow takes the first only",
     lambda c, *_: c.given("indices").ndim == 1 and c.given("indices").size > 1),
    (r"^StatefulRandomBinomial$", r"ok / other", "TensorFlow moves on the value that the variable had, and not the variable, if others hold it",
     lambda c, x, y: compare.close(x[0], y[0], compare.TOLERANCE) and np.array_equal(x[-1], c.given("resource"))),
    (r"^SdcaOptimizer", r"ok / INVALID_ARGUMENT", "TensorFlow does not compare the numbers of sparse indices and weights, and reads behind these",
     weft_says("sparse_indices for")),
    (r"^SdcaOptimizer", r"ok / INVALID_ARGUMENT", "TensorFlow does not compare the numbers of features, of their values and of parameters, and reads behind these",
     weft_says("sparse_feature_values for|dense features for")),
    (r"^BroadcastTo$", r"RESOURCE_EXHAUSTED / INVALID_ARGUMENT", "TensorFlow takes memory before it compares the shapes", says("OOM when allocating tensor")),
    (r"^RaggedTensorToSparse$", r"ok / INVALID_ARGUMENT", "TensorFlow asks a scalar for the size of its first dimension",
     lambda c, *_: c.given("rt_dense_values").ndim == 0),
    (r"^RaggedTensorToVariantGradient$", r"ok / INVALID_ARGUMENT", "TensorFlow copies the rows whether they fill the result or not",
     lambda c, x, y: "the rows have" in y or "which does not fit into" in y),
    (r"^(Resource(Sparse)?|Sparse)?Apply", r"ok / other", "TensorFlow rounds to 16 bits after each step of a formula, and here its result is rounded",
     lambda c, *_: any(a.dtype.name in ("float16", "bfloat16") for a in c.inputs)),
    (r"Ftrl", r"ok / INVALID_ARGUMENT", "numbers below the normal ones, which are 0 for TensorFlow",
     lambda c, *_: any(below_normal(a) for a, n in zip(c.inputs, c.names) if n in ("lr", "l1", "l2", "lr_power", "l2_shrinkage"))),
    (r"^TensorSummaryV2$", r"ok / other", "metadata with fields that nobody knows, or with none, which nobody can tell from no metadata: TensorFlow writes them",
     lambda c, *_: unknown_fields(c.given("serialized_summary_metadata").item())),
    (r"^SparseMatrixSparseMatMul$", r"INVALID_ARGUMENT / ok|ok / INVALID_ARGUMENT", "of two ranks, TensorFlow takes dimensions of b from where a has them",
     lambda c, *_: c.given("a").ndim != c.given("b").ndim),
    (r"^(WindowOp|ListDataset)$", r"ok / INVALID_ARGUMENT", "TensorFlow does not compare types and numbers", weft_says("Data type mismatch|Given a list of")),
    (r"^VariableV2$|^Variable$", r"ok / FAILED_PRECONDITION", "of a variable without elements TensorFlow reads nothing",
     lambda c, *_: any(d.size == 0 for d in c.attrs["shape"].shape.dim)),
    (r"Summary", r"ok / INVALID_ARGUMENT", "tags that are no characters, of which TensorFlow only complains",
     lambda c, x, y: "UTF-8" in y),
    (r"^TensorSummaryV2$", r"ok / DATA_LOSS", "TensorFlow writes what it can read of metadata that cannot be read", None),
    (r"^(StubResourceHandleOp|VarHandleOp)$", r"ok / INVALID_ARGUMENT", "TensorFlow takes any name", weft_says("invalid characters")),
    (r"^Stateful", r"INVALID_ARGUMENT / UNIMPLEMENTED", "of two mistakes the other one is found first",
     says("shape must be a vector")),
    (r"^(Experimental)?Assert(Next|Prev)Dataset$", r"INVALID_ARGUMENT / ok", "asked for one element, nothing looks at neighbours here", says("ransformation")),
    (r"^SplitV$", r"INVALID_ARGUMENT / ok", "of one piece, which its optimizer of graphs takes away, TensorFlow's kernel wants the size itself and not -1",
     says("If there is only one output, .* output size: -1")),
    (r"^SparseAddGrad$", r"ok / other", "indices that are not in order, through which TensorFlow goes side by side",
     lambda c, *_: any(a.tolist() != sorted(a.tolist()) for a, n in zip(c.inputs, c.names) if n.endswith("_indices"))),
    (r"^S(kip|hard)Dataset$", r"ok / (other|INVALID_ARGUMENT)", "a number to which nothing can be added within 64 bits",
     lambda c, *_: any(a.ndim == 0 and a == (1 << 63) - 1 for a in c.inputs if a.dtype == np.int64)),
    (r"SamplingDataset$", r"ok / INVALID_ARGUMENT|INVALID_ARGUMENT / ok", "no seed is given",
     lambda c, x, y: not c.given("seed").any() and not c.given("seed2").any() and "Dataset was empty" in f"{x}{y}"),
    (r"^ParseExample", r"ok / (other|INVALID_ARGUMENT)|INVALID_ARGUMENT / ok", "of features of which two have one name, TensorFlow finds none at all",
     lambda c, *_: doubled(v for a, n in zip(c.inputs, c.names) if n.endswith("_keys") for v in a.ravel())),
]

# Encodings with more or other characters in ICU, which TensorFlow uses.
MORE_CHARACTERS = (b"big5", b"shift_jis", b"euc-jp", b"euc-kr", b"euc_kr", b"gbk", b"gb18030", b"gb2312", b"windows-874", b"ibm866", b"koi8-u", b"iso-2022-jp", b"hz", b"utf-7",
                   b"euc-tw")


def ordinary(op):
    return re.search(ORDINARY, op)


def skipped(op):
    """Returns the reason why an operation is not tried, or None."""
    return next((why for pattern, why in SKIPPED.items() if re.search(pattern, op)), None)


def reason(case, outcome, theirs, ours):
    """Returns the index in DIFFERENCES of the entry that allows the outcomes, or None."""
    for i, (pattern, kind, _, condition) in enumerate(DIFFERENCES):
        if re.search(pattern, case.op) and re.fullmatch(kind, outcome) and (condition is None or holds(condition, case, theirs, ours)):
            return i
    return None


def holds(condition, *args):
    """Reports whether a condition holds. It does not if it fails, for example on inputs of other ranks."""
    try:
        return condition(*args)
    except (IndexError, ValueError, TypeError):
        return False


def undefined(case):
    """Returns the numbers of the undefined outputs."""
    return {i for pattern, outputs, _, condition in UNDEFINED for i in outputs
            if re.search(pattern, case.op) and (condition is None or condition(case))}


def tolerances(op):
    """Returns the tolerances of an operation, by type name."""
    return {dtype: tolerance for pattern, dtype, tolerance, _ in TOLERANCES if re.search(pattern, op)}


def same_pixels(theirs, ours):
    """Reports whether two encoded images have the same pixels."""
    return all(np.array_equal(pixels(x), pixels(y)) for x, y in zip(theirs[0].ravel(), ours[0].ravel()))


def pixels(encoded):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:  # works with and without eager execution
        return session.run(tf.io.decode_image(encoded, dtype=tf.uint16 if encoded[24:25] == b"\x10" else tf.uint8))


def same_where_finite(theirs, ours):
    """Reports whether two lists of arrays are equal where both are finite."""
    for x, y in zip(theirs, ours):
        both = np.isfinite(x) & np.isfinite(y)
        if not compare.close(x[both], y[both], compare.TOLERANCE):
            return False
    return True


def roundings(case, theirs, ours):
    """Reports whether solutions differ by no more than rounding errors of the matrix allow.

    For least squares, those of its square count.
    """
    a = case.inputs[0]
    worst = np.linalg.cond(a.astype(np.complex128)).max() ** (2 if case.op.endswith("SolveLs") else 1)
    return np.abs(theirs - ours).max() <= 16 * np.finfo(a.dtype).eps * worst * np.abs(theirs).max()


def doubled(values):
    values = list(values)
    return len(set(values)) < len(values)


def unknown_fields(metadata):
    """Reports whether SummaryMetadata has unknown fields, or no fields."""
    message = summary_pb2.SummaryMetadata.FromString(metadata)
    message.DiscardUnknownFields()
    return not metadata or message.SerializeToString() != metadata


def below_normal(a):
    if a.dtype.kind == "c":
        return below_normal(a.real) or below_normal(a.imag)
    if a.dtype.name not in ("float32", "float64", "bfloat16"):
        return False
    return bool(((a != 0) & (np.abs(a.astype(np.float64)) < (2**-1022 if a.dtype == np.float64 else 2**-126))).any())


def modest(case):
    """Reports whether the squares of all numbers are finite."""
    return all((np.abs(a) < 1e18).all() for a in case.inputs)


def bad_sizes(sizes):
    return any(int(d) < 0 for d in sizes) or math.prod(int(d) for d in sizes) >= 1 << 63


def pooled_size(case, axis):
    """Returns the height or width of the pooled images, or 0 for other inputs."""
    shape = case.given("orig_input").shape if "orig_input" in case.names else case.given("orig_input_tensor_shape").ravel()
    return shape[axis + 1] if len(shape) == 4 else 0


def not_text(value):
    try:
        value.decode()
    except UnicodeDecodeError:
        return True
    return False
