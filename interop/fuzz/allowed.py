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
    r"|(TFRecord|TextLine|FixedLengthRecord|CSV)(Dataset|DatasetV2|)$|SaveDataset|LoadDataset|Snapshot": "needs files",
    r"Barrier|[Ss]tage(Peek|Size|Clear|NoKey|)$|^(Ordered)?Map(Stage|Peek|Unstage|Size|Clear|Incomplete)|^Stack(V2|Push|Pop|Close|$)|Mutex|Accumulator"
    r"|Session|^Resource(Create|Initialized|Using)Op": "state of several steps, or blocking",
    r"^Collective|^Nccl|^Send|^Recv|Xla|TPU|Tpu|^Batch$|^Unbatch(Grad)?$|Rpc|MultiDevice|RemoteCall|^BatchFunction": "several tasks, steps or devices",
    r"^(Abort|Print|PrintV2|Timestamp|Placeholder.*|Const|Assert|Enter|Exit|Switch|Merge|NextIteration|LoopCond|Ref(Switch|Enter|Exit|Merge|NextIteration))$":
        "ends the process, depends on time, or is control flow",
    r"^NonDeterministicInts$|Sleep": "random or sleeps, as its name says",
    r"^(PyFunc|EagerPyFunc|PyFuncStateless|Bucketize.*Debug|Debug.*|CheckNumericsV2|.*Copy|CopyHost)$": "callback or debugging",
    r"Boosted|DecisionTree|Skipgram|Tfrt|Risc": "family that session graphs do not use",
}

# Operations that get no infinite, NaN or very large values. The algorithms differ in how these affect
# other elements, and in when they fail.
ORDINARY = r"^Bessel|^Ndtri$|^Erf$|^Betainc$|^I?gamma|^Igammac$|^Igamma|^Zeta$|^Polygamma$|FFT|Spectrogram|^Xdivy$|^Xlogy$|Linalg|Matrix|Cholesky|Eig|^Svd$|^Qr$|^Lu$|Tridiagonal" \
    r"|Random|Poisson|Gamma|Binomial|TruncatedNormal"

ALL = tuple(range(99))  # outputs

# Outputs with undefined elements in TensorFlow: (operation, output numbers, reason, condition).
UNDEFINED = [
    (r"^BlockLSTM(V2)?$", (0, 2, 3, 4, 5), "steps after the longest sequence are not written",
     lambda c: c.given("seq_len_max") < c.given("x").shape[0]),
    (r"^Empty$", (0,), "uninitialized on request", lambda c: not c.attrs["init"].b),
    (r"^FakeParam$", (0,), "values are undefined", None),
    (r"^FusedBatchNorm(V2|V3)?$", (3, 4), "reserved outputs are not written without training or images",
     lambda c: not c.attrs["is_training"].b or c.given("x").size == 0),
    (r"^SparseSegment(Mean|SqrtN|Sum)Grad(V2)?$", (0, 1), "nothing is written without indices",
     lambda c: c.given("indices").size == 0),
    (r"^TopKV2$", (0, 1), "the order is undefined without sorted", lambda c: not c.attrs["sorted"].b),
    (r"^ExtractGlimpse(V2)?$", (0,), "unseeded noise", lambda c: c.attrs["noise"].s != b"zero"),
    (r"^SelfAdjointEigV2$", (1,), "eigenvectors are unique only up to a factor", None),
    (r"^QuantizedMatMul$", (0,), "nothing is written for empty sums", lambda c: c.given("a").size == 0),
    (r"^I?R?FFT", (0,), "nothing is written for empty inputs", lambda c: c.inputs[0].size == 0),
    (r"^Svd$", (1, 2), "eigenvectors are unique only up to a factor", None),
    (r"^DatasetToGraph|^DatasetFingerprint$|^StubResourceHandleOp$", (0,), "names of nodes and devices", None),
    (r"^(MutableHashTable(OfTensors)?|MutableDenseHashTable|HashTable|(FIFO|RandomShuffle|PaddingFIFO|Priority)Queue)$", (0,), "generated names", None),
    (r"^TemporaryVariable$", (0,), "no value is assigned", None),
    (r"^LookupTableExport(V2)?$", (0, 1), "the order of entries is undefined", None),
    (r"^(Shuffle|GlobalShuffle|ExperimentalRandom|Random|Sampling)", ALL, "no seed is given",
     lambda c: {"seed", "seed2"} <= set(c.names) and not c.given("seed").any() and not c.given("seed2").any()),
    (r"^ShuffleDatasetV2$", ALL, "no seed generator", None),
    (r"^ParallelBatchDataset$", ALL, "the order of batches is undefined", lambda c: c.attrs["deterministic"].s == b"false"),
    (r"^ImageSummary$", (0,), "another image compressor", None),
    (r"ChooseFastestDataset$", ALL, "depends on timing", None),
    (r"^SparseMatrixOrderingAMD$", (0,), "the order of rows with equal degree is undefined", None),
    (r"^Eig$", (0, 1), "the order of eigenvalues is undefined, and vectors are unique up to a factor", None),
]

