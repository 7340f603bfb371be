package models

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
)

// found are the versions in a folder: the names of their folders.
type found map[int64]string

// folders lists the folders of models. It may be used concurrently.
type folders struct {
	mu       sync.Mutex
	complete map[string]found // versions in stores that have a model, by base path; guarded by mu
}

// listTimeout is the time in which a store must list a folder. The loaded versions stay if it does
// not.
const listTimeout = 20 * time.Second

// versions returns the versions below a folder: the folders whose names are decimal numbers. A
// folder that is a model itself is version 1. In a store a version is there when its model is: the
// file of the model is written last.
func (f *folders) versions(ctx context.Context, base string) (found, error) {
	remote := fileio.IsRemote(base)
	if !remote && savedmodel.IsModel(base) {
		return found{1: "."}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	files := fileio.Files{}.In(ctx)
	entries, err := files.ReadDir(base)
	if err != nil {
		return nil, err
	}
	out := found{}
	for _, e := range entries {
		if remote && !e.IsDir() && (e.Name() == "saved_model.pb" || e.Name() == "saved_model.pbtxt") {
			return found{1: "."}, nil
		}
		v, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil || v < 0 || e.Name()[0] == '+' || e.Name()[0] == '-' {
			continue
		}
		if _, twice := out[v]; twice {
			continue // "1" and "01" agree
		}
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 && isFolder(base+"/"+e.Name()) {
			out[v] = e.Name()
		}
	}
	if remote {
		err = f.keepComplete(files, base, out)
	}
	return out, err
}

// keepComplete removes the versions without a model. It does not look again at those that had one.
func (f *folders) keepComplete(files fileio.Files, base string, all found) error {
	f.mu.Lock()
	known := f.complete[base]
	f.mu.Unlock()
	for v, name := range all {
		if known[v] == name {
			continue
		}
		complete := false
		for _, file := range []string{"saved_model.pb", "saved_model.pbtxt"} {
			_, err := files.Stat(fileio.Join(base, name, file))
			if err != nil && status.CodeOf(err) != status.NotFound {
				return err
			}
			complete = complete || err == nil
		}
		if !complete {
			delete(all, v)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.complete == nil {
		f.complete = map[string]found{}
	}
	f.complete[base] = maps.Clone(all)
	return nil
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
