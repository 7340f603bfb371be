package serving

import (
	"net/http"
	"strings"

	"github.com/weft-ml/weft/internal/serving/rest"
)

// route returns the kind of a request that uses a model, without the name of the model, for its
// span. It is "" for others: programs that watch a server ask for the state of its models.
func route(r *http.Request) string {
	path := r.URL.Path
	switch {
	case r.Method != http.MethodPost:
		return ""
	case rest.IsPath(path):
		switch verb := strings.ToLower(path[strings.LastIndexByte(path, ':')+1:]); verb {
		case "classify", "regress", "predict":
			return "/v1/models/{model}:" + verb
		}
	case strings.HasPrefix(path, "/v2/models/") && strings.HasSuffix(path, "/infer"):
		return "/v2/models/{model}/infer"
	}
	return ""
}
