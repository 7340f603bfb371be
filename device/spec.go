// Package device parses, merges and matches names of devices.
//
// A full name is "/job:JOB/replica:R/task:T/device:TYPE:ID". A specification may omit parts or give
// "*" for them. Parts come in any order; the last occurrence of a part counts. "/cpu:0" and
// "/gpu:0", also in capitals, are an older form of "/device:CPU:0" and "/device:GPU:0". The rules
// are those of TensorFlow's DeviceNameUtils.
package device

import "strconv"

// Unset is the value of a numeric part that a specification does not give.
const Unset = -1

// Spec is a full or partial device name. Empty strings and Unset numbers match anything.
type Spec struct {
	Job     string
	Replica int
	Task    int
	Type    string // "CPU", "GPU"; case-sensitive
	ID      int
}

// Any is the specification that matches every device.
var Any = Spec{Replica: Unset, Task: Unset, ID: Unset}

// IsFull reports whether every part is given.
func (s Spec) IsFull() bool {
	return s.Job != "" && s.Replica != Unset && s.Task != Unset && s.Type != "" && s.ID != Unset
}

// String returns the canonical form, without the parts that are not given. A type without a number
// has the number "*", and a number without a type the type "*".
func (s Spec) String() string {
	if s == Any {
		return ""
	}
	b := make([]byte, 0, len("/job:/replica:0/task:00/device:CPU:0")+len(s.Job))
	if s.Job != "" {
		b = append(append(b, "/job:"...), s.Job...)
	}
	if s.Replica != Unset {
		b = strconv.AppendInt(append(b, "/replica:"...), int64(s.Replica), 10)
	}
	if s.Task != Unset {
		b = strconv.AppendInt(append(b, "/task:"...), int64(s.Task), 10)
	}
	if s.Type == "" && s.ID == Unset {
		return string(b)
	}
	b = append(b, "/device:"...)
	if s.Type == "" {
		b = append(b, '*')
	}
	b = append(append(b, s.Type...), ':')
	if s.ID == Unset {
		return string(append(b, '*'))
	}
	return string(strconv.AppendInt(b, int64(s.ID), 10))
}

// AddressSpace returns the job, replica and task alone.
func (s Spec) AddressSpace() Spec {
	s.Type, s.ID = "", Unset
	return s
}

// TaskName returns the name of the task that the device is on, "/job:J/replica:R/task:T".
func (s Spec) TaskName() string { return s.AddressSpace().String() }