# Larger tolerances than in compare: (operation, type, tolerance, reason).
TOLERANCES = [
    (r"^FusedBatchNormGrad", "float32", 5e-4, "terms that cancel are multiplied by large factors"),
    (r"^BlockLSTMGrad", "float16", 3e-2, "cancellation in sums of products rounded to 16 bits, in another order"),
    (r"^CTC", "float64", 1e-5, "TensorFlow computes exponentials and logarithms of float64 in float32"),
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
    (r"", r"UNIMPLEMENTED / .*", "removed from newer graphs in TensorFlow; Weft ignores the version", says("It has been removed in version")),
    (r"^EncodePng$", r"ok / other", "another compressor; the decoded pixels are equal", lambda c, x, y: same_pixels(x, y)),
    (r"^(Where|Tile)$", r"UNIMPLEMENTED / ok", "TensorFlow's CPU kernel lacks the type",
     says("No WhereOp available for float16|TileOp : The input data type is not supported")),
    (r"^(Max|Avg)Pool|Conv|^FusedBatchNorm", r"(INVALID_ARGUMENT|UNIMPLEMENTED) / (INVALID_ARGUMENT|UNIMPLEMENTED|ok)",
     "TensorFlow's CPU kernel lacks the layout or dilation; Weft may find another error",
     says("ND?HWC|dilat")),
    (r"^Cholesky$", r"ok / other", "without a factorization, TensorFlow leaves the input above the diagonal",
     lambda c, x, y: np.isnan(x[0]).any() and compare.close(np.tril(x[0]), np.tril(y[0]), compare.TOLERANCE)),
    (r"^(Lower|Upper)Bound$", r"ok / other", "a search in unsorted rows",
     lambda c, *_: not all((a[..., 1:] >= a[..., :-1]).all() for a in [c.given("sorted_inputs")])),
    (r"^RaggedTensorToTensor$", r"ok / INVALID_ARGUMENT", "TensorFlow does not validate row splits",
     lambda c, *_: any(a.ndim == 0 or a.size == 1 and a[0] > 0 or (a < 0).any() or (np.diff(a) < 0).any() for a, n in zip(c.inputs, c.names) if n == "row_partition_tensors")),
    (r"^BlockLSTMGrad", r"ok / INVALID_ARGUMENT", "TensorFlow does not validate the shapes of states, gates and peepholes",
     lambda c, *_: len({c.given(n).shape[-2:] for n in ("cs_prev", "h_prev", "i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad")}) > 1
     or any(c.given(n).size != c.given("cs_prev").shape[-1] for n in ("wci", "wcf", "wco"))),
    (r"^SparseAdd$", r"ok / INVALID_ARGUMENT", "TensorFlow reinterprets a threshold of another type",
     lambda c, *_: c.given("thresh").dtype != np.real(c.given("a_values")).dtype),
    (r"^(Sparse|Ragged)Bincount$", r"ok / INVALID_ARGUMENT", "TensorFlow reads missing weights out of bounds",
     lambda c, *_: 0 < c.given("weights").size < c.given("values").size),
    (r"^Conv2DBackprop(Filter|Input)$", r"INVALID_ARGUMENT / ok", "TensorFlow lacks gradients of grouped convolutions",
     says("Gradients for grouped convolutions are not supported|filter_size does not have enough elements")),
    (r"^Conv2DBackpropFilter$", r"INVALID_ARGUMENT / ok", "TensorFlow validates the sizes of empty filters and images",
     lambda c, *_: 0 in c.given("filter_sizes") or c.given("input").size == 0),
    (r"^DepthwiseConv2dNativeBackprop", r"ok / .*", "TensorFlow's gradients ignore dilations, which its client never sets",
     lambda c, *_: any(d != 1 for d in c.attrs["dilations"].list.i)),
    (r"^CTCLoss", r"ok / other", "labels out of range: TensorFlow reads out of bounds",
     lambda c, *_: c.given("labels_values").max(initial=0) >= c.given("inputs").shape[2] - 1),
    (r"^Erf$", r"ok / other", "infinite float64: TensorFlow's rational approximation is NaN",
     lambda c, *_: c.inputs[0].dtype == np.float64 and np.isinf(c.inputs[0]).any()),
    (r"^RGBToHSV$", r"ok / other", "NaN colors: the maximum of a number and NaN is undefined", lambda c, *_: not modest(c)),
    (r"^RandomGammaGrad$", r"ok / other", "samples far below their mean, for which TensorFlow's series returns 0",
     lambda c, *_: (c.given("alpha") > 10 * c.given("sample")).any()),
    (r"^LoadAndRemapMatrix$", r"NOT_FOUND / INVALID_ARGUMENT", "TensorFlow truncates file names at NUL",
     lambda c, *_: any(b"\0" in v for v in c.given("ckpt_path").ravel())),
    (r"^LSTMBlockCell(Grad)?$", r"ok / INVALID_ARGUMENT", "TensorFlow does not validate the lengths of peepholes",
     lambda c, *_: len({c.given(n).size for n in ("wci", "wcf", "wco")}) > 1),
    (r"^(CumulativeLogsumexp|NthElement)$", r"ok / other", "the order of NaN is undefined", lambda c, *_: np.isnan(np.asarray(c.inputs[0], float)).any()),
    (r"^Conv2DBackpropInput$", r"INVALID_ARGUMENT / ok", "TensorFlow validates the sizes of empty images",
     lambda c, *_: c.given("out_backprop").size == 0 or 0 in c.given("input_sizes")),
    (r"Bincount$", r"RESOURCE_EXHAUSTED / INTERNAL", "a result above the 2 GiB message limit; TensorFlow allocates it once per thread",
     says("OOM when allocating tensor")),
    (r"^MatrixBandPart$", r"ok / other", "TensorFlow negates the smallest integer",
     lambda c, *_: any((a == np.iinfo(a.dtype).min).any() for a, n in zip(c.inputs, c.names) if n in ("num_lower", "num_upper"))),
    (r"^Arg(Min|Max)$", r"ok / INVALID_ARGUMENT", "TensorFlow truncates the dimension to 32 bits",
     lambda c, *_: abs(int(c.given("dimension"))) >= 1 << 31),
    (r"^Fractional(Avg|Max)PoolGrad$", r"ok / INVALID_ARGUMENT", "TensorFlow does not validate windows",
     lambda c, *_: any((np.diff(a) < 0).any() or a.max(initial=0) > pooled_size(c, "col" in n)
                       for a, n in zip(c.inputs, c.names) if n.endswith("_sequence"))),
    (r"^Extract(Image|Volume)Patches$", r"UNIMPLEMENTED / INVALID_ARGUMENT", "two errors; the other one is reported",
     says("Only support (ksizes|strides|rates) across space")),
    (r"^Cholesky$", r"ok / other", "TensorFlow does not check that complex matrices are Hermitian",
     lambda c, *_: c.inputs[0].dtype.kind == "c"),
    (r"Vocab|FixedUnigram", r"NOT_FOUND / INVALID_ARGUMENT", "TensorFlow truncates file names at NUL",
     lambda c, *_: b"\0" in c.attrs["vocab_file"].s if "vocab_file" in c.attrs else True),
    (r"^StringFormat$", r"ok / other", "TensorFlow prints complex numbers as question marks",
     lambda c, *_: any(a.dtype.kind == "c" for a in c.inputs)),
    (r"^(Where|Reverse)$", r"INVALID_ARGUMENT / ok", "TensorFlow's CPU kernel rejects scalars and empty tensors",
     says("WhereOp : Unhandled input dimensions|Invalid input first dimension. Found 0")),
    (r"^Segment", r"RESOURCE_EXHAUSTED / INVALID_ARGUMENT", "TensorFlow allocates the output before it checks the order",
     lambda c, *_: (np.diff(c.given("segment_ids")) < 0).any()),
    (r"^DrawBoundingBoxes", r"ok / other", "non-finite boxes: TensorFlow's conversion to integers is undefined in C++",
     lambda c, *_: not np.isfinite(c.given("boxes")).all()),
    (r"^FusedResizeAndPadConv2D$", r"ok / other", "non-finite pixels: TensorFlow skips neighbors with weight 0, unlike in ResizeBilinear",
     lambda c, *_: not modest(c)),
    (r"^CTCBeamSearchDecoder$", r"INVALID_ARGUMENT / ok", "non-finite or distant scores: TensorFlow runs out of beams",
     lambda c, *_: not (np.abs(c.given("inputs")) < 1e4).all()),
    (r"^Svd$", r"ok / other", "complex NaN: TensorFlow returns zeros, and NaN only for real matrices",
     lambda c, *_: c.inputs[0].dtype.kind == "c" and np.isnan(c.inputs[0]).any()),
    (r"^BandedTriangularSolve$", r"ok / INVALID_ARGUMENT", "TensorFlow checks the number of bands only in its shape rule",
     lambda c, *_: c.given("matrix").shape[-2] > c.given("matrix").shape[-1]),
    (r"^(SparseDenseCwiseDiv|ScaleAndTranslate|BandedTriangularSolve)$", r"INVALID_ARGUMENT / ok", "subnormal numbers, which TensorFlow flushes to 0",
     lambda c, *_: any(map(below_normal, c.inputs))),
    (r"^Round$", r"ok / other", "TensorFlow rounds integers to 0", lambda c, *_: c.inputs[0].dtype.kind in "iu"),
    (r"^TopK$", r"INVALID_ARGUMENT / ok", "TensorFlow's kernel requires an attribute that the operation lacks",
     says("has constraint on attr 'index_type' not in NodeDef")),
    (r"^NearestNeighbors$", r"ok / other", "the order of NaN distances is undefined", lambda c, *_: not modest(c)),
    (r"^(RandomGammaGrad|Igamma.*)$", r"ok / other", "outside of the domain, TensorFlow returns the end of its series",
     lambda c, *_: not all((np.asarray(a) > 0).all() for a in c.inputs)),
    (r"^ImageProjectiveTransform", r"ok / other", "non-finite transforms: TensorFlow's conversion to integers is undefined in C++",
     lambda c, *_: not np.isfinite(c.given("transforms")).all()),
    (r"^(Batch)?Matrix(Inverse|Solve|SolveLs)$", r"ok / other", "nearly singular matrices, which amplify rounding errors",
     lambda c, x, y: roundings(c, x[0], y[0])),
    (r"^ImageProjectiveTransform", r"ok / INVALID_ARGUMENT", "TensorFlow logs an unknown mode and reads uninitialized memory",
     lambda c, *_: c.attrs["interpolation"].s not in (b"NEAREST", b"BILINEAR")
     or c.attrs["fill_mode"].s not in (b"REFLECT", b"WRAP", b"CONSTANT", b"NEAREST")),
    (r"^AvgPool(3D)?Grad$", r"ok / INVALID_ARGUMENT", "TensorFlow accepts gradients of any size within the image",
     lambda c, x, y: "Expected grad shape to be" in y),
    (r"^SparseReorder$", r"ok / INVALID_ARGUMENT", "TensorFlow does not validate the shape",
     lambda c, *_: bad_sizes(c.given("input_shape"))),
    (r"^SparseCross", r"ok / other", "indices out of range: TensorFlow writes out of bounds",
     lambda c, *_: any((a < 0).any() for a, n in zip(c.inputs, c.names) if n == "indices")),
    (r"^(Static)?RegexReplace$", r"ok / other", "invalid UTF-8, which Weft's expressions can match",
     lambda c, *_: any(not_text(v) for v in c.inputs[0].ravel())),
    (r"^((Cos|Sin|Tan|Acos|Asin|Atan)h?|Expm?1?|Log(1p)?|R?Sqrt|(Inv|Reciprocal|Rsqrt|Sqrt|Tanh|Sigmoid)(Grad)?|Pow|Mul|MulNoNan|(Real)?Div|DivNoNan|X(divy|logy|log1py)"
     r"|Square|Sign|(Banded|Matrix)TriangularSolve|.*MatMul.*|Einsum|Prod|Cumprod|Conv.*|(Resource)?(Sparse)?Apply.*)$", r"ok / other",
     "complex numbers with non-finite squares: TensorFlow's vector and scalar formulas differ",
     lambda c, *_: any(a.dtype.kind == "c" for a in c.inputs) and not modest(c)),
    (r"Div|^Inv|^Reciprocal|^Rsqrt|^Pow$|^TridiagonalSolve$", r"ok / other", "complex division by 0: TensorFlow's vector and scalar formulas differ",
     lambda c, *_: any(a.dtype.kind == "c" and not a.all() for a in c.inputs)),
    (r"^(?!(SelfAdjoint)?Eig)", r"ok / other", "subnormal numbers: TensorFlow's threads flush them to 0, except for eigenvalues",
     lambda c, *_: any(map(below_normal, c.inputs))),
    (r"^LRN$", r"ok / other", "non-finite squares: TensorFlow's band matrix multiplies them by 0",
     lambda c, *_: not modest(c)),
    (r"^FractionalMaxPoolGrad$", r"ok / INVALID_ARGUMENT", "TensorFlow does not validate the shape of gradients",
     lambda c, *_: c.given("out_backprop").shape != c.given("orig_output").shape),
    (r"^RaggedTensorToTensor$", r"ok / other", "rows that end after the last value: TensorFlow reads out of bounds",
     lambda c, *_: any(a.max(initial=0) > c.given("values").shape[0] for a, n in zip(c.inputs, c.names) if n == "row_partition_tensors")),
    (r"^RaggedTensorToTensor$", r"ok / other", "unordered row ids: TensorFlow appends values of earlier rows to the last row",
     lambda c, *_: any((np.diff(a) < 0).any() for a, kind in zip(c.inputs[3:], c.attrs["row_partition_types"].list.s) if kind == b"VALUE_ROWIDS")),
    (r"^RaggedTensorToSparse$", r"ok / other", "scalar splits: TensorFlow reads a missing dimension",
     lambda c, *_: any(a.ndim == 0 for a, n in zip(c.inputs, c.names) if n == "rt_nested_splits")),
    (r"^Zeta$", r"ok / other", "in float32, TensorFlow sums nine terms before a series for positive numbers",
     lambda c, *_: c.given("q").dtype != np.float64 and (c.given("q") < -9).any()),
    (r"^BesselY1$", r"ok / other", "at 0, TensorFlow returns NaN in float32 and minus infinity in float64",
     lambda c, x, y: c.inputs[0].dtype != np.float64 and compare.close(x[0][c.inputs[0] != 0], y[0][c.inputs[0] != 0], compare.TOLERANCE)),
    (r"^DecodeProtoV2$", r"ok / DATA_LOSS", "10-byte varints that overflow 64 bits, which Weft rejects if messages are sanitized",
     lambda c, *_: c.attrs["sanitize"].b and any(re.search(rb"[\x80-\xff]{9}[\x02-\x7f]", v) for v in c.given("bytes").ravel())),
    (r"^SamplingDataset$", r"ok / other", "no seed is given", lambda c, *_: not c.given("seed").any() and not c.given("seed2").any()),
    (r"^RandomIndexShuffle$", r"ok / INVALID_ARGUMENT", "TensorFlow only asserts that the number of rounds is valid",
     lambda c, *_: c.attrs["rounds"].i < 4 or c.attrs["rounds"].i % 2),
    (r"^KmeansPlusPlus", r"ok / other", "non-finite points", lambda c, *_: not modest(c)),
    (r"^ParallelConcat$", r"ok / INVALID_ARGUMENT", "TensorFlow leaves rows without a value uninitialized",
     lambda c, *_: len(c.inputs) != c.attrs["shape"].shape.dim[0].size),
    (r"^SparseCross", r"ok / other", "unordered indices, which TensorFlow does not check",
     lambda c, *_: any((np.diff(a[:, 0]) < 0).any() for a, n in zip(c.inputs, c.names) if n == "indices" and a.ndim == 2 and a.size)),
    (r"^(Conv([23]D)?|DepthwiseConv2dNative(BackpropInput)?|Fused(ResizeAnd)?PadConv2D)$", r"ok / other", "a non-finite filter: TensorFlow multiplies it by the zero padding",
     lambda c, x, y: (c.attrs["padding"].s != b"VALID" or c.op.endswith("BackpropInput")) and not np.isfinite(c.given("filter").astype(np.complex128)).all()
     and same_where_finite(x, y)),
    (r"^Conv3DBackpropFilterV2$", r"ok / other", "a non-finite image: TensorFlow multiplies it by the zero padding of the gradient",
     lambda c, x, y: c.attrs["padding"].s != b"VALID" and not modest(c) and same_where_finite(x, y)),
    (r"^Stateless(.*V[23]|Shuffle)$", r"ok / INVALID_ARGUMENT", "TensorFlow requires one element of the counter and reads two",
     lambda c, *_: "counter" in c.names and c.given("counter").shape == (1,)),
    (r"^MaxPool3D$", r"ok / other", "the maximum of a number and NaN depends on the vector code",
     lambda c, *_: np.isnan(c.inputs[0].astype(np.float32)).any()),
    (r"^Adjust(Hue|Saturation)$", r"ok / other", "NaN hues: TensorFlow's conversion to integers is undefined in C++",
     lambda c, *_: not modest(c)),
    (r"^ScaleAndTranslate(Grad)?$", r"ok / other", "non-finite pixels: TensorFlow multiplies them by weights of 0",
     lambda c, *_: not modest(c)),
    (r"^DepthwiseConv2dNative", r"ok / INVALID_ARGUMENT", "TensorFlow's kernel accepts any number of dilations of 1",
     lambda c, *_: len(c.attrs["dilations"].list.i) != 4),
    (r"^(Avg|Max)Pool", r"INVALID_ARGUMENT / UNIMPLEMENTED", "two errors; the other one is reported",
     says("tensor_in_shape must have 2 spatial dimensions|ksize must be a positive int32 value|ksize field must have non-negative dimensions")),
    (r"^CacheDataset", r"ok / INVALID_ARGUMENT", "TensorFlow truncates file names at NUL", lambda c, *_: b"\0" in c.given("filename").item()),
    (r"^ImmutableConst$", r"NOT_FOUND / INVALID_ARGUMENT", "TensorFlow truncates file names at NUL",
     lambda c, *_: b"\0" in c.attrs["memory_region_name"].s),
    (r"^Unicode(Decode(WithOffsets)?|Encode|Transcode)$", r"(ok / other|ok / INVALID_ARGUMENT)", "ICU has more characters for the encoding",
     lambda c, *_: c.attrs["input_encoding"].s.lower() in MORE_CHARACTERS),
    (r"^CTCBeamSearchDecoder$", r"ok / other", "non-finite or distant scores, which leave beams with probability 0",
     lambda c, *_: not (np.abs(c.given("inputs")) < 1e4).all()),
    (r"^Cast$", r"ok / other", "numbers out of range: TensorFlow's vector code saturates and its scalar code wraps",
     lambda c, *_: c.inputs[0].dtype == np.float32 and (c.attrs["DstT"].type == types_pb2.DT_UINT16) and not ((c.inputs[0] > -1) & (c.inputs[0] < 1 << 16)).all()),
    (r"^(SetSize|(Dense|Sparse)ToSparseSetOperation)$", r"ok / other", "unordered sets, which TensorFlow splits unless it validates indices",
     lambda c, *_: not c.attrs["validate_indices"].b and any(sorted(a.tolist()) != a.tolist() for a, n in zip(c.inputs, c.names) if n.endswith("_indices"))),
    (r"^(SetSize|(Dense|Sparse)ToSparseSetOperation)$", r"ok / INTERNAL", "indices out of range, of which TensorFlow checks only some unless it validates indices",
     lambda c, *_: not c.attrs["validate_indices"].b and any((a < 0).any() or (a >= c.given(n.replace("indices", "shape"))).any()
                                                              for a, n in zip(c.inputs, c.names) if n.endswith("_indices"))),
    (r"^ArgMax$", r"INVALID_ARGUMENT / ok", "TensorFlow reads 32 bits of a 16-bit dimension",
     lambda c, x, y: c.given("dimension").dtype == np.int16 and "Expected dimension in the range" in x),
    (r"^QuantizeAndDequantizeV[1-4]$", r"ok / other", "the extremes of numbers and NaN depend on the vector code",
     lambda c, *_: not c.attrs["range_given"].b and np.isnan(c.given("input").astype(float)).any()),
    (r"^TensorStridedSliceUpdate$", r"INVALID_ARGUMENT / ok", "TensorFlow's CPU kernel lacks the type", says("Unsupported data type")),
    (r"PrivateThreadPoolDataset$", r"ok / INVALID_ARGUMENT|INVALID_ARGUMENT / ok", "TensorFlow truncates the number of threads to 32 bits",
     lambda c, *_: not -1 << 31 <= int(c.given("num_threads")) < 1 << 31),
    (r"^OptimizeDataset", r"INTERNAL / (ok|INVALID_ARGUMENT)", "Weft has no dataset optimizers that read their configuration", says("Wrong format for optimizer options")),
    (r"^Stateful", r"(UNIMPLEMENTED|INVALID_ARGUMENT) / ok", "Weft does not validate algorithm and state for empty results", lambda c, x, y: y[0].size == 0),
    (r"^(Resource|Tensor)?StridedSlice(Assign|Update)$", r"ok / INVALID_ARGUMENT", "TensorFlow accepts values with additional leading dimensions of 1",
     lambda c, x, y: "into final shape" in y and c.given("value").shape[:1] == (1,)),
    (r"^SparseReduce(Max|Sum)(Sparse)?$", r"ok / INTERNAL", "indices out of range, which TensorFlow does not check if nothing is reduced",
     lambda c, *_: c.given("reduction_axes").size == 0 and (c.given("input_indices") >= c.given("input_shape")).any()),
    (r"^AvgPoolGrad$", r"ok / UNIMPLEMENTED", "TensorFlow validates nothing for empty images", lambda c, *_: c.given("grad").size == 0),
    (r"^(AnonymousRandomSeedGenerator|ExperimentalRandomDataset)$", r"INVALID_ARGUMENT / ok", "TensorFlow's kernel requires an input that the operation lacks",
     says("Unknown input name: reshuffle|Given index was 2")),
    (r"^ResourceGather$", r"ok / INVALID_ARGUMENT", "TensorFlow does not validate batch dimensions",
     lambda c, *_: c.attrs["batch_dims"].i > 0),
    (r"^Resource(Scatter(?!Nd))", r"ok / INVALID_ARGUMENT", "TensorFlow only validates the leading dimensions of updates, if there are indices",
     lambda c, *_: c.given("indices").size == 0 or c.given("updates").shape[:c.given("indices").ndim] == c.given("indices").shape),
    (r"^(Resource(Sparse)?|Sparse)?Apply", r"ok / INVALID_ARGUMENT", "TensorFlow does not validate all shapes of slots",
     lambda c, x, y: "same shape" in y),
    (r"^(Resource)?SparseApply(?!Adagrad(V2)?$)", r"ok / INVALID_ARGUMENT", "scalar gradients: TensorFlow reads out of bounds",
     lambda c, *_: c.given("grad").ndim == 0),
    (r"SparseApply(Centered)?RMSProp$", r"ok / other", "infinite running means: TensorFlow's sparse formula takes no differences",
     lambda c, x, y: any(np.isinf(a).any() for a, n in zip(c.inputs, c.names) if n in ("mg", "ms")) and same_where_finite(x, y)),
    (r"Adagrad|Ftrl", r"ok / other", "negative accumulators, which have no roots, or step 0",
     lambda c, *_: any((np.real(a) <= 0).any() for a, n in zip(c.inputs, c.names) if "accum" in n or n == "global_step")),
    (r"^(Resource)?Apply(PowerSign|AddSign)$", r"ok / INVALID_ARGUMENT", "TensorFlow uses the first element of any tensor as a scalar",
     lambda c, x, y: "is not a scalar" in y),
    (r"^Inplace", r"ok / INVALID_ARGUMENT", "TensorFlow reads the first dimension of scalars", lambda c, *_: c.inputs[0].ndim == 0),
    (r"^FakeQuant", r"ok / other", "empty or non-finite ranges",
     lambda c, *_: not (c.attrs["min"].f <= c.attrs["max"].f if "min" in c.attrs else (np.isfinite(c.given("max") - c.given("min")) & (c.given("min") <= c.given("max"))).all())),
    (r"^FusedBatchNormGrad", r"ok / other", "a non-finite scale, by which TensorFlow multiplies the sum instead of its terms",
     lambda c, *_: not np.isfinite(c.given("scale")).all()),
    (r"^FusedBatchNormGrad", r"ok / other", "one element per channel: cancellation times a large factor",
     lambda c, *_: c.given("x").size == c.given("scale").size),
    (r"^(QuantizeDownAndShrinkRange|RequantizationRange)$", r"ok / other", "non-finite ranges",
     lambda c, *_: not (np.isfinite(c.given("input_min")) & np.isfinite(c.given("input_max"))).all()),
    (r"ChooseFastestDataset$", r"(INVALID_ARGUMENT / ok|ok / INVALID_ARGUMENT)", "depends on timing",
     lambda c, x, y: "Cannot batch tensors" in str(x) + str(y)),
    (r"^RaggedCross$", r"ok / INVALID_ARGUMENT", "TensorFlow does not validate sparse tensors",
     lambda c, x, y: "Invalid SparseTensor" in y),
    (r"^RaggedGather$", r"INTERNAL / INVALID_ARGUMENT", "TensorFlow sets a wrong number of outputs",
     lambda c, *_: c.attrs["OUTPUT_RAGGED_RANK"].i != c.attrs["PARAMS_RAGGED_RANK"].i + c.given("indices").ndim - 1),
    (r"^DatasetFromGraph$", r"NOT_FOUND / INVALID_ARGUMENT", "an empty graph is also a graph without a result", lambda c, *_: c.given("graph_def").item() == b""),
    (r"^QueueDequeue(Many|UpTo)V2$", r"(ok|OUT_OF_RANGE) / INVALID_ARGUMENT", "TensorFlow uses the first element of a non-scalar count",
     lambda c, *_: c.given("n").ndim > 0),
    (r"^RangeDataset$", r"ok / other", "64-bit overflow, which wraps in TensorFlow", lambda c, *_: any((np.abs(a.astype(float)) > 1e18).any() for a in c.inputs)),
    (r"^RequantizePerChannel$", r"ok / INVALID_ARGUMENT", "TensorFlow validates nothing for empty tensors", lambda c, *_: c.given("input").size == 0),
    (r"^QuantizedConv2D$", r"ok / other", "ranges without 0: TensorFlow pads images with the low bits of the zero point",
     lambda c, *_: c.attrs["padding"].s == b"SAME" and not c.given("min_input") <= 0 <= c.given("max_input")),
    (r"^QuantizedAvgPool$", r"ok / other", "Weft rounds averages like TensorFlow with oneDNN; without oneDNN it truncates",
     lambda c, x, y: np.abs(x[0].astype(int) - y[0].astype(int)).max(initial=0) <= 1),
    (r"^QuantizedAvgPool$", r"UNIMPLEMENTED / INVALID_ARGUMENT", "two errors; the other one is reported", weft_says("shape must be rank 0")),
    (r"^Quantized(Add|Mul)$", r"ok / UNIMPLEMENTED", "TensorFlow repeats the smaller tensor without checking its last dimensions",
     weft_says("Broadcast between")),
    (r"^QuantizedConv2D", r"INTERNAL / INVALID_ARGUMENT", "TensorFlow's kernel returns without an error", says("Missing 0-th output")),
    (r"^RequantizePerChannel$", r"ok / INVALID_ARGUMENT", "TensorFlow does not validate the number of ranges",
     lambda c, x, y: "has incorrect size" in y),
    (r"^TensorListScatterIntoExistingList$", r"ok / INVALID_ARGUMENT", "TensorFlow writes negative indices out of bounds",
     lambda c, *_: (c.given("indices") < 0).any()),
    (r"^TensorListScatterIntoExistingList$", r"INVALID_ARGUMENT / ok|ok / other", "unset elements, which TensorFlow treats as empty tensors",
     lambda c, *_: set(range(len(c.given("input_handle")), c.given("indices").max())) - set(c.given("indices"))),
    (r"^(Resource)?ScatterNd", r"ok / other|ok / INVALID_ARGUMENT", "TensorFlow uses only the first of a vector of indices",
     lambda c, *_: c.given("indices").ndim == 1 and c.given("indices").size > 1),
    (r"^StatefulRandomBinomial$", r"ok / other", "TensorFlow advances a copy of the state if the variable's value is shared",
     lambda c, x, y: compare.close(x[0], y[0], compare.TOLERANCE) and np.array_equal(x[-1], c.given("resource"))),
    (r"^SdcaOptimizer", r"ok / INVALID_ARGUMENT", "TensorFlow does not validate the number of weights and reads out of bounds",
     weft_says("sparse_indices for")),
    (r"^SdcaOptimizer", r"ok / INVALID_ARGUMENT", "TensorFlow does not validate the number of features and reads out of bounds",
     weft_says("sparse_feature_values for|dense features for")),
    (r"^BroadcastTo$", r"RESOURCE_EXHAUSTED / INVALID_ARGUMENT", "TensorFlow allocates before it validates the shapes", says("OOM when allocating tensor")),
    (r"^RaggedTensorToSparse$", r"ok / INVALID_ARGUMENT", "TensorFlow reads the first dimension of a scalar",
     lambda c, *_: c.given("rt_dense_values").ndim == 0),
    (r"^RaggedTensorToVariantGradient$", r"ok / INVALID_ARGUMENT", "TensorFlow does not check that the rows fill the result",
     lambda c, x, y: "the rows have" in y or "which does not fit into" in y),
    (r"^(Resource(Sparse)?|Sparse)?Apply", r"ok / other", "TensorFlow rounds to 16 bits after each operation, and Weft once",
     lambda c, *_: any(a.dtype.name in ("float16", "bfloat16") for a in c.inputs)),
    (r"Ftrl", r"ok / INVALID_ARGUMENT", "subnormal numbers, which TensorFlow flushes to 0",
     lambda c, *_: any(below_normal(a) for a, n in zip(c.inputs, c.names) if n in ("lr", "l1", "l2", "lr_power", "l2_shrinkage"))),
    (r"^TensorSummaryV2$", r"ok / other", "TensorFlow keeps unknown fields and empty metadata",
     lambda c, *_: unknown_fields(c.given("serialized_summary_metadata").item())),
    (r"^SparseMatrixSparseMatMul$", r"INVALID_ARGUMENT / ok|ok / INVALID_ARGUMENT", "different ranks: TensorFlow uses the dimensions of b at the positions of a",
     lambda c, *_: c.given("a").ndim != c.given("b").ndim),
    (r"^(WindowOp|ListDataset)$", r"ok / INVALID_ARGUMENT", "TensorFlow does not validate types and numbers", weft_says("Data type mismatch|Given a list of")),
    (r"^VariableV2$|^Variable$", r"ok / FAILED_PRECONDITION", "TensorFlow does not read an empty variable",
     lambda c, *_: any(d.size == 0 for d in c.attrs["shape"].shape.dim)),
    (r"Summary", r"ok / INVALID_ARGUMENT", "invalid UTF-8 tags, which TensorFlow only logs",
     lambda c, x, y: "UTF-8" in y),
    (r"^TensorSummaryV2$", r"ok / DATA_LOSS", "TensorFlow writes the readable part of malformed metadata", None),
    (r"^(StubResourceHandleOp|VarHandleOp)$", r"ok / INVALID_ARGUMENT", "TensorFlow accepts any name", weft_says("invalid characters")),
    (r"^Stateful", r"INVALID_ARGUMENT / UNIMPLEMENTED", "two errors; the other one is reported",
     says("shape must be a vector")),
    (r"^(Experimental)?Assert(Next|Prev)Dataset$", r"INVALID_ARGUMENT / ok", "Weft does not check neighbors if only one element is read", says("ransformation")),
    (r"^SplitV$", r"INVALID_ARGUMENT / ok", "TensorFlow's kernel rejects -1 for a single piece, which its optimizer removes",
     says("If there is only one output, .* output size: -1")),
    (r"^SparseAddGrad$", r"ok / other", "unordered indices, which TensorFlow merges in parallel",
     lambda c, *_: any(a.tolist() != sorted(a.tolist()) for a, n in zip(c.inputs, c.names) if n.endswith("_indices"))),
    (r"^S(kip|hard)Dataset$", r"ok / (other|INVALID_ARGUMENT)", "the largest int64, which overflows",
     lambda c, *_: any(a.ndim == 0 and a == (1 << 63) - 1 for a in c.inputs if a.dtype == np.int64)),
    (r"SamplingDataset$", r"ok / INVALID_ARGUMENT|INVALID_ARGUMENT / ok", "no seed is given",
     lambda c, x, y: not c.given("seed").any() and not c.given("seed2").any() and "Dataset was empty" in f"{x}{y}"),
    (r"^ParseExample", r"ok / (other|INVALID_ARGUMENT)|INVALID_ARGUMENT / ok", "duplicate feature names, for which TensorFlow finds no feature",
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
