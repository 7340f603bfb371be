package gradients

// Operations that gradients do not pass through, as in TensorFlow: they read, write, choose or
// decode, or they are gradients without a derivative.
func init() {
	NotDifferentiable("Assign", "AssignAdd", "AssignSub", "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv",
		"ScatterNdAdd", "ScatterNdSub", "ScatterNdUpdate", "LookupTableFind", "LookupTableFindV2", "LoadAndRemapMatrix", "StackPush",
		"GetSessionHandle", "GetSessionHandleV2", "GetSessionTensor", "ReduceDataset", "EmptyTensorMap", "TensorListConcatLists",
		"TensorListPushBackBatch", "SparseMatrixNNZ", "DecodeProtoV2", "EncodeProto", "SdcaFprint", "SdcaOptimizer", "SdcaOptimizerV2",
		"SdcaShrinkL1", "PyFunc", "PyFuncStateless")
	NotDifferentiable("DrawBoundingBoxes", "ExtractGlimpse", "HSVToRGB", "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2",
		"NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionWithOverlaps", "ResizeBilinearGrad")
	NotDifferentiable("CTCBeamSearchDecoder", "CTCGreedyDecoder", "RaggedRange", "SparseAddGrad", "SparseConcat", "DecodeRaw",
		"FakeQuantWithMinMaxArgsGradient", "FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
}
