package local_test

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
)

// With package local linked, a session needs no server: its target is "local".
func Example() {
	s := op.NewScope()
	sum := op.Add(s, op.Const(s, float32(1)), op.Const(s, float32(2)))
	session, err := weft.NewSession("local", s.Graph())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	out, err := session.Fetch(context.Background(), nil, sum)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out[0].Go())
	// Output: 3
}
