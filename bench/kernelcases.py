"""The operations that bench.kernels measures: families of cases, each a function that builds one node from its inputs."""
import numpy as np
import tensorflow.compat.v1 as tf

raw = tf.raw_ops

class Update:
    """The inputs of a case that changes variables of one shape: a gradient, the variable and its slots."""

    def __init__(self, shape, slots):
        self.shape, self.slots = shape, slots


FAMILIES = {}  # family: {case: (shapes of the inputs, build)}


def case(family, name, shapes, build):
    """Shapes are those of float32 inputs, or arrays. build makes the node from the tensors."""
    FAMILIES.setdefault(family, {})[name] = (shapes, build)


def matmul(m, k, n, kind):
    a, b = {"nn": ([m, k], [k, n]), "tn": ([k, m], [k, n]), "nt": ([m, k], [n, k])}[kind]
    case("matrix product", f"{kind} {m}x{k}x{n}", [a, b],
         lambda x, y: raw.MatMul(a=x, b=y, transpose_a=kind == "tn", transpose_b=kind == "nt"))


for size in (64, 128, 256, 512, 1024):
    matmul(size, size, size, "nn")
for batch in (100, 128):
    for k, n in ((784, 100), (784, 512), (512, 512), (512, 10)):
        matmul(batch, k, n, "nn")
        matmul(k, batch, n, "tn")
        matmul(batch, n, k, "nt")
case("batched product", "32x(64x64x64)", [[32, 64, 64]] * 2, lambda x, y: raw.BatchMatMulV2(x=x, y=y))
case("batched product", "8x12x(128x64x128)", [[8, 12, 128, 64], [8, 12, 64, 128]], lambda x, y: raw.BatchMatMulV2(x=x, y=y))


