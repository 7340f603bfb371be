// Package oldfiles tests that files of TensorFlow 0.12, 1.4 and 1.15 can be read: checkpoints of
// both formats, SavedModels, MetaGraphs with their checkpoints, frozen graphs, event files and
// records. The folders in testdata are named after the releases. interop/old/writefiles.py writes
// them.
package oldfiles
