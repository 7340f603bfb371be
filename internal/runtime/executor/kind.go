package executor

// kind is how a node is executed.
type kind uint8

const (
	compute  kind = iota // by its kernel
	noop                 // not at all
	trigger              // like noop, and never dead
	constant             // its value is known
	forward              // the output is the input
	switchOp             // the input goes to one of the outputs
	switchN              // the same with more than two outputs
	merge                // the first live input
	enter                // into iteration 0 of a child frame
	exit                 // into the parent frame
	next                 // into the next iteration
	arg                  // an argument of the run
	retval               // a result of the run
)

// kinds are the operations that the executor knows. All others are executed by their kernels.
var kinds = map[string]kind{
	"NoOp": noop, "ControlTrigger": trigger, "Const": constant,
	"Identity": forward, "RefIdentity": forward, "StopGradient": forward, "PreventGradient": forward, "LoopCond": forward,
	"Switch": switchOp, "RefSwitch": switchOp, "_SwitchN": switchN,
	"Merge": merge, "RefMerge": merge,
	"Enter": enter, "RefEnter": enter, "Exit": exit, "RefExit": exit, "NextIteration": next, "RefNextIteration": next,
	"_Arg": arg, "_DeviceArg": arg, "_Retval": retval, "_DeviceRetval": retval,
}

// transfers are the operations between devices: they run on dead inputs, and receive dead outputs.
var transfers = map[string]bool{
	"_Send": true, "_HostSend": true, "Send": true, "_Recv": true, "_HostRecv": true, "Recv": true,
}
