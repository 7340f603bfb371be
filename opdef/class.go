package opdef

import "strings"

// Class says what an operation does besides computing its outputs from its inputs. It is a set:
// the zero Class is that of pure operations.
type Class uint8

// The classes.
const (
	State      Class = 1 << iota // reads or changes state: every stateful operation
	FilesRead                    // reads files, or returns a value that reads them when it is used
	FilesWrite                   // writes files, or returns a value that writes them; may read too
	Prints                       // writes to the standard error or standard output of the task
	Debug                        // only helps to find errors in programs
)

// classNames are the names of the classes in the order of their bits.
var classNames = [...]string{"state", "files-read", "files-write", "prints", "debug"}

// String returns the names of the classes with commas between them, or "pure".
func (c Class) String() string {
	var names []string
	for i, name := range classNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if names == nil {
		return "pure"
	}
	return strings.Join(names, ",")
}

// class returns the class of an operation with its state.
func (d *Def) class() Class {
	if d.Stateful {
		return d.Class | State
	}
	return d.Class
}
