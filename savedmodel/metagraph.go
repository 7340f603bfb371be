package savedmodel

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// MetaGraph is a graph with the information that is needed to run it.
type MetaGraph struct {
	Graph       *graph.Def
	Saver       *Saver // nil for a graph without variables
	Collections map[string]Collection
	Signatures  map[string]Signature
	Assets      []Asset

	Tags []string // identify the MetaGraph in a SavedModel
	// Ops are the definitions of the graph's operations in the program that wrote the graph,
	// without documentation.
	Ops []*opdef.Op
	// DefaultsStripped is true if attributes with their default value were removed from the nodes.
	DefaultsStripped bool
	// MadeBy is the version of TensorFlow that wrote the graph.
	MadeBy string
	// ObjectGraph is a serialized tensorflow.SavedObjectGraph, which TensorFlow 2 writes for models
	// of Python objects; nil for none.
	ObjectGraph []byte
}

// Tags with a standard meaning.
const (
	TagServe = "serve"
	TagTrain = "train"
	TagEval  = "eval"
	TagGPU   = "gpu"
)

// Names of the collections of SavedModels. Those of variables are in package train.
const (
	CollectionMainOp       = "saved_model_main_op" // node that runs once when the model is loaded
	CollectionLegacyInitOp = "legacy_init_op"      // the name that older programs use for it
	CollectionTrainOp      = "saved_model_train_op"
	CollectionAssets       = "saved_model_assets"
)

// Saver names the nodes of a graph that save and restore its variables.
type Saver struct {
	Filename  string  // output to feed with the prefix of the checkpoint
	Save      string  // output to fetch to save
	Restore   string  // node to run to restore
	MaxToKeep int     // number of checkpoints to keep; 0 for all
	Sharded   bool    // every device writes a file
	KeepEvery float32 // interval at which a checkpoint is kept permanently, in hours
	FormatV1  bool    // checkpoints have the format V1
}

// Collection is a list of values with a name in a graph. Exactly one of the fields is not nil.
type Collection struct {
	Nodes  []string // names of nodes and outputs
	Bytes  [][]byte // strings, or serialized messages
	Ints   []int64
	Floats []float32
	Any    []Any
}

// Any is a serialized message with its type.
type Any struct {
	TypeURL string // "type.googleapis.com/tensorflow.AssetFileDef"
	Value   []byte
}

// Signature is an entry point of a model: a step with named feeds and fetches.
type Signature struct {
	Inputs, Outputs map[string]TensorInfo
	Method          string                   // such as [MethodPredict]
	Defaults        map[string]tensor.Tensor // values of inputs that a caller omits
}

// DefaultSignature is the name of the signature that callers use by default.
const DefaultSignature = "serving_default"

// Methods of signatures.
const (
	MethodPredict  = "tensorflow/serving/predict"
	MethodClassify = "tensorflow/serving/classify"
	MethodRegress  = "tensorflow/serving/regress"
)

// Signatures that name a node to run instead of feeds and fetches.
const (
	SignatureInitOp  = "__saved_model_init_op"
	SignatureTrainOp = "__saved_model_train_op"
)

// TensorInfo maps an input or output of a signature to a tensor in the graph.
type TensorInfo struct {
	Name  string // of the output, "x:0"; empty for a sparse or composite tensor
	DType tensor.DType
	Shape tensor.PartialShape

	Sparse    *SparseInfo    // for a sparse tensor
	Composite *CompositeInfo // for a composite tensor
}

// SparseInfo holds the names of the three outputs of a sparse tensor.
type SparseInfo struct{ Values, Indices, Shape string }

// CompositeInfo describes a composite tensor, such as a ragged one.
type CompositeInfo struct {
	Type       []byte // a serialized tensorflow.TypeSpecProto
	Components []TensorInfo
}

// InfoOf returns the TensorInfo of an output with a partially known shape.
func InfoOf(o graph.Output, shape tensor.PartialShape) TensorInfo {
	return TensorInfo{Name: OutputName(o), DType: o.DType().Base(), Shape: shape}
}

// Asset is a file that a graph reads. When the model is loaded, an output is fed with the path of
// the file.
type Asset struct {
	Tensor   string // output to feed with the path, a string scalar
	Filename string // name in the folder "assets" of the model
}
