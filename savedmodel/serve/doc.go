// Package serve loads SavedModels and runs their signatures, on a cluster or in this process.
//
//	m, err := serve.Load(ctx, "local", "/models/digits")
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	digits, err := m.Signature(savedmodel.DefaultSignature)
//	if err != nil {
//		return err
//	}
//	out, err := digits.Run(ctx, map[string]any{"images": [][]float32{…}})
//	if err != nil {
//		return err
//	}
//	probabilities := out["probabilities"].([][]float32)
//
// Models that TensorFlow or package train has written are loaded alike. The format of the files is
// that of package savedmodel, which reads and writes them without running anything.
//
// [Freeze] turns a model into a graph whose variables are constants.
package serve
