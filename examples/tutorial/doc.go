// Package tutorial holds the programs of docs/tutorial.md as tests. Each runs, and the page has the
// same code.
package tutorial
