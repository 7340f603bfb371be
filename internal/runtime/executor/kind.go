package executor

// kind is the way in which a node is executed.
type kind uint8

const (
	compute  kind = iota // calls its kernel
	noop                 // does nothing
	trigger              // does nothing, and is never dead
	constant             // copies the value of its attribute
	forward              // moves the input to the output
	switchOp             // moves the input to one of two outputs
	switchN              // moves the input to one of n outputs
	merge                // moves its first live input to the output
	enter                // delivers into iteration 0 of a child frame
	exit                 // delivers into the parent frame
	next                 // delivers into the next iteration
	arg                  // takes an argument of the run
	retval               // sets a result of the run
)

// kinds maps the operations that the executor implements. All others run their kernels.
var kinds = map[string]kind{
	"NoOp": noop, "ControlTrigger": trigger, "Const": constant,
	"Identity": forward, "RefIdentity": forward, "StopGradient": forward, "PreventGradient": forward, "LoopCond": forward,
	"Switch": switchOp, "RefSwitch": switchOp, "_SwitchN": switchN,
	"Merge": merge, "RefMerge": merge,
	"Enter": enter, "RefEnter": enter, "Exit": exit, "RefExit": exit, "NextIteration": next, "RefNextIteration": next,
	"_Arg": arg, "_DeviceArg": arg, "_Retval": retval, "_DeviceRetval": retval,
}

// transfers are the operations that send or receive between devices. They run on dead inputs and
// may receive dead outputs.
var transfers = map[string]bool{
	"_Send": true, "_HostSend": true, "Send": true, "_Recv": true, "_HostRecv": true, "Recv": true,
}
