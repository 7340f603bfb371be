// Command packaging makes the files of a release in a folder: programs for each system, Debian
// packages, an OCI image, a software bill of materials (CycloneDX) for each program, and checksums.
// The same commit gives the same bytes, on any machine and in any folder.
package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// platform is a system and an architecture, in the words of the go command.
type platform struct{ os, arch string }

var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}}

// release is what the files are made of.
type release struct {
	source  string // root of the source code
	out     string // folder of the files
	version string
	stamp   string    // of the program: commit and date
	date    time.Time // of the commit; of all files in packages
	epoch   string    // the same, in seconds
	work    string    // folder for files that are packed
	files   []string  // names of the files of the release
}

// stampVariable is the variable of the program that has the stamp.
const stampVariable = "github.com/weft-ml/weft/internal/sys/buildinfo.stamp"

func main() {
	r := release{}
	flag.StringVar(&r.source, "source", "../..", "root of the source code")
	flag.StringVar(&r.out, "out", "dist", "folder of the files, which is emptied first")
	flag.Parse()
	if err := r.make(); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func (r *release) make() error {
	if err := r.describe(); err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "weft-packaging-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r.work = work
	programs := map[platform]string{}
	for _, p := range platforms {
		if programs[p], err = r.build(p); err != nil {
			return err
		}
		if err := r.billOfMaterials(programs[p]); err != nil {
			return err
		}
	}
	host, ok := programs[platform{runtime.GOOS, runtime.GOARCH}]
	if !ok {
		return fmt.Errorf("a release cannot be made on %s/%s: no program for it documents itself", runtime.GOOS, runtime.GOARCH)
	}
	if err := r.document(host); err != nil {
		return err
	}
	for _, p := range platforms {
		if p.os == "linux" {
			if err := r.debian(p, programs[p]); err != nil {
				return err
			}
		}
	}
	if err := r.image(programs); err != nil {
		return err
	}
	return r.checksums()
}

// describe finds out what is released.
func (r *release) describe() error {
	var err error
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	log, err := r.git("log", "-1", "--format=%h %cI %ct")
	if err != nil {
		return err
	}
	words := strings.Fields(log)
	if len(words) != 3 {
		return fmt.Errorf("git says %q", log)
	}
	r.stamp, r.epoch = words[0]+" "+words[1], words[2]
	if r.date, err = time.Parse(time.RFC3339, words[1]); err != nil {
		return err
	}
	r.date = r.date.UTC()
	if _, err := r.git("diff", "--quiet", "HEAD"); err != nil {
		r.stamp += " modified"
	}
	tag, err := r.git("describe", "--tags", "--match", "v*", "--abbrev=0")
	if err != nil {
		tag = "v0.0.0" // no release yet
	}
	r.version = strings.TrimPrefix(tag, "v") + "+" + r.date.Format("20060102") + "." + words[0]
	if exact, err := r.git("describe", "--tags", "--match", "v*", "--exact-match"); err == nil {
		r.version = strings.TrimPrefix(exact, "v")
	}
	return nil
}

func (r *release) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.source
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// build builds the program for a platform, and returns its path.
func (r *release) build(p platform) (string, error) {
	name := fmt.Sprintf("weft-%s-%s", p.os, p.arch)
	path := filepath.Join(r.out, name)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid= -X '"+stampVariable+"="+r.stamp+"'", "-o", path, "./cmd/weft")
	cmd.Dir = r.source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	r.files = append(r.files, name)
	return path, nil
}

// document writes the manual and the completions of shells into the work folder.
func (r *release) document(program string) error {
	for file, args := range map[string][]string{
		"weft.1": {"man"}, "weft.bash": {"completion", "bash"}, "weft.zsh": {"completion", "zsh"}, "weft.fish": {"completion", "fish"},
	} {
		cmd := exec.Command(program, args...)
		text, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("weft %s: %w", strings.Join(args, " "), err)
		}
		if err := os.WriteFile(filepath.Join(r.work, file), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// add writes a file of the release.
func (r *release) add(name string, content []byte) error {
	r.files = append(r.files, name)
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

// checksums writes SHA256SUMS, which "sha256sum -c" checks.
func (r *release) checksums() error {
	var sums bytes.Buffer
	slices.Sort(r.files)
	for _, name := range r.files {
		content, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
	}
	return r.add("SHA256SUMS", sums.Bytes())
}
