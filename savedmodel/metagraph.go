package savedmodel

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// MetaGraph is a graph with what is needed to use it.
type MetaGraph struct {
	Graph       *graph.Def
	Saver       *Saver // nil for a graph without variables
	Collections map[string]Collection
	Signatures  map[string]Signature
	Assets      []Asset

	Tags []string // tell the MetaGraphs of a SavedModel apart
	// Ops are the definitions of the operations of the graph, as its maker knew them, without
	// documentation.
	Ops []*opdef.Op
	// DefaultsStripped says that attributes that have their default were left out of the nodes.
	DefaultsStripped bool
	// MadeBy is the version of TensorFlow that made the graph.
	MadeBy string
	// ObjectGraph is a serialized tensorflow.SavedObjectGraph, which models that were made of
	// objects have beside their graph; nil for none.
	ObjectGraph []byte
}

// Names of tags that have a meaning.
const (
	TagServe = "serve"
	TagTrain = "train"
	TagEval  = "eval"
	TagGPU   = "gpu"
)

// Names of collections that have a meaning. Those of variables are in package train.
const (
	CollectionMainOp       = "saved_model_main_op" // runs once when the model is loaded
	CollectionLegacyInitOp = "legacy_init_op"      // the same, as older programs have it
	CollectionTrainOp      = "saved_model_train_op"
	CollectionAssets       = "saved_model_assets"
)

// Saver names the nodes of a graph that save and restore its variables.
type Saver struct {
	Filename    string  // output to be fed with the prefix of the checkpoint
	Save        string  // output to be fetched to save
	Restore     string  // node to be run to restore
	MaxToKeep   int     // number of checkpoints; 0 for all
	Sharded     bool    // every device writes a file
	KeepEvery   float32 // hours after which a checkpoint is kept for good
	FormatIsOld bool    // checkpoints are in the format V1
}

// Collection is a list of values that a graph keeps under a name. One of the fields is not nil.
type Collection struct {
	Nodes  []string // names of nodes and outputs
	Bytes  [][]byte // texts, or serialized messages
	Ints   []int64
	Floats []float32
	Any    []Any
}

// Any is a serialized message with its type.
type Any struct {
	TypeURL string // "type.googleapis.com/tensorflow.AssetFileDef"
	Value   []byte
}

// Signature is something that a model can do: a step with named feeds and fetches.
type Signature struct {
	Inputs, Outputs map[string]TensorInfo
	Method          string // such as MethodPredict
	// Defaults are values of inputs that a caller does not give.
	Defaults map[string]tensor.Tensor
}

// DefaultSignature is the name of the signature that is used where none is asked for.
const DefaultSignature = "serving_default"

// Methods of signatures.
const (
	MethodPredict  = "tensorflow/serving/predict"
	MethodClassify = "tensorflow/serving/classify"
	MethodRegress  = "tensorflow/serving/regress"
)

// Signatures that name a node to be run instead of feeds and fetches.
const (
	SignatureInitOp  = "__saved_model_init_op"
	SignatureTrainOp = "__saved_model_train_op"
)

// TensorInfo says which tensor of a graph an input or output of a signature is.
type TensorInfo struct {
	Name  string // of the output, "x:0"; empty for the other kinds
	DType tensor.DType
	Shape tensor.PartialShape

	Sparse    *SparseInfo    // for a sparse tensor
	Composite *CompositeInfo // for a value of several tensors
}

// SparseInfo names the three outputs that a sparse tensor is made of.
type SparseInfo struct{ Values, Indices, Shape string }

// CompositeInfo is a value that is made of several tensors.
type CompositeInfo struct {
	Type       []byte // a serialized tensorflow.TypeSpecProto
	Components []TensorInfo
}

// InfoOf describes an output of a graph; shape is what is known of its shape.
func InfoOf(o graph.Output, shape tensor.PartialShape) TensorInfo {
	return TensorInfo{Name: OutputName(o), DType: o.DType().Base(), Shape: shape}
}

// Asset is a file that a graph reads. When the model is loaded, the path of the file is fed to an
// output.
type Asset struct {
	Tensor   string // output to be fed with the path
	Filename string // in the assets folder of the model
}
