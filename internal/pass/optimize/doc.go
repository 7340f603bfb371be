// Package optimize turns a client's graph into the graph that one kind of step runs.
//
// [Prune] reduces the graph to the nodes that the step's fetches and targets need, and adds nodes
// for fed and fetched tensors. [Optimize] then runs a table of passes: shape folding, constant
// folding, removal of branches that cannot run, common-subexpression elimination, removal of unused
// computations, and replication of small constants.
//
// Contract: every pass keeps the values of all fetches bit for bit, the effects of the step, and
// the order of control edges. The passes follow TensorFlow's subgraph rewriting, constant folding,
// GraphOptimizer, loop optimizer and dependency optimizer, so a step runs the same nodes in both.
// They are functions of the graph and the options only, and deterministic.
package optimize
