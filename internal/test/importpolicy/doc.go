// Package importpolicy holds the import policy of the module as data, and the tests that enforce
// it.
//
// Imports go one way:
//
//	status → tensor, device → opdef → graph | kernel → kernels, passes, executor → worker | master → rpc → server → cmd
//
// The table in policy_test.go has a row for every package: what it may import of this module and
// whether it must stay pure. A package without a row fails the test, so that a new one is a
// decision about its place, and so does a row without a package. Files of tests are exempt: a test
// may drive its package through layers above it, and compare it with gRPC's library, which nothing
// else may use.
//
// The tests parse the source in their own process rather than ask the go command: the test cache
// sees only the files that a test itself opens, and would answer for a child process with a stale
// pass.
package importpolicy
