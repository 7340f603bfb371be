//go:build gpu

package opencl

import (
	"fmt"
	"sync"

	"github.com/weft-ml/weft/internal/gpu/dl"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/tensor"
)

// clblast are the functions of CLBlast, with floats among their arguments.
var clblast struct {
	sgemm func(layout, ta, tb int32, m, n, k uint64, alpha float32, a uintptr, ao, lda uint64, b uintptr, bo, ldb uint64,
		beta float32, c uintptr, co, ldc uint64, queue *uintptr, event *uintptr) int32
	dgemm func(layout, ta, tb int32, m, n, k uint64, alpha float64, a uintptr, ao, lda uint64, b uintptr, bo, ldb uint64,
		beta float64, c uintptr, co, ldc uint64, queue *uintptr, event *uintptr) int32
}

var openCLBlast = sync.OnceValue(func() error {
	l, err := dl.Open("WEFT_CLBLAST", "libclblast.so.1")
	if err != nil {
		return err
	}
	if err := l.Func(&clblast.sgemm, "CLBlastSgemm"); err != nil {
		return err
	}
	return l.Func(&clblast.dgemm, "CLBlastDgemm")
})

// blas computes with CLBlast.
type blas struct{ device *device }

func (d *device) BLAS() (driver.BLAS, error) {
	d.blasOnce.Do(func() {
		if d.blasErr = openCLBlast(); d.blasErr == nil {
			d.blas = &blas{d}
		}
	})
	if d.blasErr != nil {
		return nil, d.blasErr
	}
	return d.blas, nil
}

func (*blas) Name() string { return "CLBlast" }

// Constants of CLBlast.
const (
	rowMajor   = 101
	plain      = 111
	transposed = 112
)

func (l *blas) MatMul(s driver.Stream, c, a, b driver.Mem, p driver.MatMul) error {
	own, ok := s.(*stream)
	if !ok || own.device != l.device {
		return fmt.Errorf("CLBlast: stream of another device")
	}
	if p.Type != tensor.Float32 && p.Type != tensor.Float64 {
		return fmt.Errorf("CLBlast: %v: %w", p.Type, driver.ErrUnsupported)
	}
	size := p.Type.Size()
	ta, tb, lda, ldb := int32(plain), int32(plain), uint64(p.K), uint64(p.N)
	if p.TransA {
		ta, lda = transposed, uint64(p.M)
	}
	if p.TransB {
		tb, ldb = transposed, uint64(p.K)
	}
	m, n, k := uint64(p.M), uint64(p.N), uint64(p.K)
	for i := range p.Batch {
		ao, bo, co := uint64(a.Off/size+i*p.StrideA), uint64(b.Off/size+i*p.StrideB), uint64(c.Off/size+i*p.StrideC)
		var status int32
		if p.Type == tensor.Float32 {
			status = clblast.sgemm(rowMajor, ta, tb, m, n, k, 1, a.Base, ao, lda, b.Base, bo, ldb, 0, c.Base, co, n, &own.queue, nil)
		} else {
			status = clblast.dgemm(rowMajor, ta, tb, m, n, k, 1, a.Base, ao, lda, b.Base, bo, ldb, 0, c.Base, co, n, &own.queue, nil)
		}
		if status != 0 {
			return fmt.Errorf("CLBlast: product %d of %+v: status %d", i, p, status)
		}
	}
	return nil
}
