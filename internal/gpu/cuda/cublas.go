//go:build gpu

package cuda

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/dl"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/tensor"
)

// cb are the functions of cuBLAS 11 and later.
var cb struct {
	Create_v2, SetStream_v2, GetVersion_v2, GemmEx, GemmStridedBatchedEx uintptr
}

// versions returns names of a library with versions, and the paths where packages of Python have
// it.
func versions(name string, numbers ...int) []string {
	var names []string
	for _, n := range numbers {
		names = append(names, fmt.Sprintf("%s.so.%d", name, n))
	}
	for _, n := range numbers {
		names = append(names, dl.PythonLibraries(fmt.Sprintf("%s.so.%d", name, n))...)
	}
	return names
}

var openBLAS = sync.OnceValue(func() error {
	l, err := dl.Open("WEFT_CUBLAS", versions("libcublas", 13, 12, 11)...)
	if err != nil {
		return err
	}
	return l.Bind("cublas", &cb)
})

// blas is cuBLAS with its handle for one device.
type blas struct {
	device  *device
	version int32
	scalars *scalars

	mu     sync.Mutex // held from the choice of the stream until the product is queued
	handle uintptr
	stream uintptr // guarded by mu; the chosen stream. Choosing one takes longer than queueing
}

// scalars are the factors of a product, where cuBLAS and cuDNN read them.
type scalars struct {
	one, zero     float32
	one64, zero64 float64
}

func newScalars() *scalars { return &scalars{one: 1, one64: 1} }

func (d *device) BLAS() (driver.BLAS, error) {
	d.blasOnce.Do(func() { d.blas, d.blasErr = d.newBLAS() })
	if d.blasErr != nil {
		return nil, d.blasErr
	}
	return d.blas, nil
}

func (d *device) newBLAS() (*blas, error) {
	if err := openBLAS(); err != nil {
		return nil, err
	}
	d.enter()
	defer leave()
	b := &blas{device: d, scalars: newScalars()}
	return b, errors.Join(
		blasStatus("cublasCreate", dl.Call(cb.Create_v2, uintptr(unsafe.Pointer(&b.handle)))),
		blasStatus("cublasGetVersion", dl.Call(cb.GetVersion_v2, b.handle, uintptr(unsafe.Pointer(&b.version)))),
	)
}

func blasStatus(name string, r uintptr) error {
	if code := uint32(r); code != 0 {
		return fmt.Errorf("cuBLAS: %s: status %d", name, code)
	}
	return nil
}

func (b *blas) Name() string {
	return fmt.Sprintf("cuBLAS %d.%d.%d", b.version/10000, b.version%10000/100, b.version%100)
}

// Types and ways of computing of cuBLAS.
const (
	real32      = 0
	real64      = 1
	real16      = 2
	bfloat16    = 14
	compute32   = 68
	compute64   = 70
	computeTF32 = 77
	defaultAlgo = ^uintptr(0) // CUBLAS_GEMM_DEFAULT, which is -1
)

// dataType returns cuBLAS's names of a type and of the way to compute with it.
func dataType(p driver.MatMul) (data, compute uintptr, err error) {
	switch p.Type {
	case tensor.Float32:
		if p.TF32 {
			return real32, computeTF32, nil
		}
		return real32, compute32, nil
	case tensor.Float64:
		return real64, compute64, nil
	case tensor.Float16:
		return real16, compute32, nil
	case tensor.BFloat16:
		return bfloat16, compute32, nil
	}
	return 0, 0, fmt.Errorf("cuBLAS: %v: %w", p.Type, driver.ErrUnsupported)
}

// MatMul computes Cᵀ = Bᵀ·Aᵀ, since cuBLAS's matrices are stored by columns.
func (b *blas) MatMul(s driver.Stream, c, x, y driver.Mem, p driver.MatMul) error {
	own, ok := s.(*stream)
	if !ok || own.device != b.device {
		return errors.New("cuBLAS: stream of another device")
	}
	data, compute, err := dataType(p)
	if err != nil {
		return err
	}
	opX, opY, ldX, ldY := uintptr(0), uintptr(0), uintptr(p.K), uintptr(p.N)
	if p.TransA {
		opX, ldX = 1, uintptr(p.M)
	}
	if p.TransB {
		opY, ldY = 1, uintptr(p.K)
	}
	one, zero := unsafe.Pointer(&b.scalars.one), unsafe.Pointer(&b.scalars.zero)
	if p.Type == tensor.Float64 {
		one, zero = unsafe.Pointer(&b.scalars.one64), unsafe.Pointer(&b.scalars.zero64)
	}
	m, n, k := uintptr(p.M), uintptr(p.N), uintptr(p.K)
	b.device.enter()
	defer leave()
	b.mu.Lock()
	defer b.mu.Unlock()
	if own.handle != b.stream {
		if err := blasStatus("cublasSetStream", dl.Call(cb.SetStream_v2, b.handle, own.handle)); err != nil {
			return err
		}
		b.stream = own.handle
	}
	var status uintptr
	if p.Batch == 1 {
		status = dl.Call(cb.GemmEx, b.handle, opY, opX, n, m, k, uintptr(one), address(y), data, ldY, address(x), data, ldX,
			uintptr(zero), address(c), data, n, compute, defaultAlgo)
	} else {
		status = dl.Call(cb.GemmStridedBatchedEx, b.handle, opY, opX, n, m, k, uintptr(one), address(y), data, ldY, uintptr(p.StrideB),
			address(x), data, ldX, uintptr(p.StrideA), uintptr(zero), address(c), data, n, uintptr(p.StrideC), uintptr(p.Batch),
			compute, defaultAlgo)
	}
	if status != 0 {
		return fmt.Errorf("%w (%+v)", blasStatus("cublasGemmEx", status), p)
	}
	return nil
}
