package listops

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/tensor"
)

// cell is one element of a tensor array.
type cell struct {
	// Not initialized if the element has not been written or is implicitly zero.
	value   tensor.Tensor
	shape   tensor.Shape
	written bool
	read    bool
	cleared bool // the value was read and dropped
}

const pageSize = 256

// cells is an array of cells in pages. Pages are allocated on first use, because the size comes
// from an input.
type cells struct {
	pages []*[pageSize]cell
	n     int
}

func newCells(n int) cells {
	var c cells
	c.grow(n)
	return c
}

// grow extends the array to at least n cells.
func (c *cells) grow(n int) {
	if n <= c.n {
		return
	}
	c.n = n
	if pages := (n + pageSize - 1) / pageSize; pages > len(c.pages) {
		bigger := membudget.Make[*[pageSize]cell](max(pages, min(2*len(c.pages), 1<<16)))
		copy(bigger, c.pages)
		c.pages = bigger
	}
}

// at returns cell i, which must be within the size. It allocates the page.
func (c *cells) at(i int) *cell {
	page := &c.pages[i/pageSize]
	if *page == nil {
		// a graph may write to one cell of each page
		membudget.MustTake(int64(unsafe.Sizeof([pageSize]cell{})))
		*page = new([pageSize]cell)
	}
	return &(*page)[i%pageSize]
}

// peek returns cell i without allocating its page; nil if the page does not exist.
func (c *cells) peek(i int) *cell {
	if page := c.pages[i/pageSize]; page != nil {
		return &page[i%pageSize]
	}
	return nil
}

// written calls visit with each cell that has been written, and its number.
func (c *cells) written(visit func(i int, c *cell)) {
	for p, page := range c.pages {
		if page == nil {
			continue
		}
		for i := range page {
			if page[i].written {
				visit(p*pageSize+i, &page[i])
			}
		}
	}
}

// clear drops all values.
func (c *cells) clear() {
	for _, page := range c.pages {
		if page == nil {
			continue
		}
		for i := range page {
			page[i].value.Release()
		}
	}
	*c = cells{}
}
