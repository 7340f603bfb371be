package rpc

import (
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
)

// Fields of the messages of MasterService that carry tensors, in the order of their numbers.

func (w *writer) runStepRequest(m *message.RunStepRequest) {
	w.text(1, m.Session)
	w.namedTensors(2, m.Feeds)
	w.elements(3, m.Fetches)
	w.elements(4, m.Targets)
	if m.Options != nil {
		w.message(5, m.Options)
	}
	w.text(6, m.PartialRun)
	w.bool(7, m.StoreErrorsInBody)
	w.integer(8, m.RequestID)
}

func (d *decoder) runStepRequest(m *message.RunStepRequest) {
	for d.more() {
		switch key := d.key(); key {
		case 1<<3 | lengthDelimited:
			m.Session = d.text()
		case 2<<3 | lengthDelimited:
			m.Feeds = add(&d.reader, m.Feeds, d.namedTensor("feed", len(m.Feeds)))
		case 3<<3 | lengthDelimited:
			m.Fetches = add(&d.reader, m.Fetches, d.text())
		case 4<<3 | lengthDelimited:
			m.Targets = add(&d.reader, m.Targets, d.text())
		case 5<<3 | lengthDelimited:
			m.Options = nested(&d.reader, m.Options)
		case 6<<3 | lengthDelimited:
			m.PartialRun = d.text()
		case 7<<3 | varint:
			m.StoreErrorsInBody = d.bool()
		case 8<<3 | varint:
			m.RequestID = d.int64()
		default:
			d.skip(key)
		}
	}
}

func (w *writer) runStepResponse(m *message.RunStepResponse) {
	w.namedTensors(1, m.Tensors)
	if m.Metadata != nil {
		w.message(2, m.Metadata)
	}
	w.bodyError(3, 4, m.Err)
}

func (d *decoder) runStepResponse(m *message.RunStepResponse) {
	var body failure
	for d.more() {
		switch key := d.key(); key {
		case 1<<3 | lengthDelimited:
			m.Tensors = add(&d.reader, m.Tensors, d.namedTensor("fetch", len(m.Tensors)))
		case 2<<3 | lengthDelimited:
			m.Metadata = nested(&d.reader, m.Metadata)
		case 3<<3 | varint:
			body.code = status.Code(d.int64())
		case 4<<3 | lengthDelimited:
			body.text = d.text()
		default:
			d.skip(key)
		}
	}
	m.Err = body.err()
}

func (w *writer) runCallableRequest(m *message.RunCallableRequest) {
	w.text(1, m.Session)
	w.integer(2, m.Handle)
	for i := range m.Feeds {
		w.tensor(3, &m.Feeds[i])
	}
	w.integer(4, m.RequestID)
}

func (d *decoder) runCallableRequest(m *message.RunCallableRequest) {
	for d.more() {
		switch key := d.key(); key {
		case 1<<3 | lengthDelimited:
			m.Session = d.text()
		case 2<<3 | varint:
			m.Handle = d.int64()
		case 3<<3 | lengthDelimited:
			m.Feeds = add(&d.reader, m.Feeds, d.tensor("feed", len(m.Feeds)))
		case 4<<3 | varint:
			m.RequestID = d.int64()
		default:
			d.skip(key)
		}
	}
}

func (w *writer) runCallableResponse(m *message.RunCallableResponse) {
	for i := range m.Fetches {
		w.tensor(1, &m.Fetches[i])
	}
	if m.Metadata != nil {
		w.message(2, m.Metadata)
	}
}

func (d *decoder) runCallableResponse(m *message.RunCallableResponse) {
	for d.more() {
		switch key := d.key(); key {
		case 1<<3 | lengthDelimited:
			m.Fetches = add(&d.reader, m.Fetches, d.tensor("fetch", len(m.Fetches)))
		case 2<<3 | lengthDelimited:
			m.Metadata = nested(&d.reader, m.Metadata)
		default:
			d.skip(key)
		}
	}
}

// failure is an error in the body of a response.
type failure struct {
	code status.Code
	text string
}

func (f failure) err() *status.Error {
	if f.code == status.OK {
		return nil
	}
	return status.New(f.code, f.text)
}

// nested decodes a message without tensors into m, which may be nil.
func nested[M any, P interface {
	*M
	proto.Message
}](r *reader, m P) P {
	if m == nil {
		m = new(M)
	}
	r.message(m)
	return m
}
