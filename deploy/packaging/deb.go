package main

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// debian makes the Debian package of a platform.
func (r *release) debian(p platform, program string) error {
	asset := func(name string) string { return filepath.Join(r.source, "deploy", "packaging", "debian", name) }
	file := func(source, to string, mode os.FileMode) *files.Content {
		return &files.Content{Source: source, Destination: to, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.date, Owner: "root", Group: "root"}}
	}
	configuration := file(asset("server.yaml"), "/etc/weft/server.yaml", 0o644)
	configuration.Type = files.TypeConfigNoReplace
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "weft", Arch: p.arch, Platform: "linux", Version: r.version, VersionSchema: "none", Section: "science", Priority: "optional",
		Maintainer: "Weft <weft@users.noreply.github.com>", Homepage: "https://github.com/weft-ml/weft", MTime: r.date,
		Description: "TensorFlow's distributed runtime in Go\nParameter servers, workers and a model server that are compatible with\nTensorFlow's clients.",
		Overridables: nfpm.Overridables{
			Scripts: nfpm.Scripts{PostInstall: asset("postinst"), PreRemove: asset("prerm")},
			Contents: files.Contents{
				file(program, "/usr/bin/weft", 0o755),
				file(asset("weft.service"), "/lib/systemd/system/weft.service", 0o644),
				configuration,
				file(filepath.Join(r.work, "weft.1"), "/usr/share/man/man1/weft.1", 0o644),
				file(filepath.Join(r.work, "weft.bash"), "/usr/share/bash-completion/completions/weft", 0o644),
				file(filepath.Join(r.work, "weft.zsh"), "/usr/share/zsh/vendor-completions/_weft", 0o644),
				file(filepath.Join(r.work, "weft.fish"), "/usr/share/fish/vendor_completions.d/weft.fish", 0o644),
				file(filepath.Join(r.source, "LICENSE"), "/usr/share/doc/weft/copyright", 0o644),
			},
		},
	})
	var out bytes.Buffer
	if err := deb.Default.Package(info, &out); err != nil {
		return err
	}
	return r.add("weft_"+p.arch+".deb", out.Bytes())
}
