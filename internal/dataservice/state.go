package dataservice

import (
	"container/list"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tfrecord"
)

// state is what a dispatcher knows. Updates alone change what must survive a restart.
type state struct {
	datasets   map[string]*dataset
	workers    map[string]*workerState // by address
	jobs       map[int64]*job
	byName     map[string]*job
	iterations map[int64]*iteration
	repeated   map[repetition]*iteration // the same, by job and repetition
	tasks      map[int64]*task
	byWorker   map[string]map[int64]*task // the same, by the address of their workers
	clients    map[int64]*client
	last       int64 // last number that was given to a job, iteration, task or client
	datasetIDs int64 // number of the next dataset that is registered without a name

	datasetBytes int64 // size of all datasets
	// datasets that may be forgotten, because they have no name and no job uses them; the one that
	// has been unused for longest is first
	unused *list.List
}

type dataset struct {
	ID       string
	Graph    []byte // serialized GraphDef
	Metadata []byte // serialized DataServiceMetadata
	Unnamed  bool   `json:",omitempty"` // the dispatcher has chosen the ID

	wire    []byte        // serialized DatasetDef; Graph is a part of it
	sources []source      // of dynamic iterations; nil until the first one
	unsplit error         // why it has no sources
	jobs    int           // that use it
	unused  *list.Element // in state.unused; nil if it must stay
}

// datasetOverhead is about the memory of a dataset without its content, in bytes.
const datasetOverhead = 500

func (s *dataset) bytes() int64 {
	return int64(len(s.ID)+len(s.Graph)+len(s.Metadata)) + datasetOverhead
}

// repetition names an iteration.
type repetition struct{ job, number int64 }

type workerState struct {
	Address string
	UID     int64
	Tags    []string
	Servers []transferServer
	seen    time.Time // last heartbeat
}

// transferServer is an address at which a worker hands out elements by a protocol.
type transferServer struct{ Protocol, Address string }

type job struct {
	ID        int64
	Name      string // "" for a job of one client
	Dataset   string
	Policy    int32
	Consumers int64 // of coordinated reads; 0 for others
	Target    int32

	iterations int       // that have not been dropped
	idle       time.Time // since when it has none
}

// same reports whether two jobs of one name have the same parameters. The first dataset counts:
// every client registers its dataset anew.
func (j *job) same(k *job) bool {
	return j.Policy == k.Policy && j.Consumers == k.Consumers && j.Target == k.Target
}

// iteration is a repetition of a job.
type iteration struct {
	ID, Job, Repetition int64
	Sources             []source // of a dynamic iteration
	tasks               []*task
	open                int  // tasks that have not ended
	completed           bool // a task has produced all of its elements
	clients             int
	finished            bool
	idle                time.Time // since when it has no client
}

// source is a part of a dataset that is divided into splits: the numbers Start, Start+Step, ...
type source struct {
	Start, Step, Count int64
	repetition, next   int64
}

type task struct {
	ID, Iteration int64
	Worker        string
	finished      bool
	removed       bool
}

type client struct {
	ID, Iteration int64
	seen          time.Time
}

func newState() *state {
	return &state{
		datasets: map[string]*dataset{}, workers: map[string]*workerState{}, jobs: map[int64]*job{}, byName: map[string]*job{},
		iterations: map[int64]*iteration{}, repeated: map[repetition]*iteration{}, tasks: map[int64]*task{},
		byWorker: map[string]map[int64]*task{}, clients: map[int64]*client{}, datasetIDs: firstDataset, unused: list.New(),
	}
}

// firstDataset is the number of the first dataset without a name, as in TensorFlow.
const firstDataset = 1000

