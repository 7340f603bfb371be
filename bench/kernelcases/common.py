"""The family "common": further operations that many programs use."""
import functools

import numpy as np
import tensorflow.compat.v1 as tf

from bench.kernelcases.registry import INDICES, POSITIONS, SMALL, Of, Update, case, raw, scalars

add = functools.partial(case, "common")

# Sorting and searching.
add("top 10 of 32x10000", [[32, 10000]], lambda x: raw.TopKV2(input=x, k=10).values)
add("top 100 of 65536", [[SMALL]], lambda x: raw.TopKV2(input=x, k=100).values)
add("sort 128x512", [[128, 512]], lambda x: raw.TopKV2(input=x, k=512).values)
add("in top 5 of 128x1000", [[128, 1000], INDICES[:128] % 1000], lambda x, y: raw.InTopKV2(predictions=x, targets=y, k=5))
add("argmin 128x1000", [[128, 1000]], lambda x: raw.ArgMin(input=x, dimension=1))
add("argmax 8x28x28x16", [[8, 28, 28, 16]], lambda x: raw.ArgMax(input=x, dimension=3))
add("argmax int32 128x1000", [Of(tf.int32, 128, 1000)], lambda x: raw.ArgMax(input=x, dimension=1))
add("unique 4096", [INDICES], lambda x: raw.Unique(x=x).y)
add("lower bound 4096 in 1000", [[1, 4096], np.linspace(0, 1, 1000, dtype=np.float32)[None]],
    lambda v, s: raw.LowerBound(sorted_inputs=s, values=v))
add("bucketize", [[SMALL]], lambda x: raw.Bucketize(input=x, boundaries=[0.1 * i for i in range(10)]))

# Cumulative sums, segments and sparse tensors.
add("running sum of 65536", [[SMALL]], lambda x: raw.Cumsum(x=x, axis=0))
add("running sum int32 128x512", [Of(tf.int32, 128, 512)], lambda x: raw.Cumsum(x=x, axis=1))
add("running sum 32x64x128, axis 1", [[32, 64, 128]], lambda x: raw.Cumsum(x=x, axis=1))
add("running product 128x512", [[128, 512]], lambda x: raw.Cumprod(x=x, axis=1))
SORTED = np.sort(INDICES) % 10000
add("segment sum 4096x64", [[4096, 64], SORTED], lambda u, i: raw.SegmentSum(data=u, segment_ids=i))
add("segment mean 4096x64", [[4096, 64], SORTED], lambda u, i: raw.SegmentMean(data=u, segment_ids=i))
add("unsorted segment sum 4096x64 to 100", [[4096, 64], INDICES % 100],
    lambda u, i: raw.UnsortedSegmentSum(data=u, segment_ids=i, num_segments=100))
add("unsorted segment max 4096x64 to 100", [[4096, 64], INDICES % 100],
    lambda u, i: raw.UnsortedSegmentMax(data=u, segment_ids=i, num_segments=100))
add("unsorted segment sum of 65536 numbers", [[SMALL], np.tile(INDICES % 1000, 16)],
    lambda u, i: raw.UnsortedSegmentSum(data=u, segment_ids=i, num_segments=1000))
