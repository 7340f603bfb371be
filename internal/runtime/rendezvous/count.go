package rendezvous

// Contents are the numbers of what a table holds.
type Contents struct {
	Values    int   // tensors that were sent and not requested
	Bytes     int64 // size of these tensors
	Consumers int   // that wait for a tensor
}

// Contents returns what the table holds.
func (r *Table) Contents() Contents {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out Contents
	for _, first := range r.queues {
		for i := first; i != nil; i = i.next {
			switch {
			case i.done != nil:
				out.Consumers++
			default:
				out.Values++
				if i.value.Initialized() {
					out.Bytes += i.value.ByteSize()
				}
			}
		}
	}
	return out
}
