package device

// LaunchLine queues a kernel over n elements, whose items loop: as many groups of 256 items as the
// device has use for, or fewer. It does nothing if n is 0.
func (d *Device) LaunchLine(name string, n int64, args ...any) error {
	if n == 0 {
		return nil
	}
	const items = 256
	most := int64(max(8, 16*d.info.Multiprocessors))
	return d.Launch(name, [3]int{int(min((n+items-1)/items, most)), 1, 1}, [3]int{items, 1, 1}, args...)
}