add("sparse segment mean 4096x64", [[10000, 64], INDICES, np.arange(4096, dtype=np.int32) // 8],
    lambda x, i, s: raw.SparseSegmentMean(data=x, indices=i, segment_ids=s))
add("sparse dense product 4096x16", [[4096], [1000, 16]],
    lambda v, b: raw.SparseTensorDenseMatMul(a_indices=POSITIONS, a_values=v, a_shape=[512, 1000], b=b))
add("sparse dense product 4096x1", [[4096], [1000, 1]],
    lambda v, b: raw.SparseTensorDenseMatMul(a_indices=POSITIONS, a_values=v, a_shape=[512, 1000], b=b))
DISTINCT = np.unique(POSITIONS, axis=0)
add("sparse to dense", [[len(DISTINCT)]], lambda v: raw.SparseToDense(
    sparse_indices=DISTINCT, output_shape=np.array([512, 1000], np.int64), sparse_values=v, default_value=0.0))
add("bincount 65536", [np.tile(INDICES % 1000, 16)], lambda x: raw.Bincount(arr=x, size=1000, weights=np.zeros(0, np.float32)))
add("histogram 65536", [[SMALL]], lambda x: raw.HistogramFixedWidth(values=x, value_range=[0.0, 1.0], nbins=100))
add("where 128x512 of float32", [Of(tf.bool, 128, 512)], lambda c: raw.Where(condition=tf.cast(c, tf.float32)))
add("boolean mask", [[SMALL], np.arange(SMALL) % 2 == 0], lambda x, m: tf.boolean_mask(x, m))

# Images.
add("resize bilinear 8x64x64x3 to 128", [[8, 64, 64, 3]], lambda x: raw.ResizeBilinear(images=x, size=[128, 128]))
add("resize bilinear 8x28x28x64 to 14", [[8, 28, 28, 64]], lambda x: raw.ResizeBilinear(images=x, size=[14, 14]))
add("resize bilinear gradient", [[8, 128, 128, 3], [8, 64, 64, 3]], lambda g, x: raw.ResizeBilinearGrad(grads=g, original_image=x))
add("resize nearest 8x64x64x3 to 128", [[8, 64, 64, 3]], lambda x: raw.ResizeNearestNeighbor(images=x, size=[128, 128]))
add("resize bilinear uint8", [Of(tf.uint8, 8, 64, 64, 3)], lambda x: raw.ResizeBilinear(images=x, size=[128, 128]))
add("crop and resize", [[8, 64, 64, 3], np.tile(np.array([[0.1, 0.1, 0.8, 0.9]], np.float32), (8, 1)), np.arange(8, dtype=np.int32)],
    lambda x, b, i: raw.CropAndResize(image=x, boxes=b, box_ind=i, crop_size=[32, 32]))
add("depth to space 8x32x32x64", [[8, 32, 32, 64]], lambda x: raw.DepthToSpace(input=x, block_size=2))
add("space to depth 8x64x64x16", [[8, 64, 64, 16]], lambda x: raw.SpaceToDepth(input=x, block_size=2))
add("space to batch 8x32x32x32", [[8, 32, 32, 32]], lambda x: raw.SpaceToBatchND(input=x, block_shape=[2, 2], paddings=[[0, 0], [0, 0]]))
add("batch to space 32x16x16x32", [[32, 16, 16, 32]], lambda x: raw.BatchToSpaceND(input=x, block_shape=[2, 2], crops=[[0, 0], [0, 0]]))
add("extract patches 8x32x32x16, 3x3", [[8, 32, 32, 16]],
    lambda x: raw.ExtractImagePatches(images=x, ksizes=[1, 3, 3, 1], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME"))
add("adjust contrast", [[8, 64, 64, 3]], lambda x: raw.AdjustContrastv2(images=x, contrast_factor=1.5))
add("RGB to HSV", [[8, 64, 64, 3]], lambda x: raw.RGBToHSV(images=x))
add("cast uint8 image", [Of(tf.uint8, 8, 64, 64, 3)], lambda x: raw.Cast(x=x, DstT=tf.float32))

# Types.
for a, b in ((tf.float32, tf.uint8), (tf.float32, tf.bool), (tf.float16, tf.float32), (tf.bool, tf.int32), (tf.int32, tf.float64), (tf.float64, tf.int64),
             (tf.int8, tf.float32), (tf.float32, tf.int8), (tf.bool, tf.int64), (tf.uint8, tf.int32)):
    add(f"cast {a.name} to {b.name}", [Of(a, SMALL)], lambda x, b=b: raw.Cast(x=x, DstT=b))

# Selection and data movement.
add("select rows", [Of(tf.bool, 128), [128, 512], [128, 512]], lambda c, x, y: raw.Select(condition=c, x=x, y=y))
add("select by rows, spread", [Of(tf.bool, 128, 1), [128, 512], [128, 512]], lambda c, x, y: raw.SelectV2(condition=c, t=x, e=y))
add("select int64", [Of(tf.bool, SMALL), Of(tf.int64, SMALL), Of(tf.int64, SMALL)], lambda c, x, y: raw.SelectV2(condition=c, t=x, e=y))
add("tile 32x1x512 by 1, 16, 1", [[32, 1, 512]], lambda x: raw.Tile(input=x, multiples=[1, 16, 1]))
add("tile 512 by 100", [[512]], lambda x: raw.Tile(input=x, multiples=[100]))
add("pad 128x500 to 512", [[128, 500]], lambda x: raw.Pad(input=x, paddings=[[0, 0], [0, 12]]))
add("pad 8x64x64x3", [[8, 64, 64, 3]], lambda x: raw.Pad(input=x, paddings=[[0, 0], [4, 4], [4, 4], [0, 0]]))
add("last step of 32x64x256", [[32, 64, 256]], lambda x: x[:, -1])
add("column of 4096x64", [[4096, 64]], lambda x: x[:, 3])
add("strided slice gradient", [[128, 384]], lambda g: raw.StridedSliceGrad(
    shape=[128, 512], begin=[0, 16], end=[128, 400], strides=[1, 1], dy=g, begin_mask=1, end_mask=1))
add("split in 3 sizes", [[128, 600]], lambda x: raw.SplitV(value=x, size_splits=[100, 200, 300], axis=1, num_split=3))
add("unstack 32x20x128 along time", [[32, 20, 128]],  # TensorFlow copies only outputs that are used
    lambda x: raw.IdentityN(input=raw.Unpack(value=x, num=20, axis=1)))
add("stack 20 of 32x128 along time", [[32, 128]] * 20, lambda *x: raw.Pack(values=list(x), axis=1))
add("concat 32x128 and 32x256", [[32, 128], [32, 256]], lambda x, y: raw.ConcatV2(values=[x, y], axis=1))
add("reverse time 32x20x128", [[32, 20, 128]], lambda x: raw.ReverseV2(tensor=x, axis=[1]))
add("reverse sequence 32x20x128", [[32, 20, 128], np.arange(32, dtype=np.int64) % 20],
    lambda x, n: raw.ReverseSequence(input=x, seq_lengths=n, seq_dim=1, batch_dim=0))
add("flip images left to right", [[8, 64, 64, 3]], lambda x: raw.ReverseV2(tensor=x, axis=[2]))
add("roll 128x512", [[128, 512]], lambda x: raw.Roll(input=x, shift=[3], axis=[1]))
add("transpose heads 8x128x8x64", [[8, 128, 8, 64]], lambda x: raw.Transpose(x=x, perm=[0, 2, 1, 3]))
add("transpose time 32x20x128", [[32, 20, 128]], lambda x: raw.Transpose(x=x, perm=[1, 0, 2]))
add("transpose NHWC to NCHW 32x32x32x3", [[32, 32, 32, 3]], lambda x: raw.Transpose(x=x, perm=[0, 3, 1, 2]))
add("one hot 64x20 of 100", [INDICES[:1280].reshape(64, 20) % 100], lambda i: raw.OneHot(indices=i, depth=100, on_value=1.0, off_value=0.0))
add("gather 128 rows of 100000x64", [[100000, 64], INDICES[:128] * 10], lambda x, i: raw.GatherV2(params=x, indices=i, axis=0))
add("gather int64 indices", [[10000, 64], INDICES.astype(np.int64)], lambda x, i: raw.GatherV2(params=x, indices=i, axis=0))
add("gather in batches", [[64, 100, 16], INDICES[:640].reshape(64, 10) % 100], lambda x, i: raw.GatherV2(params=x, indices=i, axis=1, batch_dims=1))
add("tensor scatter update", [[10000, 16], INDICES[:512, None], [512, 16]], lambda x, i, u: raw.TensorScatterUpdate(tensor=x, indices=i, updates=u))
add("dynamic partition", [[4096, 64], INDICES % 4], lambda x, p: raw.DynamicPartition(data=x, partitions=p, num_partitions=4)[0])
add("band part 512x512", [[512, 512]], lambda x: raw.MatrixBandPart(input=x, num_lower=-1, num_upper=0))
add("matrix diagonal 512", [[512]], lambda x: raw.MatrixDiagV3(diagonal=x, k=0, num_rows=-1, num_cols=-1, padding_value=0.0))
add("range 65536", [], lambda: raw.Range(start=0, limit=SMALL, delta=1))
add("shape of", [[128, 512]], lambda x: raw.Shape(input=x))
add("zeros like", [[128, 512]], lambda x: raw.ZerosLike(x=x))
add("expand dims", [[128, 512]], lambda x: raw.ExpandDims(input=x, axis=1))
add("reshape", [[128, 512]], lambda x: raw.Reshape(tensor=x, shape=[512, 128]))

# Small operations, as in recurrent networks.
for name, op in (("add", raw.AddV2), ("multiply", raw.Mul)):
    add(f"{name} 32x128", [[32, 128]] * 2, lambda x, y, op=op: op(x=x, y=y))
    add(f"{name} of two numbers", [[], []], lambda x, y, op=op: op(x=x, y=y))
for name, op in (("sigmoid", raw.Sigmoid), ("tanh", raw.Tanh)):
    add(f"{name} 32x128", [[32, 128]], lambda x, op=op: op(x=x))
add("bias 32x512", [[32, 512], [512]], lambda x, b: raw.BiasAdd(value=x, bias=b))
add("product 32x384x512", [[32, 384], [384, 512]], lambda x, w: raw.MatMul(a=x, b=w))
add("product 1x512x512", [[1, 512], [512, 512]], lambda x, w: raw.MatMul(a=x, b=w))
add("product 512x512x1", [[512, 512], [512, 1]], lambda x, w: raw.MatMul(a=x, b=w))
add("product 8x16x8", [[8, 16], [16, 8]], lambda x, w: raw.MatMul(a=x, b=w))
add("sum 128x10 of rows", [[128, 10]], lambda x: raw.Sum(input=x, axis=[1]))
add("mean of 128", [[128]], lambda x: raw.Mean(input=x, axis=[0]))


def lstm(x, h, c, w, b):
    i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), w) + b, 4, axis=1)
    c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
    return tf.tanh(c) * tf.sigmoid(o)


