// Package savedmodel reads and writes MetaGraphs and SavedModels: graphs with what is needed to use
// them.
//
// A [MetaGraph] is a graph with its collections, its signatures and the nodes that save and restore
// its variables. Savers write one beside each checkpoint, in a file that ends in ".meta"
// ([ReadMetaGraph], [MetaGraph.WriteFile]).
//
// A SavedModel is a folder with the values of variables and one MetaGraph or more, told apart by
// their tags:
//
//	saved_model.pb            the MetaGraphs (or saved_model.pbtxt, the same as text)
//	variables/variables.*     a checkpoint
//	assets/                   files that the graphs need
//
// It is read with [Open]:
//
//	m, err := savedmodel.Open("/models/digits")
//	if err != nil {
//		return err
//	}
//	g, err := m.MetaGraph(savedmodel.TagServe)
//	for name, sig := range g.Signatures {
//		…
//	}
//
// and written with [Create], which lets the folder appear whole or not at all. To run a model, see
// weft.LoadSavedModel; to write what was trained, see package train.
//
// The formats are TensorFlow's: what one of the two writes, the other reads.
package savedmodel
