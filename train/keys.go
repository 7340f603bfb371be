package train

// Names of collections of a graph, as TensorFlow has them.
const (
	GlobalVariables        = "variables"                // all but local ones
	LocalVariables         = "local_variables"          // of one process, not saved
	TrainableVariables     = "trainable_variables"      // what optimizers change
	MovingAverageVariables = "moving_average_variables" // what means are kept of
	TrainOps               = "train_op"                 // nodes that apply gradients
	// outputs that are added up to what is minimized
	Losses               = "losses"
	RegularizationLosses = "regularization_losses" // those of them that keep weights small
	// outputs that are serialized Summary messages
	Summaries         = "summaries"
	QueueRunners      = "queue_runners"     // of type *QueueRunner
	Savers            = "savers"            // of type *Saver
	TableInitializers = "table_initializer" // nodes that fill lookup tables
	InitOps           = "init_op"           // nodes that initialize the model
	// nodes that initialize what belongs to one process
	LocalInitOps         = "local_init_op"
	ReadyOps             = "ready_op"                // outputs that name what is not initialized
	ReadyForLocalInitOps = "ready_for_local_init_op" // the same, before LocalInitOps run
	SummaryOps           = "summary_op"              // outputs that merge all summaries
	globalStepKey        = "global_step"
)
