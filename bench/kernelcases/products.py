"""Matrix products and convolutions in further types, layouts and forms."""
import tensorflow.compat.v1 as tf

from bench.kernelcases.registry import Of, case, raw


def matmul(dtype, m, k, n, ta=False, tb=False):
    a, b = [k, m] if ta else [m, k], [n, k] if tb else [k, n]
    name = f"{dtype.name} {'t' if ta else 'n'}{'t' if tb else 'n'} {m}x{k}x{n}"
    case("products of other types", name, [Of(dtype, *a), Of(dtype, *b)],
         lambda x, y: raw.MatMul(a=x, b=y, transpose_a=ta, transpose_b=tb))


for t in (tf.float64, tf.bfloat16):
    for size in (64, 256, 512):
        matmul(t, size, size, size)
    matmul(t, 128, 784, 512)
    matmul(t, 784, 128, 512, ta=True)
    matmul(t, 128, 512, 784, tb=True)


def fused(op, inputs, activation, **attrs):
    """Returns a node of an operation that only graph optimizers create."""
    steps = tf.AttrValue(list=tf.AttrValue.ListValue(s=[b"BiasAdd", *activation]))
    attrs = {"T": tf.AttrValue(type=tf.float32.as_datatype_enum), "num_args": tf.AttrValue(i=1), "fused_ops": steps, **attrs}
    return tf.get_default_graph().create_op(op, list(inputs), [tf.float32], attrs=attrs, name="fused").outputs[0]


def named(form, activation):
    return " ".join([form, "bias", *(a.decode() for a in activation)])


for m, k, n in ((128, 784, 512), (128, 512, 512), (128, 512, 10)):
    for activation in ([], [b"Relu"], [b"Tanh"]):
        case("fused product", named(f"{m}x{k}x{n}", activation), [[m, k], [k, n], [n]],
             lambda *inputs, activation=activation: fused("_FusedMatMul", inputs, activation))


def forms(family, name, shape, kernel, dtype=tf.float32, stride=1, dilation=1, padding="SAME", nchw=False, gradients=True):
    """Adds cases of a convolution and its gradients. shape is in NHWC order."""
    n, h, w, c = shape
    reach = (kernel[0] - 1) * dilation + 1
    to = [-(-s // stride) if padding == "SAME" else -(-(s - reach + 1) // stride) for s in (h, w)]
    order = (lambda n, h, w, c: [n, c, h, w]) if nchw else (lambda n, h, w, c: [n, h, w, c])
    k = dict(strides=order(1, stride, stride, 1), dilations=order(1, dilation, dilation, 1), padding=padding,
             data_format="NCHW" if nchw else "NHWC")
    x, f, y = order(*shape), kernel, order(n, *to, kernel[3])
    case(family, name, [Of(dtype, *x), Of(dtype, *f)], lambda a, b: raw.Conv2D(input=a, filter=b, **k))
    if gradients:
        case(family, name + " input gradient", [Of(dtype, *f), Of(dtype, *y)],
             lambda a, b: raw.Conv2DBackpropInput(input_sizes=x, filter=a, out_backprop=b, **k))
        case(family, name + " filter gradient", [Of(dtype, *x), Of(dtype, *y)],
             lambda a, b: raw.Conv2DBackpropFilter(input=a, filter_sizes=f, out_backprop=b, **k))


SHAPE, KERNEL = [16, 28, 28, 64], [3, 3, 64, 64]
forms("convolution, other forms", "VALID", SHAPE, KERNEL, padding="VALID")
forms("convolution, other forms", "NCHW", SHAPE, KERNEL, nchw=True)
forms("convolution, other forms", "dilation 2", SHAPE, KERNEL, dilation=2)
forms("convolution, other forms", "4 groups", SHAPE, [3, 3, 16, 64])
forms("convolution, other forms", "1x1", SHAPE, [1, 1, 64, 256])
forms("convolution, other forms", "1x1/2", SHAPE, [1, 1, 64, 128], stride=2)
forms("convolution, other forms", "7x7 images", [16, 7, 7, 256], [3, 3, 256, 256])
forms("convolution of other types", "float64", SHAPE, KERNEL, dtype=tf.float64)
forms("convolution of other types", "bfloat16", SHAPE, KERNEL, dtype=tf.bfloat16)
forms("transposed convolution", "8x16x16x128 to 32x32x64", [8, 32, 32, 64], [4, 4, 64, 128], stride=2)

CONVOLUTION = {
    "num_host_args": tf.AttrValue(i=0), "TArgs": tf.AttrValue(list=tf.AttrValue.ListValue(type=[tf.float32.as_datatype_enum])),
    "strides": tf.AttrValue(list=tf.AttrValue.ListValue(i=[1] * 4)), "padding": tf.AttrValue(s=b"SAME"),
}
for activation in ([], [b"Relu"], [b"Relu6"]):
    case("fused convolution", named("16x28x28x64, 3x3x64", activation), [SHAPE, KERNEL, [64]],
         lambda *inputs, activation=activation: fused("_FusedConv2D", inputs, activation, **CONVOLUTION))


def volume(name, shape, kernel):
    k = dict(strides=[1] * 5, padding="SAME")
    y = shape[:4] + [kernel[4]]
    case("convolution of volumes", name, [shape, kernel], lambda x, f: raw.Conv3D(input=x, filter=f, **k))
    case("convolution of volumes", name + " input gradient", [kernel, y],
         lambda f, g: raw.Conv3DBackpropInputV2(input_sizes=shape, filter=f, out_backprop=g, **k))
    case("convolution of volumes", name + " filter gradient", [shape, y],
         lambda x, g: raw.Conv3DBackpropFilterV2(input=x, filter_sizes=kernel, out_backprop=g, **k))


volume("4x8x28x28x16, 3x3x3x32", [4, 8, 28, 28, 16], [3, 3, 3, 16, 32])
volume("2x16x16x16x64, 3x3x3x64", [2, 16, 16, 16, 64], [3, 3, 3, 64, 64])
