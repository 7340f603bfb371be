package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the user of the program in the image, without rights or a name.
const user = "65532:65532"

// image makes an OCI image for the platforms with Linux: a layout of files in a tar archive, which
// "podman load" and "skopeo copy oci-archive:" read. The image has the program alone.
func (r *release) image(programs map[platform]string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		if p.os != "linux" {
			continue
		}
		img, err := r.platformImage(p, programs[p])
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
	}
	dir := filepath.Join(r.work, "image")
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	archive, err := r.archive(dir)
	if err != nil {
		return err
	}
	return r.add("weft-image.oci.tar", archive)
}

func (r *release) platformImage(p platform, program string) (v1.Image, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777},
		{Typeflag: tar.TypeDir, Name: "usr/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "usr/bin/", Mode: 0o755},
		{Typeflag: tar.TypeReg, Name: "usr/bin/weft", Mode: 0o755, Size: int64(len(content))},
	} {
		h.ModTime, h.Format = r.date, tar.FormatPAX
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9))
	if err != nil {
		return nil, err
	}
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: r.date}, CreatedBy: "weft packaging"}, MediaType: types.OCILayer,
	})
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = p.os, p.arch, v1.Time{Time: r.date}
	commit, _, _ := strings.Cut(r.stamp, " ")
	file.Config = v1.Config{
		User: user, Entrypoint: []string{"/usr/bin/weft"}, Cmd: []string{"server"}, WorkingDir: "/tmp",
		ExposedPorts: map[string]struct{}{"2222/tcp": {}}, StopSignal: "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title": "weft", "org.opencontainers.image.version": r.version,
			"org.opencontainers.image.revision": commit, "org.opencontainers.image.source": "https://github.com/weft-ml/weft",
		},
	}
	return mutate.ConfigFile(img, file)
}

// archive returns a folder as a tar archive, in the order of the names.
func (r *release) archive(dir string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(content)), ModTime: r.date, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil { // writes the end of the archive
		return nil, err
	}
	return out.Bytes(), nil
}