add("LSTM cell 32x128x128", [[32, 128]] * 3 + [[256, 512], [512]], lstm)
add("LSTM block cell 32x128x128", [[32, 128]] * 3 + [[256, 512], [128], [512]],
    lambda x, c, h, w, p, b: raw.LSTMBlockCell(x=x, cs_prev=c, h_prev=h, w=w, wci=p, wcf=p, wco=p, b=b).h)
for name, x, y in (("256x(16x16x16)", [256, 16, 16], [256, 16, 16]), ("64x8x(20x64x20)", [64, 8, 20, 64], [64, 8, 64, 20]),
                   ("128x(1x64x100)", [128, 1, 64], [128, 64, 100]), ("1000x(4x4x4)", [1000, 4, 4], [1000, 4, 4])):
    add(f"batched product {name}", [x, y], lambda x, y: raw.BatchMatMulV2(x=x, y=y))
add("batched product of transposed 8x8x(128x64x128)", [[8, 8, 128, 64]] * 2, lambda x, y: raw.BatchMatMulV2(x=x, y=y, adj_y=True))
add("einsum bij,jk->bik", [[32, 20, 128], [128, 64]], lambda x, y: raw.Einsum(inputs=[x, y], equation="bij,jk->bik"))
add("softmax 8x8x128x128", [[8, 8, 128, 128]], lambda x: raw.Softmax(logits=x))
add("log softmax 128x1000", [[128, 1000]], lambda x: raw.LogSoftmax(logits=x))
add("leaky relu", [[SMALL]], lambda x: raw.LeakyRelu(features=x))
add("elu", [[SMALL]], lambda x: raw.Elu(features=x))
add("softplus", [[SMALL]], lambda x: raw.Softplus(features=x))
add("relu 6", [[SMALL]], lambda x: raw.Relu6(features=x))
add("sigmoid gradient", [[SMALL]] * 2, lambda y, g: raw.SigmoidGrad(y=y, dy=g))
add("minimum of a number", [[SMALL], np.float32(0.5)], lambda x, y: raw.Minimum(x=x, y=y))
add("round", [[SMALL]], lambda x: raw.Round(x=x))
add("sign", [[SMALL]], lambda x: raw.Sign(x=x))
add("negate", [[SMALL]], lambda x: raw.Neg(x=x))
add("is NaN", [[SMALL]], lambda x: raw.IsNan(x=x))
add("logical not", [Of(tf.bool, SMALL)], lambda x: raw.LogicalNot(x=x))
add("floor division int32", [Of(tf.int32, SMALL), np.int32(7)], lambda x, y: raw.FloorDiv(x=x, y=y))
add("floor modulo int32", [Of(tf.int32, SMALL), np.int32(7)], lambda x, y: raw.FloorMod(x=x, y=y))
add("equal int32 of a number", [Of(tf.int32, SMALL), np.int32(7)], lambda x, y: raw.Equal(x=x, y=y))
add("check numerics", [[SMALL]], lambda x: raw.CheckNumerics(tensor=x, message=""))
add("dropout mask", [[128, 512]], lambda x: tf.nn.dropout(x, rate=0.5, seed=1))

