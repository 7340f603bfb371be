package quantize

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// convolution holds the attributes of a convolution in any number of dimensions.
type convolution struct {
	strides, dilations, kernelDilations []int64 // empty means all ones
	padding                             string
	pads                                []int64 // before and after each spatial dimension
	batchGroups, featureGroups          int64

	// Dimension orders of the inputs and the output: batch and feature (for the filter output and
	// input feature), followed by the spatial dimensions. nil means this order.
	in, kernel, out []int64
}

func newConvolution(attrs opdef.Attrs) (*convolution, error) {
	c := &convolution{
		strides: attrs.Ints("window_strides"), dilations: attrs.Ints("lhs_dilation"), kernelDilations: attrs.Ints("rhs_dilation"),
		padding: attrs.String("padding"), pads: attrs.Ints("explicit_padding"),
		batchGroups: int64(attrs.Int("batch_group_count")), featureGroups: int64(attrs.Int("feature_group_count")),
	}
	switch {
	case !slices.Contains([]string{"EXPLICIT", "SAME", "VALID"}, c.padding):
		return nil, status.InvalidArgumentf("padding Attr must be one of [EXPLICIT | SAME | VALID], but given: %s", c.padding)
	case c.padding != "EXPLICIT" && len(c.pads) > 0:
		return nil, status.InvalidArgumentf("If padding Attr is not 'EXPLICIT', explicit_padding Attr must be empty. Given padding %s and "+
			"explicit_padding of size %d", c.padding, len(c.pads))
	}
	return c, c.readDimensions([]byte(attrs.String("dimension_numbers")))
}

// readDimensions decodes a message UniformQuantizedConvolutionDimensionNumbersAttr. Its fields are
// integers and lists of integers.
func (c *convolution) readDimensions(b []byte) error {
	const fields = 9
	var numbers [fields + 1][]int64
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return status.InvalidArgumentf("Error parsing convolution dimension numbers.")
		}
		size := protowire.ConsumeFieldValue(number, kind, b[n:])
		if size < 0 {
			return status.InvalidArgumentf("Error parsing convolution dimension numbers.")
		}
		value := b[n : n+size]
		b = b[n+size:]
		if number > fields {
			continue
		}
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		for len(value) > 0 && (kind == protowire.BytesType || kind == protowire.VarintType) {
			v, n := protowire.ConsumeVarint(value)
			if n < 0 {
				return status.InvalidArgumentf("Error parsing convolution dimension numbers.")
			}
			//sizedmake:ok part of an attribute
			numbers[number] = append(numbers[number], int64(v))
			value = value[n:]
		}
	}
	if len(numbers[3]) == 0 {
		return nil
	}
	one := func(field int) int64 { // the last value counts; 0 if the field is absent
		if n := len(numbers[field]); n > 0 {
			return numbers[field][n-1]
		}
		return 0
	}
	c.in = append([]int64{one(1), one(2)}, numbers[3]...)
	c.kernel = append([]int64{one(5), one(4)}, numbers[6]...)
	c.out = append([]int64{one(7), one(8)}, numbers[9]...)
	return nil
}

// fit checks the shapes of the inputs and returns the convolution with all defaults filled in.
func (c convolution) fit(lhs, rhs tensor.Shape) (*convolution, error) {
	rank := len(lhs)
	switch {
	case rank != len(rhs):
		return nil, status.InvalidArgumentf("lhs and rhs must have same dims. Given lhs and rhs of shapes: %v%v", lhs, rhs)
	case rank <= 2:
		return nil, status.InvalidArgumentf("lhs and rhs shape dims must be at least 3. Given: %d", rank)
	}
	for _, list := range []struct {
		values *[]int64
		name   string
	}{{&c.strides, "window_strides"}, {&c.dilations, "lhs_dilation"}, {&c.kernelDilations, "rhs_dilation"}} {
		switch v := *list.values; {
		case len(v) == 0:
			//sizedmake:ok a rank
			*list.values = slices.Repeat([]int64{1}, rank-2)
		case len(v) != rank-2:
			return nil, status.InvalidArgumentf("Size of %s Attr must be dims - 2.", list.name)
		case slices.Min(v) < 1:
			return nil, status.InvalidArgumentf("All elements of %s must be >= 1. Given %s", list.name, joined(v))
		}
	}
	for _, dims := range []*[]int64{&c.in, &c.kernel, &c.out} {
		if *dims == nil {
			for i := range rank {
				*dims = append(*dims, int64(i))
			}
		}
		if err := checkDimensions(*dims, rank); err != nil {
			return nil, err
		}
	}
	if err := c.checkGroups(lhs, rhs); err != nil {
		return nil, err
	}
	return &c, c.fillPads(lhs, rhs)
}

func joined(v []int64) string {
	text := membudget.Make[string](len(v))
	for i := range v {
		text[i] = strconv.FormatInt(v[i], 10)
	}
	//sizedmake:ok an attribute, at the construction
	return strings.Join(text, ", ")
}

func checkDimensions(dims []int64, rank int) error {
	if len(dims) != rank {
		return status.InvalidArgumentf("Spatial dimensions size must be rank - 2. Given rank %d and spatial dimensions size %d", rank, len(dims)-2)
	}
	for i, d := range dims {
		switch {
		case d < 0 || d >= int64(rank):
			return status.InvalidArgumentf("Each dimension number must be in region [0, rank). Given rank %d and dimension number value %d", rank, d)
		case slices.Contains(dims[:i], d):
			return status.InvalidArgumentf("dimension number %d stands for two dimensions", d)
		}
	}
	return nil
}

