// Package metamorphic generates random programs and computes their results. Tests check that a
// program has the same results however it is run: by a plain interpreter, on one device or several,
// on several tasks, or by another implementation.
//
// A Program has variables, fed values, and a block of statements with conditions, loops and
// function calls. Its text form has one statement per line:
//
//	var v0 ref int32[3]{1,2,3} on 1
//	feed x0 int64[]{4} int64[]{-7}
//	c0 = const int64[3]{1,2,3}
//	a0 = Add x0 c0 on 2 after c0
//	r0 = read v0
//	add v0 r0
//	y0 y1 = if p0
//	  b0 = Neg a0
//	  yield b0 a0
//	else
//	  yield c0 c0
//	end
//	s0 = repeat n0 a0 as a1 functional
//	  b1 = Mul a1 c0
//	  yield b1
//	end
//	yield y0 s0
//
// Names are unique in the whole program. A block captures outer values with their value at the
// statement of the block. The number of iterations of a loop is its first argument modulo 5.
// Effects on one variable happen in the order of the statements.
//
// [Interpret] evaluates a program directly. [Build] builds its graph. Conditions and loops become
// Switch, Merge and frames, or functions if the statement is marked functional. [Generate] returns
// a random program. [Minimize] reduces a program that has a property, such as a wrong result, to a
// small one that still has it.
package metamorphic
