package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"path/filepath"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// billOfMaterials lists the modules of a program, as the program itself records them.
func (r *release) billOfMaterials(program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	name := filepath.Base(program)
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.date.Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: "weft", Type: cdx.ComponentTypeApplication, Name: name, Version: r.version,
			PackageURL: "pkg:golang/" + info.Main.Path + "@" + r.version,
		},
	}
	components := []cdx.Component{{
		BOMRef: "std", Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion, PackageURL: "pkg:golang/std@" + info.GoVersion[len("go"):],
	}}
	needs := []string{"std"}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return fmt.Errorf("%s: the module %s is replaced", name, m.Path)
		}
		ref := "pkg:golang/" + m.Path + "@" + m.Version
		components = append(components, cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: ref})
		needs = append(needs, ref)
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: "weft", Dependencies: &needs}}
	var text bytes.Buffer
	encoder := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	if err := encoder.Encode(bom); err != nil {
		return err
	}
	return r.add(name+".cdx.json", text.Bytes())
}