# Strings.
WORDS = np.array([b"word%d" % i for i in INDICES])
add("string to number", [np.array([b"%d.5" % i for i in INDICES])], lambda s: raw.StringToNumber(string_tensor=s))
add("as string", [INDICES], lambda x: raw.AsString(input=x))
add("string join", [WORDS, WORDS], lambda x, y: raw.StringJoin(inputs=[x, y], separator="-"))
add("string hash", [WORDS], lambda x: raw.StringToHashBucketFast(input=x, num_buckets=1000))
add("string length", [WORDS], lambda x: raw.StringLength(input=x))
add("substring", [WORDS], lambda x: raw.Substr(input=x, pos=1, len=3))
add("string equal", [WORDS, WORDS], lambda x, y: raw.Equal(x=x, y=y))
add("string split", [np.array([b"some words that are split %d" % i for i in INDICES[:256]])], lambda x: raw.StringSplitV2(input=x, sep=" ").values)
add("string lower", [WORDS], lambda x: raw.StringLower(input=x))
add("decode raw", [np.array([b"0123456789abcdef" * 16] * 64)], lambda x: raw.DecodeRaw(bytes=x, out_type=tf.float32))
add("gather strings", [WORDS, INDICES % 4096], lambda x, i: raw.GatherV2(params=x, indices=i, axis=0))


def sparse(name, slots, build):
    """Adds a case that updates 512 of 10000 rows of 64 elements."""
    add("sparse " + name, Update([10000, 64], slots, [512, 64], [INDICES[:512]]), build)


sparse("gradient descent", 0, lambda g, v, i: raw.ResourceScatterSub(resource=v.handle, indices=i, updates=g))
sparse("Adagrad", 1, lambda g, v, a, i: raw.ResourceSparseApplyAdagradV2(
    var=v.handle, accum=a.handle, lr=scalars(0.01)[0], epsilon=scalars(1e-7)[0], grad=g, indices=i))
sparse("FTRL", 2, lambda g, v, a, n, i: raw.ResourceSparseApplyFtrl(
    **dict(zip(("lr", "l1", "l2", "lr_power"), scalars(0.01, 0.001, 0.001, -0.5))), var=v.handle, accum=a.handle, linear=n.handle, grad=g, indices=i))
sparse("RMSProp", 2, lambda g, v, s, m, i: raw.ResourceSparseApplyRMSProp(
    **dict(zip(("lr", "rho", "momentum", "epsilon"), scalars(0.01, 0.9, 0.9, 1e-7))), var=v.handle, ms=s.handle, mom=m.handle, grad=g, indices=i))
