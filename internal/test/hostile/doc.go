// Package hostile generates random programs that are meant to harm a server.
//
// A program starts from recorded cases of the kernels, which are correct, and changes them: values
// and shapes of inputs, types, attributes, edges, names and operations. It may nest them in
// loops, multiply them, or damage the encoded request. A program is a function of a seed and a
// number.
package hostile

import (
	"math/rand/v2"

	"github.com/weft-ml/weft/internal/proto/pb"
)

// Program is a random graph with the nodes that run.
type Program struct {
	Graph   *pb.GraphDef
	Targets []string // the nodes of each step
	Init    []string // the nodes of a step before
	Steps   int      // the number of steps
	Changes []string // what was changed, for people
}

// Generator makes programs.
type Generator struct {
	seeds []Program // correct programs
	ops   []string
}

// Program returns the program of a seed and a number.
func (g *Generator) Program(seed, number uint64) *Program {
	r := &random{rand.New(rand.NewPCG(seed, number)), g}
	return r.program()
}

// random makes one program.
type random struct {
	*rand.Rand
	g *Generator
}

// oneIn reports true once in n calls.
func (r *random) oneIn(n int) bool { return r.IntN(n) == 0 }

// pick returns one of the values.
func pick[T any](r *random, values []T) T { return values[r.IntN(len(values))] }

// Request is a damaged request for a method with a number.
type Request struct {
	Method int
	Data   []byte
}

// Damaged returns n damaged forms of encoded requests.
func (g *Generator) Damaged(seed, number uint64, n int, requests ...[]byte) []Request {
	r := &random{rand.New(rand.NewPCG(seed, ^number)), g}
	out := make([]Request, n)
	for i := range out {
		out[i] = Request{r.IntN(1 << 20), r.damaged(pick(r, requests))}
		if r.oneIn(10) {
			out[i].Data = r.damaged([]byte(r.text()))
		}
	}
	return out
}
