package listops

import (
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// described returns the shape in input i of a shape function, as far as it is known. A scalar means
// an unknown shape.
func described(c *opdef.ShapeContext, i int) (tensor.PartialShape, error) {
	switch c.In[i].Rank() {
	case -1:
		return tensor.PartialShape{}, nil
	case 0:
		if v, ok := c.ScalarValue(i); ok && v != -1 {
			return tensor.PartialShape{}, status.InvalidArgumentf("Received an invalid shape scalar with a static value that is not '-1': %v", c.Value(i))
		}
		return tensor.PartialShape{}, nil
	}
	return shapefn.Input(c, i)
}

// elemsOf returns the known part of the element shape of the list in input 0, after a check of the
// element type. wrongHandle is the error for a handle to something else, and wrongType the error
// for another type.
func elemsOf(c *opdef.ShapeContext, wrongHandle, wrongType string) (tensor.PartialShape, error) {
	elems, dtype := c.InHandles[0], c.Attrs.Type("element_dtype")
	switch {
	case len(elems) > 1 && wrongHandle != "":
		return tensor.PartialShape{}, status.InvalidArgumentf("%s", wrongHandle)
	case len(elems) != 1:
		return tensor.PartialShape{}, nil
	case elems[0].DType != dtype:
		return tensor.PartialShape{}, status.InvalidArgumentf(wrongType, elems[0].DType, dtype)
	}
	return elems[0].Shape, nil
}

// setListShape sets output 0 of a shape function to a list with the given element shape.
func setListShape(c *opdef.ShapeContext, elem tensor.PartialShape) {
	c.Out[0] = shapefn.Of()
	c.OutHandles[0] = []tensor.HandleElem{{DType: c.Attrs.Type("element_dtype"), Shape: elem}}
}

// newListShape returns the shape function of operations that create a list. Input i is the element
// shape.
func newListShape(i int) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		elem, err := described(c, i)
		setListShape(c, elem)
		return err
	}
}

const (
	pushHandle = "Trying to push to list with wrong variant data."
	pushType   = "Trying to push to list with wrong element dtype. List has type %v but trying to push element with type %v"
	readHandle = "Trying to read from list with wrong variant data."
	readType   = "Trying to read from list with wrong element dtype. List has type %v but expected type %v"
)

func pushShape(c *opdef.ShapeContext) error {
	elem, err := elemsOf(c, pushHandle, pushType)
	setListShape(c, elem)
	return err
}

func pushBatchShape(c *opdef.ShapeContext) error {
	lists, err := opdef.WithRank(c.In[0], 1)
	if err != nil {
		return err
	}
	rows, err := opdef.WithRankAtLeast(c.In[1], 1)
	if err != nil {
		return err
	}
	n := lists.Dim(0)
	if rows.RankKnown() {
		if n, err = opdef.MergeDims(rows.Dim(0), n); err != nil {
			return err
		}
	}
	elem, err := elemsOf(c, pushHandle, pushType)
	setListShape(c, elem)
	c.Out[0] = shapefn.Of(n)
	return err
}

func popShape(c *opdef.ShapeContext) error {
	elem, err := elemsOf(c, "Trying to read from list with invalid variant data.",
		"Trying to read from list with wrong element dtype. List has type %v but trying to push element with type %v")
	c.Out[0], c.Out[1] = shapefn.Of(), elem
	if len(c.InHandles[0]) == 1 {
		c.OutHandles[0] = c.InHandles[0]
	}
	return err
}

// elemShape returns the element shape of the list in input 0, merged with the shape in input i.
func elemShape(c *opdef.ShapeContext, i int, wrongHandle, wrongType string) (tensor.PartialShape, error) {
	elem, err := elemsOf(c, wrongHandle, wrongType)
	if err != nil {
		return elem, err
	}
	also, err := described(c, i)
	if err != nil {
		return elem, err
	}
	return opdef.MergeShapes(elem, also)
}

// readDtype is the error of shape functions for elements of another type. Here, TensorFlow's error
// has the types in the opposite order.
const readDtype = "Expected list with element dtype %[2]v but got list with element dtype %[1]v"

func getShape(c *opdef.ShapeContext) (err error) {
	c.Out[0], err = elemShape(c, 2, "", readDtype)
	return err
}

