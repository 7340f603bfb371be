package train

// Names of collections ([op.Scope.Collection]) with their elements. The names are TensorFlow's.
const (
	// Collections of *[Variable].
	GlobalVariables        = "variables"                // all but the local ones
	LocalVariables         = "local_variables"          // of one process, not saved
	TrainableVariables     = "trainable_variables"      // updated by optimizers
	MovingAverageVariables = "moving_average_variables" // averaged by [MovingAverages]
	globalStepKey          = "global_step"

	// Collections of *[graph.Node].
	TrainOps          = "train_op"          // apply gradients
	TableInitializers = "table_initializer" // fill lookup tables
	InitOps           = "init_op"           // initialize the model
	LocalInitOps      = "local_init_op"     // initialize local variables and tables

	// Collections of [op.Output].
	Losses               = "losses"                  // terms of the total loss
	RegularizationLosses = "regularization_losses"   // terms that penalize large weights
	Summaries            = "summaries"               // serialized tensorflow.Summary messages
	ReadyOps             = "ready_op"                // names of uninitialized variables
	ReadyForLocalInitOps = "ready_for_local_init_op" // the same, before LocalInitOps run
	SummaryOps           = "summary_op"              // merge all summaries

	// Collections of *[QueueRunner] and *[Saver].
	QueueRunners = "queue_runners"
	Savers       = "savers"
)
