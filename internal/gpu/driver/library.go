package driver

import "github.com/weft-ml/weft/tensor"

// MatMul describes a batch of products C = A·B of row-major matrices without gaps. The type is
// float32, float64, float16 or bfloat16. Sizes are those of the product: A is M×K, or K×M if TransA
// is set; B is K×N, or N×K if TransB is set.
type MatMul struct {
	Type           tensor.DType // 16-bit types are summed in float32
	M, N, K        int
	TransA, TransB bool
	// Batch is the number of products, at least 1. Strides are the elements from one matrix to the
	// next; a stride of 0 uses one matrix for all products.
	Batch                     int
	StrideA, StrideB, StrideC int
	// TF32 allows products of float32 with 10 bits of mantissa.
	TF32 bool
}

// BLAS is a library of matrix products. It may be used by several goroutines at once.
type BLAS interface {
	// Name says which library it is, with its version.
	Name() string
	// MatMul queues a batch of products.
	MatMul(s Stream, c, a, b Mem, p MatMul) error
}

// ConvKind is what a convolution computes.
type ConvKind int

const (
	// ConvForward computes y from x and w.
	ConvForward ConvKind = iota
	// ConvBackwardData computes the gradient of x from w and the gradient of y.
	ConvBackwardData
	// ConvBackwardFilter computes the gradient of w from x and the gradient of y.
	ConvBackwardFilter
)

// Conv describes a convolution of two dimensions in TensorFlow's terms. The filter has the layout
// [KernelH, KernelW, InC/Groups, OutC].
type Conv struct {
	Type                 tensor.DType // float32, float64, float16 or bfloat16
	Channels             ChannelOrder
	Batch                int
	InH, InW, InC        int
	OutH, OutW, OutC     int
	KernelH, KernelW     int
	StrideH, StrideW     int
	DilationH, DilationW int
	PadTop, PadLeft      int
	PadBottom, PadRight  int
	Groups               int
	TF32                 bool // products of float32 with 10 bits of mantissa are allowed
}

// ChannelOrder is the layout of images.
type ChannelOrder int

const (
	// NHWC has the channels of a pixel one after the other.
	NHWC ChannelOrder = iota
	// NCHW has one image per channel.
	NCHW
)

// Scratch returns memory for one call. It is false if there is none, and the library then tries a
// method that needs less. The memory is free for later work of the same stream.
type Scratch func(size int) (Mem, bool)

// DNN is a library of convolutions. It may be used by several goroutines at once.
type DNN interface {
	// Name says which library it is, with its version.
	Name() string
	// Conv queues a convolution or a gradient of it. Its result is x, w or y by the kind.
	Conv(s Stream, kind ConvKind, x, w, y Mem, p Conv, scratch Scratch) error
}
