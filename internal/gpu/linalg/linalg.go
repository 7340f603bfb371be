// Package linalg queues reductions and products of matrices on a device. They need several kernels
// each, whose choice depends on sizes, or a library of the driver.
package linalg

import (
	"errors"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Reduce sets out to the reduction of x [a, n, b] along n. The result is divided by count
// unless that is negative.
func Reduce(d *device.Device, name string, out, x *tensor.Tensor, a, n, b, count int64) error {
	suffix := source.TypeName(x.DType())
	splits := splitsOf(d, a, n, b)
	if splits == 1 {
		return reduceOnce(d, name+"_"+suffix, out, x, a, n, b, 1, count)
	}
	wide := x.DType()
	if wide.Size() == 2 && wide.IsFloating() {
		wide = tensor.Float32
	}
	partial, err := d.Alloc(wide, tensor.Shape{a, splits, b})
	if err != nil {
		return err
	}
	defer partial.Release()
	if err := reduceOnce(d, name+"_"+suffix, &partial, x, a, n, b, splits, -1); err != nil {
		return err
	}
	second := name
	if name == "sumsquares" {
		second = "sum"
	}
	if wide == x.DType() {
		return reduceOnce(d, second+"_"+source.TypeName(wide), out, &partial, a, splits, b, 1, count)
	}
	sum, err := d.Alloc(wide, tensor.Shape{a, b})
	if err != nil {
		return err
	}
	defer sum.Release()
	if err := reduceOnce(d, second+"_"+source.TypeName(wide), &sum, &partial, a, splits, b, 1, count); err != nil {
		return err
	}
	return d.LaunchLine("cast_"+source.TypeName(wide)+"_"+suffix, a*b, out, &sum, a*b)
}

// splitsOf returns into how many parts the reduced dimension is divided. It depends on sizes and on
// the model of the device alone, so a result has the same bits in every run.
func splitsOf(d *device.Device, a, n, b int64) int64 {
	groups, least := a, int64(4096)
	if b > 1 {
		groups, least = a*((b+31)/32), 64
	}
	wanted := int64(4 * max(2, d.Info().Multiprocessors))
	if groups >= wanted || n < 2*least {
		return 1
	}
	return min((wanted+groups-1)/groups, n/least, 1024)
}

func reduceOnce(d *device.Device, name string, out, x *tensor.Tensor, a, n, b, splits, count int64) error {
	const most = 1 << 16
	if b == 1 {
		return d.Launch(name+"_rows", [3]int{int(min(a*splits, most)), 1, 1}, [3]int{256, 1, 1}, out, x, a, n, int32(splits), count)
	}
	groups := a * splits * ((b + 31) / 32)
	return d.Launch(name+"_cols", [3]int{int(min(groups, most)), 1, 1}, [3]int{32, 8, 1}, out, x, a, n, b, int32(splits), count)
}

// Product computes a batch of products, by the driver's library if it has one. As in
// TensorFlow, the library may compute float32 with TF32, unless NVIDIA_TF32_OVERRIDE is 0.
func Product(d *device.Device, c, a, b *tensor.Tensor, p driver.MatMul) error {
	p.TF32 = p.Type == tensor.Float32
	if library, err := d.Driver().BLAS(); err == nil {
		cm, am, bm := d.Mem(c), d.Mem(a), d.Mem(b)
		err := d.Do("matmul", func(s driver.Stream) error { return library.MatMul(s, cm, am, bm, p) })
		if !errors.Is(err, driver.ErrUnsupported) {
			return err
		}
	}
	return ownProduct(d, c, a, b, p)
}

// ownProduct computes a batch of products with the kernels of matmul.cl.
func ownProduct(d *device.Device, c, a, b *tensor.Tensor, p driver.MatMul) error {
	const most = 1 << 30
	if p.M > most || p.N > most || p.K > most {
		return status.Unimplementedf("a product of matrices of %d x %d and %d x %d elements", p.M, p.K, p.K, p.N)
	}
	ai, ap, bp, bj := int64(p.K), int64(1), int64(p.N), int64(1)
	if p.TransA {
		ai, ap = 1, int64(p.M)
	}
	if p.TransB {
		bp, bj = 1, int64(p.K)
	}
	wanted := 2 * max(2, d.Info().Multiprocessors)
	tile, name := 128, "matmul128_"
	tiles := func() int { return ((p.M + tile - 1) / tile) * ((p.N + tile - 1) / tile) * p.Batch }
	if tiles() < wanted/2 {
		tile, name = 32, "matmul32_"
	}
	splits := 1
	if t := tiles(); t < wanted && p.K >= 512 {
		splits = min((wanted+t-1)/t, p.K/128, 256)
	}
	suffix := source.TypeName(p.Type)
	args := func(out *tensor.Tensor) []any {
		return []any{out, a, b, int32(p.M), int32(p.N), int32(p.K), ai, ap, bp, bj, int64(p.StrideA), int64(p.StrideB), int32(splits)}
	}
	items := [3]int{16, 16, 1}
	const most2 = 65535 // groups in dimensions 1 and 2
	groups := [3]int{(p.N + tile - 1) / tile, (p.M + tile - 1) / tile, p.Batch * splits}
	if groups[1] > most2 || groups[2] > most2 {
		return inParts(d, c, a, b, p, groups[1] > most2)
	}
	if splits == 1 {
		return d.Launch(name+suffix, groups, items, args(c)...)
	}
	wide := p.Type
	if wide.Size() == 2 {
		wide = tensor.Float32
	}
	partial, err := d.Alloc(wide, tensor.Shape{int64(p.Batch), int64(splits), int64(p.M), int64(p.N)})
	if err != nil {
		return err
	}
	defer partial.Release()
	if err := d.Launch(name+suffix, groups, items, args(&partial)...); err != nil {
		return err
	}
	batch, cells := int64(p.Batch), int64(p.M)*int64(p.N)
	if wide == p.Type {
		return reduceOnce(d, "sum_"+suffix, c, &partial, batch, int64(splits), cells, 1, -1)
	}
	sum, err := d.Alloc(wide, tensor.Shape{batch, cells})
	if err != nil {
		return err
	}
	defer sum.Release()
	if err := reduceOnce(d, "sum_"+source.TypeName(wide), &sum, &partial, batch, int64(splits), cells, 1, -1); err != nil {
		return err
	}
	return d.LaunchLine("cast_"+source.TypeName(wide)+"_"+suffix, batch*cells, c, &sum, batch*cells)
}

// inParts computes a batch of products in several launches, of half the rows or half the batch
// each.
func inParts(d *device.Device, c, a, b *tensor.Tensor, p driver.MatMul, byRows bool) error {
	flat := func(t *tensor.Tensor, lo, hi int) (tensor.Tensor, error) {
		v, err := t.WithElements(t.DType(), tensor.Shape{int64(t.NumElements())})
		if err != nil {
			return v, err
		}
		return v.Rows(lo, hi), nil
	}
	if byRows && (p.Batch > 1 || p.TransA) {
		return status.Unimplementedf("a product of matrices of %d rows in a batch of %d", p.M, p.Batch)
	}
	for half := range 2 {
		q := p
		var lo [3]int // first elements of c, a and b
		if byRows {
			q.M = p.M / 2
			if half == 1 {
				q.M, lo = p.M-p.M/2, [3]int{p.M / 2 * p.N, p.M / 2 * p.K, 0}
			}
		} else {
			q.Batch = p.Batch / 2
			if half == 1 {
				q.Batch = p.Batch - p.Batch/2
				lo = [3]int{p.Batch / 2 * p.StrideC, p.Batch / 2 * p.StrideA, p.Batch / 2 * p.StrideB}
			}
		}
		var parts [3]tensor.Tensor
		for i, t := range []*tensor.Tensor{c, a, b} {
			var err error
			if parts[i], err = flat(t, lo[i], t.NumElements()); err != nil {
				return err
			}
		}
		if err := ownProduct(d, &parts[0], &parts[1], &parts[2], q); err != nil {
			return err
		}
	}
	return nil
}
