package grpch2

// A ban keeps calls from being served in the turn to read after one that lost it: what the call
// waited for may have been behind it. Each is longer than the last, so that the time that is lost
// grows with the logarithm of the number of calls. Only who has the turn touches it.
type ban struct {
	left   int // calls
	length int // of the last one
	kept   int // calls that have not lost the turn since
}

const (
	banLeast = 16
	banMost  = 1 << 16
	banKept  = 256 // so many calls make the next ban half as long
)

// over reports whether there is none, or else counts a call of it.
func (b *ban) over() bool {
	if b.left == 0 {
		return true
	}
	b.left--
	return false
}

// lost begins the next one.
func (b *ban) lost() {
	b.length = min(max(2*b.length, banLeast), banMost)
	b.left, b.kept = b.length, 0
}

// keep takes note of a call that has not lost the turn.
func (b *ban) keep() {
	if b.kept++; b.kept%banKept == 0 {
		b.length /= 2
	}
}
