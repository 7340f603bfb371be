package fileio

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-ml/weft/status"
)

// Match returns the paths that match a pattern, in order. "*" and "?" do not match a slash, and
// "[!a]" matches any character except a. A malformed pattern and a folder that cannot be read match
// nothing. A pattern outside of the roots is an error, and so is one for which too many names have
// to be looked at.
func (f Files) Match(pattern string) ([]string, error) {
	if len(pattern) > maxPath { // no path is as long
		return nil, nil
	}
	pattern = strings.ReplaceAll(pattern, "[!", "[^")
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, nil
	}
	literal, _ := filepath.Split(pattern[:max(strings.IndexAny(pattern, special), 0)])
	if _, err := f.at(cmp.Or(literal, pattern), Reading); err != nil {
		return nil, err
	}
	m := matcher{files: f}
	return m.match(pattern)
}

// special are the characters with a meaning in patterns.
const special = `*?[\`

// matcher counts the names that it looks at.
type matcher struct {
	files Files
	names int
}

func (m *matcher) match(pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, special) {
		if _, err := m.files.lstat(pattern); err != nil {
			return nil, fatal(err)
		}
		return []string{pattern}, nil
	}
	dir, base := filepath.Split(pattern)
	dirs := []string{parentOf(dir)}
	if strings.ContainsAny(dir, special) && dir != pattern {
		var err error
		if dirs, err = m.match(parentOf(dir)); err != nil {
			return nil, err
		}
	}
	var found []string
	for _, dir := range dirs {
		names, err := m.in(dir, base)
		if err != nil {
			return nil, err
		}
		found = append(found, names...)
	}
	return found, nil
}

// parentOf returns a folder without the slash at its end.
func parentOf(dir string) string {
	switch dir {
	case "":
		return "."
	case string(filepath.Separator):
		return dir
	}
	return strings.TrimSuffix(dir, string(filepath.Separator))
}

// in returns the paths in a folder whose last name matches a pattern.
func (m *matcher) in(dir, pattern string) ([]string, error) {
	entries, err := m.entries(dir, pattern)
	if err != nil {
		return nil, fatal(err)
	}
	m.names += len(entries)
	if err := m.files.fs.checkNames(dir, m.names); err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		// a long pattern takes 0.1 s for a name
		if err := m.files.Ended(dir); err != nil {
			return nil, err
		}
		if ok, _ := filepath.Match(pattern, e.Name()); ok {
			found = append(found, Join(dir, e.Name()))
		}
	}
	return found, nil
}

// entries returns the entries of a folder that may match a pattern.
func (m *matcher) entries(dir, pattern string) ([]fs.DirEntry, error) {
	if IsRemote(dir) {
		return m.files.readDirRemote(dir, pattern[:max(strings.IndexAny(pattern, special), 0)])
	}
	info, err := m.files.Stat(dir)
	if err != nil || !info.IsDir() {
		return nil, err
	}
	return m.files.ReadDir(dir)
}

// fatal returns the errors that end a search. Other errors only mean that nothing is found.
func fatal(err error) error {
	code := status.CodeOf(err)
	if code == status.ResourceExhausted || code == status.Cancelled || code == status.DeadlineExceeded {
		return err
	}
	return nil
}

func sortEntries(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
}
