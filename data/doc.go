// Package data reads training data and makes batches of it.
//
//	table, err := data.ReadCSV("iris.csv", data.CSV{Label: "species"})
//	if err != nil {
//		return err
//	}
//	training, test := table.Dataset().Split(0.8, 1)
//	batches := training.Shuffle(1000, 1).Batch(32)
//	history, err := train.Fit(ctx, m, batches, train.FitOptions{Validation: test.Batch(32)})
//
// A [Dataset] is a sequence of elements. An element is a list of tensors of fixed types: inputs
// and, as the last one, the label. Sources are Go slices ([FromSlices]), CSV files, folders of
// images, IDX files, TFRecord files and lines of text. Methods return a changed data set and leave
// their receiver as it is. Nothing is read before the elements are used.
//
// With the same seeds the elements have the same order in every run, also with parallel functions.
// The order of [Dataset.Shuffle] differs from epoch to epoch.
//
// [train.Fit] reads the batches in the program and feeds them. With FitOptions.DataOnWorker the
// operations of tf.data read the same batches on the task of the session. Rows of slices go there
// once, and files are those of the task: lines, TFRecord files and images. [Dataset.MapOps] changes
// elements with operations, in the program and on the task:
//
//	lines := data.TextLines("numbers.csv").MapOps(2, func(s *op.Scope, line []op.Output) []op.Output {
//		number := op.Const(s, []float32{0})
//		return op.DecodeCSV(s, line[0], []op.Output{number, number})
//	})
//
// Functions of the program ([New], [Dataset.Map]) stay in the program. [Dataset.Graph] adds the
// operations to any graph.
//
// Errors name the file, and the line or record where there is one.
package data
