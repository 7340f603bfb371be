// Package drivers registers the drivers of GPUs that the program was built with. Without the build
// tag gpu there are none, and the program is static.
package drivers
