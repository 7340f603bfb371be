package data

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// fileCacheDataset caches the elements of its input in files in the checkpoint format with
// TensorFlow's names. During writing, each saved state of the iterator starts new files: prefix_0,
// prefix_1 and so on. At the end of the input they are merged into one.
type fileCacheDataset struct {
	stage
	files  fileio.Files
	prefix string
}

func (d *fileCacheDataset) complete() bool { return d.files.Exists(checkpoint.IndexFile(d.prefix)) }

func (d *fileCacheDataset) part(i int64) string { return d.prefix + "_" + strconv.FormatInt(i, 10) }

func lockFile(part string) string { return part + ".lockfile" }

// key returns the key of component k of element i.
func (d *fileCacheDataset) key(i int64, k int) string {
	width := len(strconv.Itoa(max(len(d.types)-1, 0)))
	// 7 digits: TensorFlow caches at most ten million elements
	return fmt.Sprintf("%7d_%*d", i, width, k)
}

func (d *fileCacheDataset) iterate(r *run) (iterator, error) {
	it := &fileCacheIterator{d: d, writing: !d.complete()}
	if !it.writing {
		return it, nil
	}
	var err error
	it.input, err = open(r, d.input)
	return it, err
}

// fileCacheIterator reads the files if they are complete when it starts, and writes them otherwise.
type fileCacheIterator struct {
	d        *fileCacheDataset
	writing  bool
	input    iterator // nil when reading
	i        int64    // index of the next element
	shard    int64    // index of the files being written
	finished bool     // all elements are written

	mu     sync.Mutex
	reader *checkpoint.Reader // guarded by mu; nil before the first element
	writer *checkpoint.Writer // guarded by mu; nil before the first element of a shard
	// cancels the cleanup that closes the files; guarded by mu
	cancelCleanup func()
}

func (it *fileCacheIterator) next(r *run) (element, error) {
	it.mu.Lock()
	defer it.mu.Unlock()
	if !it.writing {
		return it.read(r)
	}
	if it.finished {
		return nil, errEnd
	}
	if it.writer == nil {
		if err := it.open(r); err != nil {
			return nil, err
		}
	}
	e, err := it.input.next(r)
	if errors.Is(err, errEnd) {
		if err := it.finish(); err != nil {
			return nil, err
		}
		return nil, errEnd
	}
	if err != nil {
		return nil, err
	}
	for k := range e {
		if err := it.writer.Add(it.d.key(it.i, k), &e[k]); err != nil {
			e.release()
			return nil, err
		}
	}
	it.i++
	return e, nil
}

// read returns the next element from the files. The caller holds mu.
func (it *fileCacheIterator) read(r *run) (element, error) {
	if it.reader == nil {
		var err error
		if it.reader, err = checkpoint.In(it.d.files.In(r.lifetime)).Open(it.d.prefix); err != nil {
			return nil, err
		}
		it.cancelCleanup = r.cleanups.add(it.abandon)
	}
	if _, err := it.reader.Lookup(it.d.key(it.i, 0)); err != nil {
		return nil, errEnd
	}
	e := element(membudget.Make[tensor.Tensor](len(it.d.types)))
	for k := range e {
		t, err := it.reader.Read(it.d.key(it.i, k))
		if err != nil {
			e.release()
			return nil, err
		}
		e[k] = t
	}
	it.i++
	return e, nil
}

// open creates new files, unless another iterator is writing them. The caller holds mu.
func (it *fileCacheIterator) open(r *run) error {
	part := it.d.part(it.shard)
	if index := checkpoint.IndexFile(part); it.d.files.Exists(index) {
		return status.AlreadyExistsf("Existing cache files found: \n%s\n%s\nTo continue delete the above files.",
			index, checkpoint.DataFile(part, 0, 1))
	}
	lock := lockFile(part)
	f, err := it.d.files.CreateNew(lock)
	if status.CodeOf(err) == status.AlreadyExists {
		contents, _ := it.d.files.Read(lock)
		return status.AlreadyExistsf("There appears to be a concurrent caching iterator running - cache lockfile already "+
			"exists ('%s'). If you are sure no other running TF computations are using this cache prefix, delete the lockfile and "+
			"re-initialize the iterator. Lockfile contents: %s", lock, contents)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(f, "Created at: %d", time.Now().Unix())
	if err := f.Close(); err != nil {
		return err
	}
	if it.writer, err = checkpoint.In(it.d.files).Create(part); err != nil {
		_ = it.d.files.Remove(lock)
		return err
	}
	it.cancelCleanup = r.cleanups.add(it.abandon)
	return nil
}

// abandon closes the files of an iterator that has ended and removes incomplete ones.
func (it *fileCacheIterator) abandon() {
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.reader != nil {
		it.reader.Close()
	}
	if it.writer != nil {
		it.writer.Abort()
		_ = it.d.files.Remove(lockFile(it.d.part(it.shard)))
		it.writer, it.finished = nil, true
	}
}

// flush finishes the files being written. The caller holds mu.
func (it *fileCacheIterator) flush() error {
	it.cancelCleanup()
	err := it.writer.Close()
	it.writer = nil
	return err
}

// finish merges the parts. The caller holds mu.
func (it *fileCacheIterator) finish() error {
	if err := it.flush(); err != nil {
		return err
	}
	it.finished = true
	parts := membudget.MakeCap[string](it.shard + 1)
	var meter membudget.Meter // the number of parts may be that of a saved state
	for i := range it.shard + 1 {
		part := it.d.part(i)
		meter.MustTake(len(part))
		parts = append(parts, part)
	}
	if err := checkpoint.In(it.d.files).Merge(parts, it.d.prefix, false); err != nil {
		return err
	}
	for _, part := range parts {
		_ = it.d.files.Remove(lockFile(part))
	}
	return nil
}

func (it *fileCacheIterator) state(a *archive) {
	it.mu.Lock()
	defer it.mu.Unlock()
	if !a.loading && it.writer != nil {
		if err := it.flush(); err != nil {
			a.fail(err)
		}
		it.shard++
	}
	a.bool(&it.writing)
	a.int(&it.i)
	a.int(&it.shard)
	a.bool(&it.finished)
	a.iterator(&it.input, func() (iterator, error) { return open(a.run, it.d.input) })
	if it.i < 0 || it.shard < 0 || it.shard > it.i {
		a.fail(status.InvalidArgumentf("the saved state of the iterator has an invalid index or shard: %d, %d", it.i, it.shard))
	}
	if a.loading && it.d.complete() { // another iterator has completed the files since the save
		it.writing = false
	}
}
