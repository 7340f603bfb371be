// Package optimize makes of a client's graph the graph that one kind of step runs.
//
// [Prune] cuts the graph down to what the step's fetches and targets need and puts nodes where fed
// tensors enter and fetched ones leave. [Optimize] then runs the passes of a table over it: shape
// folding, constant folding, common-subexpression elimination, the removal of what is computed for
// nobody, and the replication of small constants. Every pass keeps the values of all fetches bit
// for bit, and the order that control edges ask for.
//
// The passes follow TensorFlow's subgraph rewriting, constant folding, GraphOptimizer and
// dependency optimizer, so that a step runs the same nodes here and there. They are functions of
// the graph alone, and their results are the same in every run.
package optimize
