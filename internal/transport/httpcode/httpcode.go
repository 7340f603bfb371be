// Package httpcode maps the codes of errors to those of HTTP.
package httpcode

import (
	"net/http"

	"github.com/weft-ml/weft/status"
)

// Of returns the status of HTTP for a code, as google.rpc.Code defines it.
func Of(code status.Code) int {
	switch code {
	case status.OK:
		return http.StatusOK
	case status.Cancelled:
		return 499 // the client has closed the request
	case status.InvalidArgument, status.FailedPrecondition, status.OutOfRange:
		return http.StatusBadRequest
	case status.DeadlineExceeded:
		return http.StatusGatewayTimeout
	case status.NotFound:
		return http.StatusNotFound
	case status.AlreadyExists, status.Aborted:
		return http.StatusConflict
	case status.PermissionDenied:
		return http.StatusForbidden
	case status.Unauthenticated:
		return http.StatusUnauthorized
	case status.ResourceExhausted:
		return http.StatusTooManyRequests
	case status.Unimplemented:
		return http.StatusNotImplemented
	case status.Unavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}