// update is one change of the state. One field is set.
type update struct {
	Dataset   *dataset      `json:",omitempty"`
	Worker    *workerState  `json:",omitempty"`
	Job       *job          `json:",omitempty"`
	Iteration *iteration    `json:",omitempty"`
	Task      *task         `json:",omitempty"`
	Client    *client       `json:",omitempty"`
	Finish    int64         `json:",omitempty"` // task that has ended
	Remove    int64         `json:",omitempty"` // task whose worker has gone
	Release   int64         `json:",omitempty"` // client that has ended
	Drop      int64         `json:",omitempty"` // iteration without clients
	DropJob   int64         `json:",omitempty"` // job without iterations
	Forget    string        `json:",omitempty"` // dataset that no job uses
	Split     *splitRequest `json:",omitempty"`
}

// splitRequest is a request for the next split of a source.
type splitRequest struct {
	Iteration, Repetition int64
	Source                int
}

// apply changes the state.
func (s *state) apply(u *update, now time.Time) {
	switch {
	case u.Dataset != nil:
		s.addDataset(u.Dataset)
	case u.Worker != nil:
		u.Worker.seen = now
		s.workers[u.Worker.Address] = u.Worker
	case u.Job != nil:
		s.addJob(u.Job, now)
	case u.Iteration != nil:
		s.addIteration(u.Iteration, now)
	case u.Task != nil:
		s.addTask(u.Task)
	case u.Client != nil:
		u.Client.seen = now
		s.clients[u.Client.ID] = u.Client
		if it := s.iterations[u.Client.Iteration]; it != nil {
			it.clients++
		}
		s.last = max(s.last, u.Client.ID)
	case u.Finish != 0:
		s.end(u.Finish, false)
	case u.Remove != 0:
		s.end(u.Remove, true)
	case u.Release != 0:
		s.release(u.Release, now)
	case u.Drop != 0:
		s.drop(u.Drop, now)
	case u.DropJob != 0:
		s.dropJob(u.DropJob)
	case u.Forget != "":
		s.forget(u.Forget)
	case u.Split != nil:
		if it := s.iterations[u.Split.Iteration]; it != nil && u.Split.Source < len(it.Sources) {
			it.Sources[u.Split.Source].take(u.Split.Repetition)
		}
	}
}

// addDataset adds a dataset. Its graph is kept in the form in which it is sent, so that it need not
// be decoded.
func (s *state) addDataset(d *dataset) {
	d.wire = protowire.AppendVarint(protowire.AppendTag(nil, datasetGraph, protowire.BytesType), uint64(len(d.Graph)))
	d.wire = append(d.wire, d.Graph...)
	d.Graph = d.wire[len(d.wire)-len(d.Graph):]
	s.datasets[d.ID] = d
	s.datasetBytes += d.bytes()
	if !d.Unnamed {
		return
	}
	d.unused = s.unused.PushBack(d)
	// the ID of a dataset that was forgotten is not given to another one
	if n, err := strconv.ParseInt(d.ID, 10, 64); err == nil {
		s.datasetIDs = max(s.datasetIDs, n+1)
	}
}

// datasetGraph is the number of the field graph of the message DatasetDef.
const datasetGraph protowire.Number = 1

func (s *state) forget(id string) {
	d := s.datasets[id]
	if d == nil {
		return
	}
	s.keep(d)
	s.datasetBytes -= d.bytes()
	delete(s.datasets, id)
}

// keep takes a dataset off the list of those that are not used.
func (s *state) keep(d *dataset) {
	if d.unused != nil {
		s.unused.Remove(d.unused)
		d.unused = nil
	}
}

func (s *state) addJob(j *job, now time.Time) {
	j.idle = now
	s.jobs[j.ID] = j
	if j.Name != "" {
		s.byName[j.Name] = j
	}
	if d := s.datasets[j.Dataset]; d != nil {
		d.jobs++
		s.keep(d)
	}
	s.last = max(s.last, j.ID)
}

func (s *state) dropJob(id int64) {
	j := s.jobs[id]
	if j == nil {
		return
	}
	delete(s.jobs, id)
	if s.byName[j.Name] == j {
		delete(s.byName, j.Name)
	}
	if d := s.datasets[j.Dataset]; d != nil {
		if d.jobs--; d.jobs == 0 && d.Unnamed {
			d.unused = s.unused.PushBack(d)
		}
	}
}

