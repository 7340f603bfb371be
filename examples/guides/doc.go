// Package guides has the programs of the pages in docs/guides and docs/concepts, as tests.
package guides
