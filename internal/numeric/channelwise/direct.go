package channelwise

// wasteful reports whether repeating channels for their outputs takes far more memory than the
// convolution itself. This happens if strides or gaps skip most of the input.
func (s *Depthwise) wasteful() bool {
	return s.imageIn() > 16*(s.imageIn()+s.filter()+s.imageOut())/s.Multiplier
}

// products calls visit for every product of the convolution, with the indices of its factors and of
// the output.
func (s *Depthwise) products(visit func(x, f, y int)) {
	for image := range s.Batch {
		for oy := range s.Rows.Out {
			top, bottom, atY := s.Rows.Clip(oy)
			for ox := range s.Cols.Out {
				left, right, atX := s.Cols.Clip(ox)
				y := (image*s.Rows.Out+oy)*s.Cols.Out + ox
				for ky := top; ky < bottom; ky++ {
					for kx := left; kx < right; kx++ {
						row, col := atY+(ky-top)*s.Rows.Dilation, atX+(kx-left)*s.Cols.Dilation
						s.pixelProducts((image*s.Rows.In+row)*s.Cols.In+col, ky*s.Cols.Window+kx, y, visit)
					}
				}
			}
		}
	}
}

// pixelProducts calls visit for the channels of a pixel of x, of the filter and of y.
func (s *Depthwise) pixelProducts(x, f, y int, visit func(x, f, y int)) {
	for c := range s.Channels * s.Multiplier {
		visit(x*s.Channels+c/s.Multiplier, f*s.Channels*s.Multiplier+c, y*s.Channels*s.Multiplier+c)
	}
}
