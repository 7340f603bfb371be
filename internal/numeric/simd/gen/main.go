// Gen generates the assembly of the vector packages with avo, the declarations of its functions,
// and the table of the kernels of package simd:
//
//	go generate ./internal/numeric/simd
//
// It is a separate module, so that the main module does not depend on avo. A kernel is described
// once, as a sequence of vector operations (target.go), and emitted for every instruction set and
// element type that it is listed for. Repeated sequences of instructions become macros (macro.go).
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// directory below internal/numeric
type source struct {
	pkg  string // directory below internal/numeric
	name string // file name without _amd64.s
	isa  isa
	emit func(*target)
	bits []int // element types
}

func sources() []source {
	var s []source
	for _, isa := range []isa{avx512, avx2} {
		both, single := []int{32, 64}, []int{32}
		s = append(s,
			source{"simd", "arith_" + isa.String(), isa, arithmetic, both},
			source{"simd", "reduce_" + isa.String(), isa, reductions, both},
			source{"simd", "columns_" + isa.String(), isa, columns, both},
			source{"simd", "update_" + isa.String(), isa, updates, both},
			source{"simd", "matvec_" + isa.String(), isa, matrixVector, both},
			source{"simd", "transcend_" + isa.String(), isa, transcendental, both},
			source{"simd", "convert_" + isa.String(), isa, conversions, single},
			source{"simd", "compare_" + isa.String(), isa, comparisons, both},
			source{"simd", "integers_" + isa.String(), isa, integers, both},
			source{"simd", "positions_" + isa.String(), isa, positions, both},
			source{"simd", "gather_" + isa.String(), isa, gathers, single},
			source{"simd", "scatter_" + isa.String(), isa, scatters, both},
			source{"simd", "copies_" + isa.String(), isa, copies, single},
			source{"simd", "lerp_" + isa.String(), isa, lerps, single},
			source{"simd", "normalize_" + isa.String(), isa, normalization, single},
			source{"channelwise", "pool_" + isa.String(), isa, windows, both},
			source{"channelwise", "depthwise_" + isa.String(), isa, depthwise, both},
			source{"philox", "vectors_" + isa.String(), isa, philox, single},
			source{"microkernel", "tile_" + isa.String(), isa, tiles, both},
			source{"microkernel", "pack_" + isa.String(), isa, packs, both},
		)
	}
	return append(s,
		source{"microkernel", "pairs_avx512", avx512, pairs, []int{32}},
		source{"simd", "transpose_avx512", avx512, lines, []int{32, 64}},
		source{"simd", "transpose_avx2", avx2, transposition, []int{32}},
	)
}

func main() {
	root := flag.String("root", "../../../..", "root of the repository")
	flag.Parse()
	files, err := generate()
	if err != nil {
		log.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(*root, "internal/numeric", name), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// generate returns the generated files by path below internal/numeric.
func generate() (map[string][]byte, error) {
	files := map[string][]byte{}
	var kernels []string // of package simd
	for _, s := range sources() {
		asm, stubs, functions, err := s.print()
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", s.pkg, s.name, err)
		}
		path := s.pkg + "/" + s.name
		files[path+"_amd64.s"], files[path+"_amd64.go"] = asm, stubs
		if s.pkg == "simd" {
			kernels = append(kernels, functions...)
		}
	}
	var err error
	files["simd/kernels_amd64.go"], err = wiring(kernels)
	return files, err
}

// print returns the assembly, the declarations of its functions, and their names.
func (s source) print() (asm, stubs []byte, functions []string, err error) {
	ctx := build.NewContext()
	for _, bits := range s.bits {
		t := newTarget(ctx, s.isa, bits)
		s.emit(t)
		t.finish()
	}
	file, err := ctx.Result()
	if err != nil {
		return nil, nil, nil, err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, nil, nil, err
	}
	for _, f := range file.Functions() {
		functions = append(functions, f.Name)
	}
	macros := extractMacros(file)
	cfg := printer.Config{Name: "internal/numeric/simd/gen", Pkg: filepath.Base(s.pkg)}
	if asm, err = printer.NewGoAsm(cfg).Print(file); err != nil {
		return nil, nil, nil, err
	}
	const include = "#include \"textflag.h\"\n"
	asm = bytes.Replace(asm, []byte(include), []byte(include+macros), 1)
	stubs, err = printer.NewStubs(cfg).Print(file)
	return asm, stubs, functions, err
}
