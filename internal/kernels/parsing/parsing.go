// Package parsing holds the operations that turn bytes into tensors: raw numbers, CSV, JSON, audio,
// compressed text, serialized tensors, and the records of features that TensorFlow trains on,
// Example and SequenceExample.
//
// Records are read straight from their wire format into the tensors that they become, without
// messages in between: a batch is scanned once for where its features lie and once for their
// values, whose number is known by then. A length in a record is never trusted further than the
// bytes that follow it.
package parsing