def conv(family, n, size, channels, width, out, stride=1, padding="SAME"):
    k = dict(strides=[1, stride, stride, 1], padding=padding)
    shape, kernel = [n, size, size, channels], [width, width, channels, out]
    to = -(-size // stride) if padding == "SAME" else -(-(size - width + 1) // stride)
    name = f"{n}x{size}x{size}x{channels}, {width}x{width}x{out}" + (f"/{stride}" if stride > 1 else "")
    grad = [n, to, to, out]
    case(family, name, [shape, kernel], lambda x, f: raw.Conv2D(input=x, filter=f, **k))
    if channels > 3:
        case(family, name + " input gradient", [kernel, grad], lambda f, g: raw.Conv2DBackpropInput(input_sizes=shape, filter=f, out_backprop=g, **k))
    case(family, name + " filter gradient", [shape, grad], lambda x, g: raw.Conv2DBackpropFilter(input=x, filter_sizes=kernel, out_backprop=g, **k))


conv("first convolution", 32, 28, 1, 5, 32)
conv("first convolution", 128, 24, 3, 5, 64)
conv("convolution", 32, 14, 32, 5, 64)
conv("convolution", 32, 24, 64, 5, 64)
conv("convolution", 8, 56, 64, 3, 64)
conv("strided convolution", 16, 28, 64, 3, 128, stride=2)
case("depthwise convolution", "16x28x28x64, 3x3", [[16, 28, 28, 64], [3, 3, 64, 1]],
     lambda x, f: raw.DepthwiseConv2dNative(input=x, filter=f, strides=[1, 1, 1, 1], padding="SAME"))

LARGE, SMALL = 1 << 20, 1 << 16
for name, op in (("exp", raw.Exp), ("sigmoid", raw.Sigmoid), ("tanh", raw.Tanh), ("log", raw.Log), ("erf", raw.Erf), ("rsqrt", raw.Rsqrt)):
    for n in (LARGE, SMALL):
        case(name, f"{n}", [[n]], lambda x, op=op: op(x=x))
case("power", f"{SMALL}", [[SMALL]] * 2, lambda x, y: raw.Pow(x=x, y=y))
for n in (LARGE, SMALL):
    case("memory-bound map", f"add {n}", [[n]] * 2, lambda x, y: raw.AddV2(x=x, y=y))
    case("memory-bound map", f"multiply {n}", [[n]] * 2, lambda x, y: raw.Mul(x=x, y=y))
    case("memory-bound map", f"relu {n}", [[n]], lambda x: raw.Relu(features=x))
    case("memory-bound map", f"relu gradient {n}", [[n]] * 2, lambda x, y: raw.ReluGrad(gradients=x, features=y))
    case("memory-bound map", f"bias 128x{n // 128}", [[128, n // 128], [n // 128]], lambda x, y: raw.BiasAdd(value=x, bias=y))
for shape in ([128, 10], [128, 1000], [1024, 1000]):
    text = "x".join(map(str, shape))
    case("softmax", text, [shape], lambda x: raw.Softmax(logits=x))
    case("cross entropy", text, [shape] * 2, lambda x, y: raw.SoftmaxCrossEntropyWithLogits(features=x, labels=y))
    labels = np.arange(shape[0], dtype=np.int64) % shape[1]
    case("cross entropy", "sparse " + text, [shape, labels], lambda x, y: raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=y))


def reduce(family, name, shape, axes, op):
    case(family, f"{name} {'x'.join(map(str, shape))}", [shape], lambda x: op(input=x, axis=axes))


reduce("row sums", "sum", [1024, 1024], [1], raw.Sum)
reduce("row sums", "max", [1024, 1024], [1], raw.Max)
reduce("row sums", "mean of all", [1024, 1024], [0, 1], raw.Mean)
reduce("column sums", "sum", [1024, 1024], [0], raw.Sum)
reduce("column sums", "middle", [64, 128, 64], [1], raw.Sum)
case("bias gradient", "128x512", [[128, 512]], lambda x: raw.BiasAddGrad(out_backprop=x))
case("bias gradient", "25088x32", [[25088, 32]], lambda x: raw.BiasAddGrad(out_backprop=x))

POOL = dict(ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")
case("pooling", "max 32x24x24x64", [[32, 24, 24, 64]], lambda x: raw.MaxPool(input=x, **POOL))
case("pooling", "max gradient", [[32, 24, 24, 64], [32, 12, 12, 64], [32, 12, 12, 64]],
     lambda x, y, g: raw.MaxPoolGrad(orig_input=x, orig_output=y, grad=g, **POOL))
case("pooling", "average 32x24x24x64", [[32, 24, 24, 64]], lambda x: raw.AvgPool(value=x, **POOL))
case("normalization", "LRN 32x12x12x64", [[32, 12, 12, 64]], lambda x: raw.LRN(input=x, depth_radius=4, bias=1.0, alpha=0.001 / 9, beta=0.75))
case("normalization", "LRN gradient", [[32, 12, 12, 64]] * 3,
     lambda g, x, y: raw.LRNGrad(input_grads=g, input_image=x, output_image=y, depth_radius=4, bias=1.0, alpha=0.001 / 9, beta=0.75))
case("normalization", "batch norm 32x24x24x64", [[32, 24, 24, 64]] + [[64]] * 4,
     lambda x, s, o, m, v: raw.FusedBatchNormV3(x=x, scale=s, offset=o, mean=m[:0], variance=v[:0], is_training=True).y)
case("transpose", "1024x1024", [[1024, 1024]], lambda x: raw.Transpose(x=x, perm=[1, 0]))
case("transpose", "NHWC to NCHW 32x24x24x64", [[32, 24, 24, 64]], lambda x: raw.Transpose(x=x, perm=[0, 3, 1, 2]))
INDICES = np.random.RandomState(1).randint(0, 10000, 4096).astype(np.int32)
case("gather and scatter", "gather 4096 rows of 64", [[10000, 64], INDICES], lambda x, i: raw.GatherV2(params=x, indices=i, axis=0))
case("gather and scatter", "scatter 4096 rows of 64", [[4096, 64], INDICES[:, None]], lambda u, i: raw.ScatterNd(indices=i, updates=u, shape=[10000, 64]))
case("gather and scatter", "segment sum 4096 rows of 64", [[4096, 64], INDICES], lambda u, i: raw.UnsortedSegmentSum(data=u, segment_ids=i, num_segments=10000))
case("concatenation", "2 x 512x512, axis 1", [[512, 512]] * 2, lambda x, y: raw.ConcatV2(values=[x, y], axis=1))
case("concatenation", "4 x 256x1024, axis 0", [[256, 1024]] * 4, lambda *x: raw.ConcatV2(values=list(x), axis=0))
case("concatenation", "pad 32x24x24x64", [[32, 24, 24, 64]], lambda x: raw.Pad(input=x, paddings=[[0, 0], [2, 2], [2, 2], [0, 0]]))


def update(name, slots, build):
    """Build makes the update of the first of the variables with the given number of slots."""
    for n in (LARGE, 78400):
        case(name, f"{n}", Update([n], slots), build)


def scalars(*values):
    return [tf.constant(v, tf.float32) for v in values]


update("gradient descent", 0, lambda g, v: raw.ResourceApplyGradientDescent(var=v.handle, alpha=scalars(0.01)[0], delta=g))
update("momentum", 1, lambda g, v, m: raw.ResourceApplyMomentum(var=v.handle, accum=m.handle, lr=scalars(0.01)[0], grad=g, momentum=scalars(0.9)[0]))
update("Adagrad", 1, lambda g, v, a: raw.ResourceApplyAdagrad(var=v.handle, accum=a.handle, lr=scalars(0.01)[0], grad=g))


def adam(g, v, m, s):
    b1p, b2p, lr, b1, b2, eps = scalars(0.9, 0.99, 0.01, 0.9, 0.99, 1e-8)
    return raw.ResourceApplyAdam(var=v.handle, m=m.handle, v=s.handle, beta1_power=b1p, beta2_power=b2p, lr=lr, beta1=b1, beta2=b2, epsilon=eps, grad=g)


update("Adam", 2, adam)
