package device_test

import (
	"fmt"

	"github.com/weft-ml/weft/device"
)

// Old and partial names are understood.
func ExampleParse() {
	for _, name := range []string{"/job:ps/replica:0/task:1/device:CPU:0", "/job:ps/task:1/cpu:0", "/job:ps"} {
		spec, err := device.Parse(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(spec, spec.IsFull())
	}
	// Output:
	// /job:ps/replica:0/task:1/device:CPU:0 true
	// /job:ps/task:1/device:CPU:0 false
	// /job:ps false
}
