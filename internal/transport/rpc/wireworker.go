package rpc

import (
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Fields of the messages of WorkerService that carry tensors, in the order of their numbers.

func (w *writer) runGraphRequest(m *message.RunGraphRequest) {
	w.text(1, m.GraphHandle)
	w.integer(2, m.StepID)
	w.namedTensors(3, m.Send)
	w.elements(4, m.RecvKeys)
	if m.Exec != nil {
		w.message(5, m.Exec)
	}
	w.bool(6, m.IsPartial)
	w.bool(7, m.IsLastPartial)
	w.text(8, m.Session)
	w.bool(9, m.StoreErrorsInBody)
	w.bool(10, m.SessionCreated)
	w.integer(11, m.RequestID)
}

func (d *decoder) runGraphRequest(m *message.RunGraphRequest) {
	for d.more() {
		switch key := d.key(); key {
		case 1<<3 | lengthDelimited:
			m.GraphHandle = d.text()
		case 2<<3 | varint:
			m.StepID = d.int64()
		case 3<<3 | lengthDelimited:
			m.Send = add(&d.reader, m.Send, d.namedTensor("feed", len(m.Send)))
		case 4<<3 | lengthDelimited:
			m.RecvKeys = add(&d.reader, m.RecvKeys, d.text())
		case 5<<3 | lengthDelimited:
			m.Exec = nested(&d.reader, m.Exec)
		case 6<<3 | varint:
			m.IsPartial = d.bool()
		case 7<<3 | varint:
			m.IsLastPartial = d.bool()
		case 8<<3 | lengthDelimited:
			m.Session = d.text()
		case 9<<3 | varint:
			m.StoreErrorsInBody = d.bool()
		case 10<<3 | varint:
			m.SessionCreated = d.bool()
		case 11<<3 | varint:
			m.RequestID = d.int64()
		default:
			d.skip(key)
		}
	}
}

func (w *writer) runGraphResponse(m *message.RunGraphResponse) {
	w.namedTensors(1, m.Recv)
	if m.StepStats != nil {
		w.message(2, m.StepStats)
	}
	if m.CostGraph != nil {
		w.message(3, m.CostGraph)
	}
	for _, g := range m.PartitionGraphs {
		w.message(4, g)
	}
	w.bodyError(5, 6, m.Err)
}

func (d *decoder) runGraphResponse(m *message.RunGraphResponse) {
	var body failure
	for d.more() {
		switch key := d.key(); key {
		case 1<<3 | lengthDelimited:
			m.Recv = add(&d.reader, m.Recv, d.namedTensor("recv", len(m.Recv)))
		case 2<<3 | lengthDelimited:
			m.StepStats = nested(&d.reader, m.StepStats)
		case 3<<3 | lengthDelimited:
			m.CostGraph = nested(&d.reader, m.CostGraph)
		case 4<<3 | lengthDelimited:
			m.PartitionGraphs = append(m.PartitionGraphs, nested[pb.GraphDef](&d.reader, nil))
		case 5<<3 | varint:
			body.code = status.Code(d.int64())
		case 6<<3 | lengthDelimited:
			body.text = d.text()
		default:
			d.skip(key)
		}
	}
	m.Err = body.err()
}

func (w *writer) recvTensorRequest(m *message.RecvTensorRequest) {
	w.integer(1, m.StepID)
	w.text(2, m.Key)
	if m.Transport != nil {
		w.anyMessage(6, m.Transport)
	}
	w.integer(7, m.RequestID)
}

func (d *decoder) recvTensorRequest(m *message.RecvTensorRequest) {
	for d.more() {
		switch key := d.key(); key {
		case 1<<3 | varint:
			m.StepID = d.int64()
		case 2<<3 | lengthDelimited:
			m.Key = d.text()
		case 6<<3 | lengthDelimited:
			m.Transport = d.anyMessage(m.Transport)
		case 7<<3 | varint:
			m.RequestID = d.int64()
		default:
			d.skip(key)
		}
	}
}

// recvTensorResponse encodes the fields in TensorFlow's order: plain elements last, any other
// tensor first. It has no tensor if the elements use another transport.
func (w *writer) recvTensorResponse(m *message.RecvTensorResponse) {
	t := &m.Tensor
	if m.Dead && !t.Initialized() && m.Transport == nil {
		t = &noValue
	}
	if t.Initialized() && t.DType().Size() == 0 {
		w.tensor(1, t)
	}
	w.bool(2, m.Dead)
	w.integer(3, m.SendStartMicros)
	if m.Transport != nil {
		w.anyMessage(4, m.Transport)
	}
	w.bool(5, m.RequireAck)
	if t.DType().Size() > 0 || m.Transport == nil && !t.Initialized() {
		w.tensor(1, t)
	}
}

// noValue is sent instead of a dead tensor, as by TensorFlow.
var noValue = tensor.Vector[float32]()

func (d *decoder) recvTensorResponse(m *message.RecvTensorResponse) {
	for d.more() {
		switch key := d.key(); key {
		case 1<<3 | lengthDelimited:
			m.Tensor.Release()
			m.Tensor = d.tensor("recv", 0)
		case 2<<3 | varint:
			m.Dead = d.bool()
		case 3<<3 | varint:
			m.SendStartMicros = d.int64()
		case 4<<3 | lengthDelimited:
			m.Transport = d.anyMessage(m.Transport)
		case 5<<3 | varint:
			m.RequireAck = d.bool()
		default:
			d.skip(key)
		}
	}
	switch {
	case m.Tensor.Initialized() || m.Transport != nil:
	case m.Dead:
		m.Tensor = noValue
	default:
		d.reject("recv", 0, "it is missing")
	}
}
