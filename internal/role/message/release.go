package message

import "github.com/weft-ml/weft/tensor"

// A message from the wire owns its tensors. The receiver of a request releases them when its call
// has returned, and the receiver of a response when it has used them.

// Release ends the references that the request holds.
func (m *RunStepRequest) Release() { releaseNamed(m.Feeds) }

// Release ends the references that the response holds.
func (m *RunStepResponse) Release() { releaseNamed(m.Tensors) }

// Release ends the references that the request holds.
func (m *RunCallableRequest) Release() { release(m.Feeds) }

// Release ends the references that the response holds.
func (m *RunCallableResponse) Release() { release(m.Fetches) }

// Release ends the references that the request holds.
func (m *RunGraphRequest) Release() { releaseNamed(m.Send) }

// Release ends the references that the response holds.
func (m *RunGraphResponse) Release() { releaseNamed(m.Recv) }

// Release ends the reference that the response holds.
func (m *RecvTensorResponse) Release() { m.Tensor.Release() }

func releaseNamed(ts []NamedTensor) {
	for i := range ts {
		ts[i].Tensor.Release()
	}
}

func release(ts []tensor.Tensor) {
	for i := range ts {
		ts[i].Release()
	}
}
