"""What is not tried, and in what the two may differ. Every line has its reason."""
import re

# Operations that are not tried at all.
SKIPPED = {
    r"^_": "made by the runtime, not by clients",
    r"^(Read|Write)File$|Dataset|Iterator|Reader|Save|Restore|Checkpoint|ShardedFilename|MatchingFiles|Summary": "files, or what needs them",
    r"Queue|Stack|TensorArray|Barrier|[Ss]tage$|^Stage|Map|Accumulator|Mutex|Session|Table|Variable|Scatter.*Ref|Resource": "state",
    r"^Collective|^Nccl|^Send|^Recv|Xla|TPU|Tpu|^Batch$|^Unbatch|Rpc": "several tasks or other devices",
    r"^(Abort|Print|PrintV2|Timestamp|Placeholder.*|Const|Assert|Enter|Exit|Switch|Merge|NextIteration|LoopCond|RefSwitch)$":
        "ends the process, depends on the time, or has a meaning only in a graph",
    r"^NonDeterministicInts$": "what it says",
    r"^(PyFunc|EagerPyFunc|PyFuncStateless|Bucketize.*Debug|Debug.*|CheckNumericsV2|.*Copy|CopyHost)$": "calls back, or debugs",
    r"Boosted|DecisionTree|Skipgram|ExperimentalAssert|Sdca|Tfrt|Risc|Uniform(Quantize|Dequantize|Requantize|Quantized)": "families that graphs of sessions do not use",
}

# Operations that get no infinities, no numbers that are none and no very large ones: their algorithms differ in what these
# do to the rest of a result, and in where they give up.
ORDINARY = r"^Bessel|^Ndtri$|^Erf$|^Betainc$|^I?gamma|^Igammac$|^Igamma|^Zeta$|^Polygamma$|FFT|^Xdivy$|^Xlogy$|Linalg|Matrix|Cholesky|Eig|^Svd$|^Qr$|^Lu$|Tridiagonal" \
    r"|Random|Poisson|Gamma|Binomial|TruncatedNormal"

# Differences: (pattern of the operation, pattern of "TensorFlow's outcome / ours", reason). An outcome is "ok" or the name of
# a code.
DIFFERENCES = [
    (r"^Batch(Cholesky|CholeskyGrad|Fft|Ifft|Matrix|SelfAdjointEig|Svd|NormWithGlobal)|^QuantizeAndDequantize$|^RandomPoisson$|^ExtractImagePatches$"
     r"|^Conv3DBackprop(Input|Filter)$",
     r"UNIMPLEMENTED / .*", "removed from newer graphs, and served here whatever the graph's version"),
    (r"^Encode(Png|Jpeg)", r"ok / other", "another compressor; what it writes is read back alike"),
    (r"^(Empty|FakeParam)$", r"ok / other", "the values are not defined"),
    (r"^(Where|Tile)$", r"UNIMPLEMENTED / ok", "types that TensorFlow's CPU kernel has not are served here"),
    (r"^ClipByValue$", r"ok / other", "complex numbers have no order"),
    (r"^StringNGrams$", r"ok / other", "data that is no vector is handed on by TensorFlow if there are no splits"),
    (r"^(Max|Avg)?Pool|Conv", r"(INVALID_ARGUMENT|UNIMPLEMENTED) / (INVALID_ARGUMENT|UNIMPLEMENTED|ok)",
     "layouts and dilations that TensorFlow's CPU kernels have not are served here; other mistakes are then found first"),
    (r"^TopKV2$", r"ok / other", "without sorted, the order is not defined"),
    (r"^Cholesky$", r"ok / other", "of complex matrices that are not Hermitian, TensorFlow factors what it finds"),
    (r"Vocab|FixedUnigram", r"NOT_FOUND / INVALID_ARGUMENT", "a file name with a NUL in it: TensorFlow's ends there"),
    (r"Scatter", r"INVALID_ARGUMENT / ok", "policies for bad indices that do not exist are ignored here"),
    (r"^ScatterNdNonAliasingAdd$", r"ok / INVALID_ARGUMENT", "TensorFlow's kernel for bool takes indices that are no matrix"),
    (r"^TensorStridedSliceUpdate$", r"ok / INVALID_ARGUMENT", "TensorFlow does not look at the value if the slice is empty"),
    (r"^MatrixSolveLs$", r"ok / INVALID_ARGUMENT", "TensorFlow does not look at the regularizer of no matrices"),
    (r"^ReverseV2$", r"ok / INVALID_ARGUMENT", "TensorFlow does not look at the axes of a tensor without elements"),
    (r"^StringFormat$", r"ok / other", "TensorFlow prints complex numbers as question marks, and not by their dimensions"),
    (r"^QuantizeAndDequantizeV3$", r"ok / INVALID_ARGUMENT", "TensorFlow takes a vector with one element for a scalar"),
    (r"^(Where|Reverse|SparseBincount)$", r"INVALID_ARGUMENT / ok", "scalars, empty tensors and ranks that TensorFlow's CPU kernels refuse"),
    (r"^Round$", r"ok / other", "TensorFlow rounds integers to 0"),
    (r"Pool", r"INVALID_ARGUMENT / (ok|UNIMPLEMENTED)", "NCHW is served here; other mistakes are then found first"),
    (r"^Eig$|^SelfAdjointEig|^Svd$", r"ok / other", "vectors are given up to a factor"),
    (r"^TridiagonalSolve$", r"INVALID_ARGUMENT / UNIMPLEMENTED", "of two mistakes the other one is found first"),
    (r"", r"DEADLINE_EXCEEDED / (ok|INVALID_ARGUMENT)", "TensorFlow's kernel does not end, as for a rate that is no number"),
]


def ordinary(op):
    return re.search(ORDINARY, op)


def skipped(op):
    return any(re.search(pattern, op) for pattern in SKIPPED)


def reason(op, outcome):
    """Why the outcome may be as it is, or None."""
    for pattern, kind, why in DIFFERENCES:
        if re.search(pattern, op) and re.fullmatch(kind, outcome):
            return why
    return None
