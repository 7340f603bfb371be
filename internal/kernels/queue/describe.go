package queue

import "github.com/weft-ml/weft/kernel"

// Describe implements [kernel.Describer].
func (q *Queue) Describe() kernel.Description {
	d := kernel.Description{Kind: "queue"}
	q.View(func() { d.Elements = int64(q.items.len()) })
	return d
}
