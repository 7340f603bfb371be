package train

// Names of collections ([op.Scope.Collection]); they are TensorFlow's.
const (
	GlobalVariables        = "variables"                // *Variable: all but the local ones
	LocalVariables         = "local_variables"          // *Variable: of one process, not saved
	TrainableVariables     = "trainable_variables"      // *Variable: updated by optimizers
	MovingAverageVariables = "moving_average_variables" // *Variable: averaged by [MovingAverages]
	TrainOps               = "train_op"                 // *graph.Node: apply gradients
	Losses                 = "losses"                   // op.Output: terms of the total loss
	// op.Output: terms that penalize large weights
	RegularizationLosses = "regularization_losses"
	// op.Output: serialized tensorflow.Summary messages
	Summaries         = "summaries"
	QueueRunners      = "queue_runners"     // *QueueRunner
	Savers            = "savers"            // *Saver
	TableInitializers = "table_initializer" // *graph.Node: fill lookup tables
	InitOps           = "init_op"           // *graph.Node: initialize the model
	// *graph.Node: initialize local variables and tables
	LocalInitOps = "local_init_op"
	// op.Output: names of uninitialized variables
	ReadyOps = "ready_op"
	// op.Output: the same, before LocalInitOps run
	ReadyForLocalInitOps = "ready_for_local_init_op"
	SummaryOps           = "summary_op"  // op.Output: merge all summaries
	globalStepKey        = "global_step" // *Variable
)
