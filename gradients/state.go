package gradients

func init() {
	Register(func(c *Call) []Grad { return []Grad{c.Grad(0)} }, "ReadVariableOp")
	NotDifferentiable("VariableV2", "Variable", "VarHandleOp", "VarIsInitializedOp", "IsVariableInitialized", "VariableShape")
}
