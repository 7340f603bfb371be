package models

import (
	"os"
	"slices"
	"strconv"

	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/savedmodel"
)

// found are the versions in a folder: the names of their folders.
type found map[int64]string

// versions returns the versions below a folder: the folders whose names are decimal numbers. A
// folder that is a model itself is version 1.
func versions(base string) (found, error) {
	if savedmodel.IsModel(base) {
		return found{1: "."}, nil
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil, err
	}
	out := found{}
	for _, e := range entries {
		v, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil || v < 0 || e.Name()[0] == '+' || e.Name()[0] == '-' {
			continue
		}
		if _, twice := out[v]; twice {
			continue // "1" and "01" agree
		}
		if e.IsDir() || e.Type()&os.ModeSymlink != 0 && isFolder(base+"/"+e.Name()) {
			out[v] = e.Name()
		}
	}
	return out, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// choose returns the versions that a policy wants, lowest first.
func choose(have found, policy *servingpb.FileSystemStoragePathSourceConfig_ServableVersionPolicy) []int64 {
	var all []int64
	for v := range have {
		all = append(all, v)
	}
	slices.Sort(all)
	switch p := policy.GetPolicyChoice().(type) {
	case *servingpb.FileSystemStoragePathSourceConfig_ServableVersionPolicy_All_:
		return all
	case *servingpb.FileSystemStoragePathSourceConfig_ServableVersionPolicy_Specific_:
		return slices.DeleteFunc(all, func(v int64) bool { return !slices.Contains(p.Specific.GetVersions(), v) })
	}
	n := max(1, int(policy.GetLatest().GetNumVersions()))
	return all[max(0, len(all)-n):]
}
