// Package importpolicy holds the import policy of the module as data, and the tests that enforce
// it.
//
// Imports go one way. The list groups in policy_test.go has the groups of packages from the ground
// up: a package may import its own group and the groups before it. The list exceptions narrows
// that, with a reason for each row. A package in no group fails the test, so that adding a package
// is a decision about its place. Test files are exempt: a test may drive its package through groups
// above it, and may compare it with gRPC's library, which nothing else may use.
//
// The tests parse the source in their own process instead of calling the go command: the test cache
// sees only the files that a test itself opens, and would return a stale result for a child
// process.
package importpolicy
