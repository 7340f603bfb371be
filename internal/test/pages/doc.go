// Package pages checks the documentation: that links lead somewhere, and that pages which must be
// complete are.
package pages