func (c *convolution) checkGroups(lhs, rhs tensor.Shape) error {
	batch, features := lhs[c.in[0]], lhs[c.in[1]]
	outputs, inputs := rhs[c.kernel[0]], rhs[c.kernel[1]]
	switch groups := c.featureGroups; {
	case groups <= 0:
		return status.InvalidArgumentf("feature_group_count must be a positive integer, given: %d", groups)
	case features%groups != 0:
		return status.InvalidArgumentf("feature_group_count must divide lhs feature dimension size, but %d does not divide %d", groups, features)
	case inputs == 0 || features%inputs != 0:
		return status.InvalidArgumentf("rhs input feature dimension must divide lhs feature dimension size, but %d does not divide %d", inputs, features)
	case features/groups != inputs:
		return status.InvalidArgumentf("lhs feature dimension size divided by feature_group_count must equal the rhs input feature "+
			"dimension size, but %d / %d != %d", features, groups, inputs)
	case outputs%groups != 0:
		return status.InvalidArgumentf("rhs output dimension size must be a multiple of feature_group_count, but %d is not a multiple of %d",
			outputs, groups)
	}
	switch groups := c.batchGroups; {
	case groups <= 0:
		return status.InvalidArgumentf("batch_group_count Attr must be a positive integer. Given: %d", groups)
	case batch%groups != 0:
		return status.InvalidArgumentf("batch_group_count must divide lhs batch dimension size, but %d does not divide %d", groups, batch)
	case outputs%groups != 0:
		return status.InvalidArgumentf("rhs output dimension size must be a multiple of batch_group_count, but %d is not a multiple of %d",
			outputs, groups)
	}
	return nil
}

// dilated returns the dilated size of a dimension.
func dilated(size, dilation int64) int64 {
	if size == 0 {
		return 0
	}
	return (size-1)*dilation + 1
}

// spatial returns the dilated sizes of spatial dimension i of both inputs.
func (c *convolution) spatial(lhs, rhs tensor.Shape, i int) (size, window int64) {
	return dilated(lhs[c.in[2+i]], c.dilations[i]), dilated(rhs[c.kernel[2+i]], c.kernelDilations[i])
}

func (c *convolution) fillPads(lhs, rhs tensor.Shape) error {
	n := len(lhs) - 2
	switch c.padding {
	case "EXPLICIT":
		switch {
		case len(c.pads) != 2*n:
			return status.InvalidArgumentf("Size of explicit_padding Attr must be 2 * (rank - 2). Given rank %d and explicit_padding of size %d",
				len(lhs), len(c.pads))
		case slices.Min(c.pads) < 0:
			return status.InvalidArgumentf("All explicit_padding elems must be >= 0, Given %s", joined(c.pads))
		}
	case "VALID":
		c.pads = membudget.Make[int64](2 * n)
	default:
		c.pads = membudget.Make[int64](2 * n)
		for i := range n {
			size, window := c.spatial(lhs, rhs, i)
			steps := (size + c.strides[i] - 1) / c.strides[i]
			all := max((steps-1)*c.strides[i]+window-size, 0)
			c.pads[2*i], c.pads[2*i+1] = all/2, all-all/2
		}
	}
	return nil
}

// outShape returns the shape of the output.
func (c *convolution) outShape(lhs, rhs tensor.Shape) (tensor.Shape, error) {
	out := make(tensor.Shape, len(lhs))
	out[c.out[0]], out[c.out[1]] = lhs[c.in[0]]/c.batchGroups, rhs[c.kernel[0]]
	for i := range len(lhs) - 2 {
		size, window := c.spatial(lhs, rhs, i)
		out[c.out[2+i]] = (size + c.pads[2*i] + c.pads[2*i+1] - window + c.strides[i]) / c.strides[i]
	}
	return out, out.Check()
}

func convolutionShape(c *opdef.ShapeContext) error {
	for i := range 2 {
		if _, err := opdef.WithRankAtLeast(c.In[i], 2); err != nil {
			return err
		}
	}
	first, err := quantizations(c)
	if err != nil {
		return err
	}
	rank := max(c.In[0].Rank(), c.In[1].Rank())
	switch {
	case rank < 0:
		return nil
	case c.In[0].RankKnown() && c.In[1].RankKnown() && c.In[0].Rank() != c.In[1].Rank():
		return status.InvalidArgumentf("lhs and rhs must have same rank.")
	}
	c.Out[0] = tensor.UnknownDims(rank)
	lhs, known := c.In[0].Full()
	rhs, knownToo := c.In[1].Full()
	if !known || !knownToo {
		return nil
	}
	conv, err := newConvolution(c.Attrs)
	if err != nil {
		return err
	}
	if conv, err = conv.fit(lhs, rhs); err != nil {
		return err
	}
	for i := first; i < len(c.In); i += 2 {
		if err := checkScales(c, rhs[conv.kernel[0]], i); err != nil {
			return err
		}
	}
	if len(c.In) > 6 && c.In[6].Rank() > 0 && c.In[4].RankKnown() {
		if c.In[4].Rank() == 0 {
			return status.InvalidArgumentf("Shape must be at least rank 1 but is rank 0")
		}
		if _, err := opdef.MergeDims(c.In[4].Dim(0), c.In[6].Dim(0)); err != nil {
			return err
		}
	}
	out, err := conv.outShape(lhs, rhs)
	if err == nil {
		c.Out[0] = shapefn.Of(out...)
	}
	return err
}