func stackShape(c *opdef.ShapeContext) error {
	elem, err := elemShape(c, 1, readHandle, readType)
	c.Out[0] = shapefn.Concat(shapefn.Of(int64(c.Attrs.Int("num_elements"))), elem)
	return err
}

func gatherListShape(c *opdef.ShapeContext) error {
	elem, err := elemShape(c, 2, "", readDtype)
	c.Out[0] = shapefn.Concat(c.In[1], elem)
	return err
}

func concatListShape(c *opdef.ShapeContext) (err error) {
	elem := c.Attrs.Shape("element_shape")
	if len(c.In) > 1 {
		if elem, err = described(c, 1); err != nil {
			return err
		}
	}
	c.Out[1] = shapefn.Of(shapefn.Unknown)
	of, err := elemsOf(c, readHandle, readType)
	if err != nil {
		return err
	}
	if elem, err = opdef.MergeShapes(elem, of); err == nil && elem.RankKnown() {
		c.Out[0] = shapefn.Concat(shapefn.Of(shapefn.Unknown), shapefn.From(elem, min(1, elem.Rank())))
	}
	return err
}

func setShape(c *opdef.ShapeContext) error {
	elems := c.InHandles[0]
	if len(elems) != 1 {
		setListShape(c, tensor.PartialShape{})
		return nil
	}
	c.Out[0], c.OutHandles[0] = shapefn.Of(), elems
	_, err := opdef.MergeShapes(c.In[2], elems[0].Shape)
	return err
}

func splitShape(c *opdef.ShapeContext) error {
	whole, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err != nil {
		return err
	}
	if _, err := opdef.WithRank(c.In[2], 1); err != nil {
		return err
	}
	elem, err := described(c, 1)
	if err != nil {
		return err
	}
	if whole.RankKnown() {
		if _, err := opdef.MergeShapes(shapefn.Replace(whole, 0, shapefn.Unknown), elem); err != nil {
			return err
		}
	}
	setListShape(c, elem)
	return nil
}

func fromTensorShape(c *opdef.ShapeContext) error {
	elem, err := described(c, 1)
	if err != nil {
		return err
	}
	if whole := c.In[0]; whole.RankKnown() {
		if _, err := opdef.MergeShapes(shapefn.From(whole, min(1, whole.Rank())), elem); err != nil {
			return err
		}
	}
	setListShape(c, elem)
	return nil
}

func scatterIntoShape(c *opdef.ShapeContext) error {
	if _, err := opdef.WithRankAtLeast(c.In[1], 1); err != nil {
		return err
	}
	if _, err := opdef.WithRank(c.In[2], 1); err != nil {
		return err
	}
	elem, err := elemsOf(c, "Invalid handle_data for input list. Expected length of shape_and_types: 1 Saw: 2", readDtype)
	setListShape(c, elem)
	return err
}

func resizeShape(c *opdef.ShapeContext) error {
	c.Out[0] = shapefn.Of()
	if elems := c.InHandles[0]; len(elems) == 1 {
		c.OutHandles[0] = elems
	}
	_, err := opdef.WithRank(c.In[1], 0)
	return err
}

func elementShapeShape(c *opdef.ShapeContext) error {
	if elems := c.InHandles[0]; len(elems) == 1 && elems[0].Shape.RankKnown() {
		c.Out[0] = shapefn.Of(int64(elems[0].Shape.Rank()))
	}
	return nil
}

func concatListsShape(c *opdef.ShapeContext) (err error) {
	if c.Out[0], err = opdef.MergeShapes(c.In[0], c.In[1]); err != nil {
		return err
	}
	dtype, elem := c.Attrs.Type("element_dtype"), tensor.PartialShape{}
	for i, name := range []string{"input_a", "input_b"} {
		elems := c.InHandles[i]
		if len(elems) == 0 {
			continue
		}
		if elems[0].DType != dtype {
			return status.InvalidArgumentf("%s.type != element_dtype: %v vs. %v", name, elems[0].DType, dtype)
		}
		if elem, err = opdef.MergeShapes(elem, elems[0].Shape); err != nil {
			return err
		}
	}
	c.OutHandles[0] = []tensor.HandleElem{{DType: dtype, Shape: elem}}
	return nil
}
