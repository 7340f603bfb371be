package gpu

import (
	"maps"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// adapted are the operations whose kernels for CPUs queue their work on a device if their
// tensors are there: they touch elements only through the packages strided and gatherscatter,
// or ask for the device themselves. The attribute of the element type is given.
var adapted = map[string]string{
	"BatchMatrixDiag": "T", "BatchMatrixDiagPart": "T", "BatchMatrixSetDiag": "T", "BatchToSpace": "T", "BatchToSpaceND": "T",
	"BroadcastTo": "T", "Concat": "T", "ConcatV2": "T", "DepthToSpace": "T", "Diag": "T", "DiagPart": "T", "DynamicStitch": "T", "Empty": "dtype",
	"ExtractImagePatches": "T", "Fill": "T", "InplaceUpdate": "T", "MatrixDiag": "T", "MatrixDiagPart": "T", "MatrixDiagPartV2": "T",
	"MatrixDiagPartV3": "T", "MatrixDiagV2": "T", "MatrixDiagV3": "T", "MatrixSetDiag": "T", "MatrixSetDiagV2": "T", "MatrixSetDiagV3": "T",
	"OnesLike": "T", "Pack": "T", "Pad": "T", "PadV2": "T", "Reverse": "T", "ReverseV2": "T",
	"Roll": "T", "Slice": "T", "SpaceToBatch": "T", "SpaceToBatchND": "T", "SpaceToDepth": "T", "Split": "T", "SplitV": "T",
	"StridedSlice": "T", "StridedSliceGrad": "T", "TensorStridedSliceUpdate": "T", "Tile": "T", "Transpose": "T", "Unpack": "T",
	"ZerosLike": "T",
}

func init() {
	plain := slices.Collect(maps.Values(source.TypesByName))
	for op, attr := range adapted {
		adapt(op, kernel.OfType(attr, plain...))
	}
	adapt("ConjugateTranspose", kernel.OfType("T", realTypes()...))
	index := kernel.OfType("Tindices", tensor.Int32, tensor.Int64)
	for op, attr := range map[string]string{
		"Gather": "Tparams", "GatherNd": "Tparams", "GatherV2": "Tparams", "ResourceGather": "dtype", "ResourceGatherNd": "dtype",
		"ResourceScatterUpdate": "dtype", "ScatterUpdate": "T", "ScatterNdUpdate": "T", "ResourceScatterNdUpdate": "T",
		"TensorScatterUpdate": "T",
	} {
		adapt(op, kernel.OfType(attr, plain...), index)
	}
	for _, name := range []string{"Add", "Sub", "Mul", "Div", "Min", "Max"} {
		for op, attr := range map[string]string{
			"Scatter": "T", "ResourceScatter": "dtype", "ScatterNd": "T", "ResourceScatterNd": "T", "TensorScatter": "T",
		} {
			if nd := op != "Scatter" && op != "ResourceScatter"; nd && (name == "Mul" || name == "Div") {
				continue
			}
			adapt(op+name, withKernel(attr, "scatteradd"), index)
		}
	}
	for _, name := range []string{"Max", "Min", "Prod", "Sum"} {
		adapt("UnsortedSegment"+name, withKernel("T", "scatteradd"), index)
	}
	for _, name := range []string{"Max", "Mean", "Min", "Prod", "Sum"} {
		adapt("Segment"+name, withKernel("T", "dividerows"), index)
	}
	for _, name := range []string{"Mean", "SqrtN", "Sum"} {
		for _, form := range []string{"", "Grad", "GradV2", "WithNumSegments"} {
			adapt("SparseSegment"+name+form, withKernel("T", "dividerows"), kernel.OfType("Tidx", tensor.Int32, tensor.Int64),
				kernel.OfType("Tsegmentids", tensor.Int32, tensor.Int64))
		}
	}
	for _, op := range []string{"BatchMatrixBandPart", "MatrixBandPart", "MirrorPad"} {
		adapt(op, kernel.OfType("T", plain...))
	}
	adapt("Range", kernel.OfType("Tidx", tensor.Float32, tensor.Float64, tensor.Int64))
	adapt("OneHot", kernel.OfType("T", plain...), kernel.OfType("TI", tensor.Int32, tensor.Int64))
	adapt("InplaceAdd", withKernel("T", "scatteradd"))
	adapt("InplaceSub", withKernel("T", "scatteradd"))
	adapt("ScatterNd", withKernel("T", "scatteradd"), index)
	adapt("ScatterNdNonAliasingAdd", withKernel("T", "scatteradd"), index)
	for op, attr := range map[string]string{
		"AssignAdd": "T", "AssignSub": "T", "AssignAddVariableOp": "dtype", "AssignSubVariableOp": "dtype",
	} {
		adapt(op, withKernel(attr, "add"))
	}
	for _, op := range []string{"StridedSliceAssign", "ResourceStridedSliceAssign"} {
		adapt(op, kernel.OfType("T", plain...))
	}
	adapt("ReverseSequence", kernel.OfType("T", plain...), kernel.OfType("Tlen", tensor.Int32, tensor.Int64))
	adapt("Einsum", withKernel("T", "matmul32"))
	adaptArrays()
	adaptLists()
	adaptImages()
	adaptRandom()
	adaptOptimizers()
	adaptLayers()
}

// adapt registers the CPU's kernel of an operation for devices. It runs with a context of the
// device.
func adapt(op string, types ...kernel.Constraint) {
	registerNew(op, func(c *kernel.Construction) (compute, error) {
		k, err := cpuKernel(op, c)
		if err != nil {
			return nil, err
		}
		return func(ctx *kernel.Context, _ *device.Device) error { return k.Compute(ctx) }, nil
	}, types...)
}

// adaptArrays registers the operations on tensor arrays and stacks that keep or return elements.
func adaptArrays() {
	plain := slices.Collect(maps.Values(source.TypesByName))
	for _, version := range []string{"", "V2", "V3"} {
		for _, name := range []string{"Write", "Scatter", "Split"} {
			adapt("TensorArray"+name+version, kernel.OfType("T", plain...))
		}
		for _, name := range []string{"Read", "Gather", "Concat"} {
			adapt("TensorArray"+name+version, kernel.OfType("dtype", plain...))
		}
	}
	adapt("TensorArrayPack", kernel.OfType("dtype", plain...))
	adapt("TensorArrayUnpack", kernel.OfType("T", plain...))
	for _, version := range []string{"", "V2"} {
		adapt("StackPush"+version, kernel.OfType("T", plain...))
		adapt("StackPop"+version, kernel.OfType("elem_type", plain...))
	}
}

// adaptLists registers the operations on tensor lists, which keep their elements where the kernel
// computes, and the zeros and sums of lists.
func adaptLists() {
	for op := range strings.FieldsSeq("Concat ConcatLists ConcatV2 ElementShape FromTensor Gather GetItem Length PopBack PushBack " +
		"PushBackBatch Reserve Resize Scatter ScatterIntoExistingList ScatterV2 SetItem Split Stack") {
		adapt("TensorList" + op)
	}
	adapt("EmptyTensorList")
	adapt("AddN", kernel.OfType("T", tensor.Variant))
	adapt("ZerosLike", kernel.OfType("T", tensor.Variant))
}

func adaptImages() {
	floats := withKernel("T", "bilinear")
	for _, op := range []string{"ResizeBilinear", "ResizeBilinearGrad", "ResizeNearestNeighbor", "ResizeNearestNeighborGrad"} {
		adapt(op, floats)
	}
}

func adaptRandom() {
	for name, kernels := range map[string]string{"Uniform": "uniform", "Normal": "normal"} {
		for _, op := range []string{"StatelessRandom" + name, "StatelessRandom" + name + "V2"} {
			adapt(op, withKernel("dtype", kernels))
		}
	}
	adapt("RandomUniform", withKernel("dtype", "uniform"))
	adapt("RandomStandardNormal", withKernel("dtype", "normal"))
	for _, op := range []string{"TruncatedNormal", "StatelessTruncatedNormal", "StatelessTruncatedNormalV2"} {
		adapt(op, withKernel("dtype", "truncated"))
	}
	adapt("RandomUniformInt", withKernel("Tout", "ranged"))
	for _, op := range []string{"StatelessRandomUniformInt", "StatelessRandomUniformIntV2"} {
		adapt(op, withKernel("dtype", "ranged"))
	}
	for _, op := range []string{"StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2"} {
		adapt(op, withKernel("dtype", "full"))
	}
}

// optimizers are the optimizers by the forms of their operations that TensorFlow has for GPUs.
var optimizers = map[string]string{
	"Apply": "AdaMax Adadelta Adagrad AdagradV2 Adam AddSign CenteredRMSProp Ftrl FtrlV2 GradientDescent Momentum PowerSign " +
		"ProximalAdagrad RMSProp",
	"ResourceApply": "AdaMax Adadelta Adagrad AdagradV2 Adam AdamWithAmsgrad AddSign CenteredRMSProp Ftrl FtrlV2 GradientDescent " +
		"KerasMomentum Momentum PowerSign ProximalAdagrad RMSProp",
	"SparseApply":         "Adadelta Adagrad AdagradV2 Ftrl FtrlV2 ProximalAdagrad",
	"ResourceSparseApply": "Adadelta Adagrad AdagradV2 Ftrl FtrlV2 KerasMomentum ProximalAdagrad",
}

func adaptOptimizers() {
	for form, names := range optimizers {
		for name := range strings.FieldsSeq(names) {
			if !strings.Contains(form, "Sparse") {
				adapt(form+name, withKernel("T", strings.ToLower(name)))
				continue
			}
			adapt(form+name, withKernel("T", strings.ToLower(name)), kernel.OfType("Tindices", tensor.Int32, tensor.Int64))
		}
	}
}

func adaptLayers() {
	for _, op := range []string{
		"Conv", "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3D", "Conv3DBackpropFilter", "Conv3DBackpropFilterV2",
		"Conv3DBackpropInput", "Conv3DBackpropInputV2",
	} {
		adapt(op, withKernel("T", "col2im"))
	}
	for _, op := range []string{"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNativeBackpropInput"} {
		adapt(op, withKernel("T", "depthwise"))
	}
	for _, op := range []string{
		"MaxPool", "MaxPoolV2", "MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3D", "MaxPool3DGrad",
		"MaxPool3DGradGrad",
	} {
		adapt(op, withKernel("T", "maxpool"))
	}
	for _, op := range []string{"MaxPoolWithArgmax", "MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax"} {
		adapt(op, withKernel("T", "maxpool"), kernel.OfType("Targmax", tensor.Int64))
	}
	for _, op := range []string{"AvgPool", "AvgPoolGrad", "AvgPool3D", "AvgPool3DGrad"} {
		adapt(op, withKernel("T", "avgpool"))
	}
	for _, op := range []string{"LRN", "LRNGrad"} {
		adapt(op, withKernel("T", "lrn"))
	}
	for _, op := range []string{"BlockLSTM", "BlockLSTMV2", "BlockLSTMGrad", "BlockLSTMGradV2", "LSTMBlockCell", "LSTMBlockCellGrad"} {
		adapt(op, withKernel("T", "lstm"))
	}
	for _, op := range []string{"GRUBlockCell", "GRUBlockCellGrad"} {
		adapt(op, withKernel("T", "gru"))
	}
	for _, op := range []string{"TopK", "TopKV2"} {
		adapt(op, withKernel("T", "topkeys"))
	}
	adapt("FusedBatchNorm", kernel.OfType("T", tensor.Float32))
	adapt("FusedBatchNormGrad", kernel.OfType("T", tensor.Float32))
	for _, op := range []string{"FusedBatchNormV2", "FusedBatchNormV3", "FusedBatchNormGradV2", "FusedBatchNormGradV3"} {
		adapt(op, withKernel("T", "normalize"), kernel.OfType("U", tensor.Float32))
	}
}

// realTypes are the element types that are not complex.
func realTypes() []tensor.DType {
	return slices.DeleteFunc(slices.Collect(maps.Values(source.TypesByName)), tensor.DType.IsComplex)
}
