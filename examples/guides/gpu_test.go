//go:build gpu

package guides

import _ "github.com/weft-ml/weft/gpu"
