package stringops

import (
	"encoding/binary"

	"github.com/weft-ml/weft/internal/numeric/farmhash"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// digest is the number of bytes in a fingerprint.
const digest = 8

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "Fingerprint", Doc: "Computes an 8-byte fingerprint of each row of the first dimension.",
		In:    []string{"data: T", "method: string"},
		Out:   []string{"fingerprint: uint8"},
		Attrs: []string{"T: type"},
		Shape: fingerprintShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		if t := c.Inputs[0]; t.Size() == 0 && t != tensor.String {
			return nil, status.InvalidArgumentf("Data type not supported: %v", t)
		}
		return kernel.Func(computeFingerprints), nil
	})
}

func fingerprintShape(c *opdef.ShapeContext) error {
	data, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err != nil {
		return err
	}
	if err := shapefn.CheckRanks(c, 1, 0); err != nil {
		return err
	}
	width := shapefn.Unknown
	if method := c.Value(1); method != nil {
		if m := tensor.Value[string](method); m != "farmhash64" {
			return status.InvalidArgumentf("unexpected method: %s", m)
		}
		width = digest
	}
	c.Out[0] = shapefn.Of(data.Dim(0), width)
	return nil
}

func computeFingerprints(ctx *kernel.Context) error {
	data, methods := ctx.Input(0), ctx.Input(1)
	if methods.Rank() != 0 {
		return status.InvalidArgumentf("`method` should be a scalar string: %v", methods.Shape())
	}
	if method := tensor.Value[string](methods); method != "farmhash64" {
		return status.InvalidArgumentf("Unsupported fingerprint method: %s", method)
	}
	if data.Rank() == 0 {
		return status.InvalidArgumentf("`data` should have at least one dimension: %v", data.Shape())
	}
	n := data.Dim(0)
	out, err := ctx.Allocate(0, tensor.Shape{int64(n), digest})
	if err != nil || n == 0 {
		return err
	}
	dst, mem := tensor.Values[uint8](out), data.Bytes()
	if data.DType() == tensor.String {
		mem = digests(tensor.Values[string](data))
		if data.NumElements() == n { // one string per row, so there is no digest of digests
			copy(dst, mem)
			return nil
		}
	}
	width := len(mem) / n
	for i := range n {
		binary.LittleEndian.PutUint64(dst[i*digest:], farmhash.Fingerprint64(mem[i*width:(i+1)*width]))
	}
	return nil
}

// digests returns the concatenated fingerprints of strings.
func digests(all []string) []byte {
	out := membudget.MakeCap[byte](len(all) * digest)
	for _, s := range all {
		out = binary.LittleEndian.AppendUint64(out, fingerprint(s))
	}
	return out
}
