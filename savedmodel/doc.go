// Package savedmodel reads and writes TensorFlow's MetaGraphs and SavedModels.
//
// A [MetaGraph] is a graph with its collections, its signatures, and the names of the nodes that
// save and restore its variables. Savers write one for each checkpoint, to a file with the suffix
// ".meta" ([ReadMetaGraph], [MetaGraph.WriteFile]).
//
// A SavedModel is a folder with the values of variables and one or more MetaGraphs, which differ in
// their tags:
//
//	saved_model.pb            the MetaGraphs (or saved_model.pbtxt, the same as text)
//	variables/variables.*     a checkpoint
//	assets/                   files that the graphs need
//
// [Open] reads it:
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
// [Create] writes it; the folder appears complete or not at all. Package serve, below this one,
// runs models, and package train exports trained models.
package savedmodel
