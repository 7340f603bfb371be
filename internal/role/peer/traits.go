package peer

// A Trait is a difference between an old release and the current protocol.
type Trait uint8

const (
	// NoWorkerSessions means that the worker has no sessions that a master may create. It runs the
	// graphs of all masters in one session.
	NoWorkerSessions Trait = iota
	// ShortDeviceNames means that the worker looks devices up by names such as
	// "/job:ps/replica:0/task:0/cpu:0".
	ShortDeviceNames
	// NamedFrameIDs means that frames in rendezvous keys have IDs that are hashes of names.
	NamedFrameIDs
	// WantsDefaults means that the worker does not add attributes with default values to the nodes
	// of registered graphs.
	WantsDefaults
	// NodeInErrors means that the client looks for "[[Node: NAME = " in errors, to find the
	// operation.
	NodeInErrors
	// RawMessages means that the gRPC library takes error messages from headers as they are.
	RawMessages
	// ResetsIdleStreams means that the client may reset a stream that it has not opened, and that
	// no setting of its connection shows it.
	ResetsIdleStreams
)

// traits lists the traits with the first release that no longer has them.
var traits = [...]struct {
	before Release
	why    string
}{
	NoWorkerSessions: {TF15, "0.12 has no CreateWorkerSession, and 1.4 ends with a segmentation fault unless the request has a " +
		"cluster definition. A worker with DeleteWorkerSession has neither fault."},
	ShortDeviceNames:  {TF14, "1.3 and earlier compare the device of a node with their own device names as texts"},
	NamedFrameIDs:     {TF23, "2.3 computes the ID of a frame from that of the frame around it, earlier releases from its name"},
	WantsDefaults:     {TF23, "NodeDef missing attr: earlier releases validate the nodes of RegisterGraph without adding defaults"},
	NodeInErrors:      {TF113, "1.15 also looks for [[{{node NAME}}, 1.12 only if an equals sign follows"},
	RawMessages:       {TF14, "the gRPC library of 0.12 to 1.3 encodes and decodes nothing"},
	ResetsIdleStreams: {TF14, "the gRPC library of 1.4 and later sends the setting GRPC_ALLOW_TRUE_BINARY_METADATA"},
}

// Has reports whether a release has a trait. An unknown one has none.
func (r Release) Has(t Trait) bool { return r != Unknown && r < traits[t].before }
