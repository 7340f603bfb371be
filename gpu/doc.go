// Package gpu gives a program GPU devices. A program imports it for its effect, and is built with
// the tag gpu:
//
//	import _ "github.com/weft-ml/weft/gpu"
//
//	go build -tags gpu
//
// The sessions and servers of the program then have the devices "/device:GPU:0" and so on, of
// NVIDIA's CUDA or of OpenCL. The libraries are those of the installed driver. They are opened when
// the first session or server starts. Without the tag the package does nothing, and without a GPU
// the program runs on CPUs.
package gpu
