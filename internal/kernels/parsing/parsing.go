// Package parsing implements the operations that convert bytes to tensors: raw numbers, CSV, JSON,
// audio, compressed text, serialized tensors, and Example and SequenceExample records.
//
// Records are parsed from the wire format directly into tensors, without intermediate messages. A
// first scan of a batch finds the positions and counts of features, and a second one reads their
// values. A length in a record is never trusted beyond the bytes that follow it.
package parsing
