// Package metamorphic makes random programs and says what they compute, for tests which hold that a
// program has one answer however it is run: by a plain interpreter, on one device or several, on
// several tasks, or by another implementation.
//
// A Program has variables, values that are fed, and a block of statements with conditions, loops
// and function calls. Its text form has one statement a line:
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
// Names are unique in the whole program. What a block uses from outside, it takes as it is there. A
// loop runs as often as its first argument says, modulo 5. Effects on one variable happen in the
// order of the statements.
//
// [Interpret] evaluates a program directly. [Build] makes a graph of it, with Switch, Merge and
// frames for conditions and loops, or with functions where a statement is marked functional.
// [Generate] makes a random program, and [Minimize] one as small as possible that still has a
// property, such as a wrong answer.
package metamorphic
