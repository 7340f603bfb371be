package listops

import "github.com/weft-ml/weft/tensor"

// cell is one place of a tensor array.
type cell struct {
	// not initialized where nothing has been written, or where it stands for zeros
	value   tensor.Tensor
	shape   tensor.Shape
	written bool
	read    bool
	cleared bool // the value has been read and is gone
}

const pageSize = 256

// cells is an array of cells in pages that are made when they are first needed: its size comes from
// outside.
type cells struct {
	pages []*[pageSize]cell
	n     int
}

func newCells(n int) cells {
	var c cells
	c.grow(n)
	return c
}

// grow makes the array at least n long.
func (c *cells) grow(n int) {
	if n <= c.n {
		return
	}
	c.n = n
	if pages := (n + pageSize - 1) / pageSize; pages > len(c.pages) {
		bigger := make([]*[pageSize]cell, max(pages, min(2*len(c.pages), 1<<16)))
		copy(bigger, c.pages)
		c.pages = bigger
	}
}

// at returns cell i of an array that is longer than i.
func (c *cells) at(i int) *cell {
	page := &c.pages[i/pageSize]
	if *page == nil {
		*page = new([pageSize]cell)
	}
	return &(*page)[i%pageSize]
}

// peek is at without making anything: nil for a cell that has never been used.
func (c *cells) peek(i int) *cell {
	if page := c.pages[i/pageSize]; page != nil {
		return &page[i%pageSize]
	}
	return nil
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
