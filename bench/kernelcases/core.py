"""Cases of the operations that dominate training programs."""
import numpy as np
import tensorflow.compat.v1 as tf

from bench.kernelcases.registry import INDICES, LARGE, POSITIONS, SMALL, Of, Update, case, raw, scalars


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


def depthwise(n, size, channels, width, multiplier=1, stride=1):
    k = dict(strides=[1, stride, stride, 1], padding="SAME")
    shape, kernel = [n, size, size, channels], [width, width, channels, multiplier]
    grad = [n, -(-size // stride), -(-size // stride), channels * multiplier]
    name = f"{n}x{size}x{size}x{channels}, {width}x{width}" + (f"x{multiplier}" if multiplier > 1 else "") + (f"/{stride}" if stride > 1 else "")
    family = "depthwise convolution"
    case(family, name, [shape, kernel], lambda x, f: raw.DepthwiseConv2dNative(input=x, filter=f, **k))
    case(family, name + " input gradient", [kernel, grad],
         lambda f, g: raw.DepthwiseConv2dNativeBackpropInput(input_sizes=shape, filter=f, out_backprop=g, **k))
    case(family, name + " filter gradient", [shape, grad],
         lambda x, g: raw.DepthwiseConv2dNativeBackpropFilter(input=x, filter_sizes=kernel, out_backprop=g, **k))


depthwise(16, 28, 64, 3)
depthwise(16, 14, 256, 3)
depthwise(16, 28, 64, 3, stride=2)
depthwise(16, 14, 96, 5)
depthwise(16, 28, 32, 3, multiplier=2)

for name, op in (("exp", raw.Exp), ("sigmoid", raw.Sigmoid), ("tanh", raw.Tanh), ("log", raw.Log), ("erf", raw.Erf), ("rsqrt", raw.Rsqrt)):
    for n in (LARGE, SMALL):
        case(name, f"{n}", [[n]], lambda x, op=op: op(x=x))
case("power", f"{SMALL}", [[SMALL]] * 2, lambda x, y: raw.Pow(x=x, y=y))
case("power", f"float64 {SMALL}", [Of(tf.float64, SMALL)] * 2, lambda x, y: raw.Pow(x=x, y=y))
case("power", f"squares {SMALL}", [[SMALL], np.float32(2)], lambda x, y: raw.Pow(x=x, y=y))
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


def pooling(name, shape, size, stride):
    rank = len(shape) - 2
    k = dict(ksize=[1, *[size] * rank, 1], strides=[1, *[stride] * rank, 1], padding="SAME")
    out = [shape[0]] + [-(-d // stride) for d in shape[1:-1]] + shape[-1:]
    maximum, max_gradient = (raw.MaxPool, raw.MaxPoolGrad) if rank == 2 else (raw.MaxPool3D, raw.MaxPool3DGrad)
    average = (lambda x: raw.AvgPool(value=x, **k)) if rank == 2 else (lambda x: raw.AvgPool3D(input=x, **k))
    average_gradient = raw.AvgPoolGrad if rank == 2 else raw.AvgPool3DGrad
    case("pooling", f"max {name}", [shape], lambda x: maximum(input=x, **k))
    case("pooling", f"max {name} gradient", [shape, out, out], lambda x, y, g: max_gradient(orig_input=x, orig_output=y, grad=g, **k))
    case("pooling", f"average {name}", [shape], average)
    case("pooling", f"average {name} gradient", [out], lambda g: average_gradient(orig_input_shape=shape, grad=g, **k))


pooling("32x24x24x64, 3x3/2", [32, 24, 24, 64], 3, 2)
pooling("16x28x28x96, 2x2/2", [16, 28, 28, 96], 2, 2)
pooling("4x8x28x28x32, 2x2x2/2", [4, 8, 28, 28, 32], 2, 2)
case("normalization", "LRN 32x12x12x64", [[32, 12, 12, 64]], lambda x: raw.LRN(input=x, depth_radius=4, bias=1.0, alpha=0.001 / 9, beta=0.75))
case("normalization", "LRN gradient", [[32, 12, 12, 64]] * 3,
     lambda g, x, y: raw.LRNGrad(input_grads=g, input_image=x, output_image=y, depth_radius=4, bias=1.0, alpha=0.001 / 9, beta=0.75))
case("normalization", "batch norm 32x24x24x64", [[32, 24, 24, 64]] + [[64]] * 4,
     lambda x, s, o, m, v: raw.FusedBatchNormV3(x=x, scale=s, offset=o, mean=m[:0], variance=v[:0], is_training=True).y)
case("normalization", "batch norm inference", [[32, 24, 24, 64]] + [[64]] * 4,
     lambda x, s, o, m, v: raw.FusedBatchNormV3(x=x, scale=s, offset=o, mean=m, variance=v, is_training=False).y)
case("normalization", "batch norm gradient", [[32, 24, 24, 64]] * 2 + [[64]] * 3,
     lambda g, x, s, m, v: raw.FusedBatchNormGradV3(y_backprop=g, x=x, scale=s, reserve_space_1=m, reserve_space_2=v, reserve_space_3=v).x_backprop)


def layer_norm(x, scale, offset):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-5)


case("normalization", "layer norm 2048x512", [[2048, 512], [512], [512]], layer_norm)
case("transpose", "1024x1024", [[1024, 1024]], lambda x: raw.Transpose(x=x, perm=[1, 0]))
case("transpose", "NHWC to NCHW 32x24x24x64", [[32, 24, 24, 64]], lambda x: raw.Transpose(x=x, perm=[0, 3, 1, 2]))
case("gather and scatter", "gather 4096 rows of 64", [[10000, 64], INDICES], lambda x, i: raw.GatherV2(params=x, indices=i, axis=0))
case("gather and scatter", "scatter 4096 rows of 64", [[4096, 64], INDICES[:, None]], lambda u, i: raw.ScatterNd(indices=i, updates=u, shape=[10000, 64]))
case("gather and scatter", "segment sum 4096 rows of 64", [[4096, 64], INDICES], lambda u, i: raw.UnsortedSegmentSum(data=u, segment_ids=i, num_segments=10000))
case("concatenation", "2 x 512x512, axis 1", [[512, 512]] * 2, lambda x, y: raw.ConcatV2(values=[x, y], axis=1))
case("concatenation", "4 x 256x1024, axis 0", [[256, 1024]] * 4, lambda *x: raw.ConcatV2(values=list(x), axis=0))
case("concatenation", "pad 32x24x24x64", [[32, 24, 24, 64]], lambda x: raw.Pad(input=x, paddings=[[0, 0], [2, 2], [2, 2], [0, 0]]))


for dtype in (tf.float64, tf.bfloat16):
    for name, op in (("exp", raw.Exp), ("sigmoid", raw.Sigmoid), ("tanh", raw.Tanh), ("log", raw.Log), ("erf", raw.Erf), ("rsqrt", raw.Rsqrt)):
        case(f"{dtype.name} map", name, [Of(dtype, SMALL)], lambda x, op=op: op(x=x))
    case(f"{dtype.name} map", "add", [Of(dtype, SMALL)] * 2, lambda x, y: raw.AddV2(x=x, y=y))
    case(f"{dtype.name} map", "multiply", [Of(dtype, SMALL)] * 2, lambda x, y: raw.Mul(x=x, y=y))
    case(f"{dtype.name} map", "relu", [Of(dtype, SMALL)], lambda x: raw.Relu(features=x))
    case(f"{dtype.name} map", "softmax", [Of(dtype, 128, 1000)], lambda x: raw.Softmax(logits=x))
    case(f"{dtype.name} reduction", "row sums", [Of(dtype, 256, 1024)], lambda x: raw.Sum(input=x, axis=[1]))
    case(f"{dtype.name} reduction", "column sums", [Of(dtype, 256, 1024)], lambda x: raw.Sum(input=x, axis=[0]))
    case(f"{dtype.name} reduction", "row max", [Of(dtype, 256, 1024)], lambda x: raw.Max(input=x, axis=[1]))
for name, op in (("sqrt", raw.Sqrt), ("log1p", raw.Log1p), ("expm1", raw.Expm1), ("sin", raw.Sin), ("cos", raw.Cos), ("square", raw.Square),
                 ("floor", raw.Floor), ("abs", raw.Abs), ("is finite", raw.IsFinite), ("reciprocal", raw.Reciprocal)):
    case("further map", name, [[SMALL]], lambda x, op=op: op(x=x))
for name, op in (("subtract", raw.Sub), ("divide", raw.RealDiv), ("maximum", raw.Maximum), ("squared difference", raw.SquaredDifference),
                 ("less", raw.Less), ("equal", raw.Equal), ("divide no NaN", raw.DivNoNan), ("tanh gradient", None), ("floor modulo", raw.FloorMod)):
    op = op or (lambda x, y: raw.TanhGrad(y=x, dy=y))
    case("further map", name, [[SMALL]] * 2, lambda x, y, op=op: op(x=x, y=y))
for dtype in (tf.int32, tf.int64):
    case("integer map", f"add {dtype.name}", [Of(dtype, SMALL)] * 2, lambda x, y: raw.AddV2(x=x, y=y))
    case("integer map", f"multiply {dtype.name}", [Of(dtype, SMALL)] * 2, lambda x, y: raw.Mul(x=x, y=y))
    case("integer map", f"less {dtype.name}", [Of(dtype, SMALL)] * 2, lambda x, y: raw.Less(x=x, y=y))
case("integer map", "logical and", [Of(tf.bool, SMALL)] * 2, lambda x, y: raw.LogicalAnd(x=x, y=y))
case("choice", "select", [Of(tf.bool, SMALL), [SMALL], [SMALL]], lambda c, x, y: raw.SelectV2(condition=c, t=x, e=y))
case("choice", "select with a number", [Of(tf.bool, SMALL), [SMALL], np.float32(0)], lambda c, x, y: raw.SelectV2(condition=c, t=x, e=y))
case("choice", "clip", [[SMALL], np.float32(0.2), np.float32(0.8)], lambda x, lo, hi: raw.ClipByValue(t=x, clip_value_min=lo, clip_value_max=hi))
case("choice", "where", [Of(tf.bool, SMALL)], lambda c: raw.Where(condition=c))
for n in (2, 4, 9):
    case("choice", f"add {n}", [[SMALL]] * n, lambda *x: raw.AddN(inputs=list(x)))
for a, b in ((tf.float32, tf.float64), (tf.float64, tf.float32), (tf.float32, tf.bfloat16), (tf.bfloat16, tf.float32), (tf.float32, tf.float16),
             (tf.float32, tf.int32), (tf.int32, tf.float32), (tf.int64, tf.float32), (tf.float32, tf.int64), (tf.uint8, tf.float32),
             (tf.bool, tf.float32), (tf.int64, tf.int32), (tf.int32, tf.int64)):
    case("cast", f"{a.name} to {b.name}", [Of(a, SMALL)], lambda x, b=b: raw.Cast(x=x, DstT=b))
for x, y in (([128, 512], [512]), ([256, 1], [1, 256]), ([512, 128], [512, 1]), ([64, 32, 32], [64, 1, 32]), ([32, 24, 24, 64], [64]), ([8192, 8], [8])):
    case("broadcast", f"{x} + {y}", [x, y], lambda x, y: raw.AddV2(x=x, y=y))
case("broadcast", "[128, 512] * 1", [[128, 512], [1]], lambda x, y: raw.Mul(x=x, y=y))
reduce("further reduction", "product rows", [1024, 64], [1], raw.Prod)
reduce("further reduction", "max columns", [1024, 64], [0], raw.Max)
reduce("further reduction", "mean NHWC", [32, 24, 24, 64], [1, 2], raw.Mean)
reduce("further reduction", "sum of all", [SMALL], [0], raw.Sum)
reduce("further reduction", "sum", [4096, 16], [1], raw.Sum)
reduce("further reduction", "sum outer and inner", [64, 64, 64], [0, 2], raw.Sum)
case("further reduction", "all of", [Of(tf.bool, 256, 256)], lambda x: raw.All(input=x, axis=[1]))
case("further reduction", "int32", [Of(tf.int32, 256, 256)], lambda x: raw.Sum(input=x, axis=[1]))
case("further reduction", "L2 loss", [[SMALL]], lambda x: raw.L2Loss(t=x))
case("further reduction", "argmax 128x1000", [[128, 1000]], lambda x: raw.ArgMax(input=x, dimension=1))
case("further reduction", "argmax 128x10", [[128, 10]], lambda x: raw.ArgMax(input=x, dimension=1))
case("further reduction", "argmax of columns 1000x64", [[1000, 64]], lambda x: raw.ArgMax(input=x, dimension=0))
case("further reduction", "running sum of rows 128x512", [[128, 512]], lambda x: raw.Cumsum(x=x, axis=1))
case("further reduction", "running sum of columns 128x512", [[128, 512]], lambda x: raw.Cumsum(x=x, axis=0))
case("further reduction", "top 5 of 128x1000", [[128, 1000]], lambda x: raw.TopKV2(input=x, k=5).values)
case("further reduction", "in top 1 of 128x10", [[128, 10], np.zeros(128, np.int32)], lambda x, y: raw.InTopKV2(predictions=x, targets=y, k=1))
case("movement", "one hot 4096x10", [INDICES % 10], lambda i: raw.OneHot(indices=i, depth=10, on_value=1.0, off_value=0.0))
case("movement", "one hot 128x1000", [INDICES[:128] % 1000], lambda i: raw.OneHot(indices=i, depth=1000, on_value=1.0, off_value=0.0))
case("movement", "tile 64x64 by 4, 4", [[64, 64]], lambda x: raw.Tile(input=x, multiples=[4, 4]))
case("movement", "tile 128x1 by 1, 512", [[128, 1]], lambda x: raw.Tile(input=x, multiples=[1, 512]))
case("movement", "strided slice", [[128, 512]], lambda x: x[:, 16:400])
case("movement", "strided slice by 2", [[128, 512]], lambda x: x[::2, ::2])
case("movement", "slice", [[32, 24, 24, 64]], lambda x: raw.Slice(input=x, begin=[0, 2, 2, 0], size=[32, 20, 20, 64]))
case("movement", "split 128x2048 in 4", [[128, 2048]], lambda x: raw.Split(axis=1, value=x, num_split=4))
case("movement", "stack 8 of 64x64", [[64, 64]] * 8, lambda *x: raw.Pack(values=list(x), axis=0))
case("movement", "stack 8 of 64x64 inside", [[64, 64]] * 8, lambda *x: raw.Pack(values=list(x), axis=1))
case("movement", "unstack 64x1024", [[64, 1024]], lambda x: raw.Unpack(value=x, num=64, axis=0))
case("movement", "reverse 128x512", [[128, 512]], lambda x: raw.ReverseV2(tensor=x, axis=[1]))
case("movement", "fill 65536", [np.float32(1)], lambda x: raw.Fill(dims=[SMALL], value=x))
case("movement", "broadcast to 128x512", [[512]], lambda x: raw.BroadcastTo(input=x, shape=[128, 512]))
case("movement", "mirror pad", [[32, 24, 24, 16]], lambda x: raw.MirrorPad(input=x, paddings=[[0, 0], [2, 2], [2, 2], [0, 0]], mode="REFLECT"))
case("movement", "gather 4096 numbers", [[10000], INDICES], lambda x, i: raw.GatherV2(params=x, indices=i, axis=0))
case("movement", "gather of columns", [[256, 1000], INDICES[:256] % 1000], lambda x, i: raw.GatherV2(params=x, indices=i, axis=1))
case("movement", "gather by vectors", [[100, 100, 16], np.stack([INDICES % 100, INDICES // 100], 1)], lambda x, i: raw.GatherNd(params=x, indices=i))
case("movement", "dynamic stitch", [np.arange(512, dtype=np.int32), [512, 64]], lambda i, x: raw.DynamicStitch(indices=[i], data=[x]))
for perm, shape in (([0, 2, 1], [64, 64, 64]), ([0, 2, 1, 3], [16, 64, 8, 64]), ([1, 0], [4096, 16])):
    case("movement", f"transpose {shape} {perm}", [shape], lambda x, p=perm: raw.Transpose(x=x, perm=p))
for dtype in (tf.float64, tf.bfloat16):
    case("movement", f"transpose 512x512 {dtype.name}", [Of(dtype, 512, 512)], lambda x: raw.Transpose(x=x, perm=[1, 0]))
for n in (SMALL, LARGE):
    case("random", f"uniform {n}", [np.array([n], np.int32)], lambda s: raw.RandomUniform(shape=s, dtype=tf.float32, seed=1, seed2=2))
    case("random", f"normal {n}", [np.array([n], np.int32)], lambda s: raw.RandomStandardNormal(shape=s, dtype=tf.float32, seed=1, seed2=2))
    case("random", f"truncated normal {n}", [np.array([n], np.int32)], lambda s: raw.TruncatedNormal(shape=s, dtype=tf.float32, seed=1, seed2=2))
case("random", "stateless uniform", [np.array([SMALL], np.int32), np.array([1, 2], np.int32)],
     lambda s, k: raw.StatelessRandomUniform(shape=s, seed=k, dtype=tf.float32))
case("random", "shuffle 4096 rows of 16", [[4096, 16]], lambda x: raw.RandomShuffle(value=x, seed=1, seed2=2))
case("sparse product", "4096 of 512x1000, by 64", [[4096], [1000, 64]],
     lambda v, b: raw.SparseTensorDenseMatMul(a_indices=POSITIONS, a_values=v, a_shape=[512, 1000], b=b))


def update(name, slots, build):
    """Adds cases of an update rule with the given number of slots. build returns the update."""
    for n in (LARGE, 78400):
        case(name, f"{n}", Update([n], slots), build)


update("gradient descent", 0, lambda g, v: raw.ResourceApplyGradientDescent(var=v.handle, alpha=scalars(0.01)[0], delta=g))
update("momentum", 1, lambda g, v, m: raw.ResourceApplyMomentum(var=v.handle, accum=m.handle, lr=scalars(0.01)[0], grad=g, momentum=scalars(0.9)[0]))
update("Adagrad", 1, lambda g, v, a: raw.ResourceApplyAdagrad(var=v.handle, accum=a.handle, lr=scalars(0.01)[0], grad=g))


def adam(g, v, m, s):
    b1p, b2p, lr, b1, b2, eps = scalars(0.9, 0.99, 0.01, 0.9, 0.99, 1e-8)
    return raw.ResourceApplyAdam(var=v.handle, m=m.handle, v=s.handle, beta1_power=b1p, beta2_power=b2p, lr=lr, beta1=b1, beta2=b2, epsilon=eps, grad=g)


update("Adam", 2, adam)


def rms(g, v, ms, mom):
    lr, rho, momentum, eps = scalars(0.01, 0.9, 0.9, 1e-7)
    return raw.ResourceApplyRMSProp(var=v.handle, ms=ms.handle, mom=mom.handle, lr=lr, rho=rho, momentum=momentum, epsilon=eps, grad=g)


def ftrl(g, v, a, linear):
    lr, l1, l2, power = scalars(0.01, 0.001, 0.001, -0.5)
    return raw.ResourceApplyFtrl(var=v.handle, accum=a.handle, linear=linear.handle, grad=g, lr=lr, l1=l1, l2=l2, lr_power=power)


update("RMSProp", 2, rms)
update("FTRL", 2, ftrl)


def sparse(name, slots, build):
    """Adds a case that updates 4096 of 10000 rows of 64 elements."""
    case("sparse update", name, Update([10000, 64], slots, [4096, 64], [INDICES]), build)


sparse("scatter add", 0, lambda g, v, i: raw.ResourceScatterAdd(resource=v.handle, indices=i, updates=g))
sparse("scatter update", 0, lambda g, v, i: raw.ResourceScatterUpdate(resource=v.handle, indices=i, updates=g))
sparse("Adagrad", 1, lambda g, v, a, i: raw.ResourceSparseApplyAdagrad(var=v.handle, accum=a.handle, lr=scalars(0.01)[0], grad=g, indices=i))
sparse("momentum", 1, lambda g, v, m, i: raw.ResourceSparseApplyMomentum(
    var=v.handle, accum=m.handle, lr=scalars(0.01)[0], grad=g, indices=i, momentum=scalars(0.9)[0]))