func (s *state) addIteration(it *iteration, now time.Time) {
	it.idle = now
	s.iterations[it.ID] = it
	s.repeated[repetition{it.Job, it.Repetition}] = it
	if j := s.jobs[it.Job]; j != nil {
		j.iterations++
	}
	s.last = max(s.last, it.ID)
}

func (s *state) addTask(t *task) {
	s.tasks[t.ID] = t
	if it := s.iterations[t.Iteration]; it != nil {
		it.tasks = append(it.tasks, t)
		it.open++
	}
	of := s.byWorker[t.Worker]
	if of == nil {
		of = map[int64]*task{}
		s.byWorker[t.Worker] = of
	}
	of[t.ID] = t
	s.last = max(s.last, t.ID)
}

// end ends a task. An iteration has finished when all of its tasks have, and one of them completed.
func (s *state) end(id int64, removed bool) {
	t := s.tasks[id]
	if t == nil || t.finished {
		return
	}
	t.finished, t.removed = true, removed
	it := s.iterations[t.Iteration]
	if it == nil {
		return
	}
	it.open--
	it.completed = it.completed || !removed
	it.finished = it.open == 0 && it.completed
}

func (s *state) release(id int64, now time.Time) {
	c := s.clients[id]
	if c == nil {
		return
	}
	delete(s.clients, id)
	if it := s.iterations[c.Iteration]; it != nil {
		it.clients--
		it.idle = now
	}
}

func (s *state) drop(id int64, now time.Time) {
	it := s.iterations[id]
	if it == nil {
		return
	}
	for _, t := range it.tasks {
		delete(s.tasks, t.ID)
		of := s.byWorker[t.Worker]
		if delete(of, t.ID); len(of) == 0 {
			delete(s.byWorker, t.Worker)
		}
	}
	delete(s.iterations, id)
	delete(s.repeated, repetition{it.Job, it.Repetition})
	if j := s.jobs[it.Job]; j != nil {
		j.iterations--
		j.idle = now
	}
}

// take returns the next split of a repetition, false after the last one.
func (s *source) take(repetition int64) (split int64, ok bool) {
	if repetition > s.repetition {
		s.repetition, s.next = repetition, 0
	}
	if repetition < s.repetition || s.next >= s.Count {
		return 0, false
	}
	split = s.Start + s.next*s.Step
	s.next++
	return split, true
}

// journal is a file with all updates.
type journal struct {
	file *os.File
	out  *tfrecord.Writer
}

// journalName is the name of the journal in the folder of a dispatcher.
const journalName = "journal.tfrecord"

// openJournal applies the updates of a journal to a state, and opens it for more. A record that was
// not written completely is the end of the journal.
func openJournal(dir string, s *state, now time.Time) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, status.Internalf("the folder of the journal: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, journalName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, status.Internalf("the journal: %w", err)
	}
	j := &journal{file: f}
	size, err := j.replay(s, now)
	if err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		_, err = f.Seek(size, io.SeekStart)
	}
	if err == nil {
		j.out, err = tfrecord.NewWriter(f, tfrecord.None)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

// recordOverhead is the size of a record without its content.
const recordOverhead = 16

func (j *journal) replay(s *state, now time.Time) (size int64, err error) {
	r, err := tfrecord.NewReader(j.file, tfrecord.None)
	if err != nil {
		return 0, err
	}
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) || status.CodeOf(err) == status.DataLoss {
			return size, nil
		}
		if err != nil {
			return size, err
		}
		u := &update{}
		if err := json.Unmarshal(b, u); err != nil {
			return size, status.DataLossf("an entry of the journal cannot be read: %v", err)
		}
		s.apply(u, now)
		size += int64(len(b)) + recordOverhead
	}
}

func (j *journal) write(u *update) error {
	b, err := json.Marshal(u)
	if err != nil {
		return status.Internalf("an entry of the journal cannot be written: %v", err)
	}
	if err := j.out.Write(b); err != nil {
		return err
	}
	return j.out.Flush()
}

func (j *journal) close() { j.file.Close() }
