package opdef_test

import (
	"fmt"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func ExampleDef_Parse() {
	def := opdef.Def{
		Name: "Scale", Doc: "Multiplies x by a factor.",
		In: []string{"x: T"}, Out: []string{"y: T"},
		Attrs: []string{"factor: float = 2", "T: {float32, float64}"},
	}
	op, err := def.Parse()
	if err != nil {
		panic(err)
	}
	attrs, err := op.CheckAttrs("node", opdef.Attrs{"T": tensor.Float32})
	if err != nil {
		panic(err)
	}
	fmt.Println(attrs.Float("factor"))
	_, err = op.CheckAttrs("node", opdef.Attrs{"T": tensor.String})
	fmt.Println(err != nil)
	// Output:
	// 2
	// true
}
