package dataservice

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

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
	tasks      map[int64]*task
	clients    map[int64]*client
	last       int64 // last number that was given to a job, iteration, task or client
	datasetIDs int64 // number of datasets that were registered without a name
}

type dataset struct {
	ID       string
	Graph    []byte // serialized GraphDef
	Metadata []byte // serialized DataServiceMetadata
}

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
}

// iteration is a repetition of a job.
type iteration struct {
	ID, Job, Repetition int64
	Sources             []source // of a dynamic iteration
	tasks               []*task
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
		iterations: map[int64]*iteration{}, tasks: map[int64]*task{}, clients: map[int64]*client{}, datasetIDs: firstDataset,
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
		s.datasets[u.Dataset.ID] = u.Dataset
	case u.Worker != nil:
		u.Worker.seen = now
		s.workers[u.Worker.Address] = u.Worker
	case u.Job != nil:
		s.jobs[u.Job.ID] = u.Job
		if u.Job.Name != "" {
			s.byName[u.Job.Name] = u.Job
		}
		s.last = max(s.last, u.Job.ID)
	case u.Iteration != nil:
		u.Iteration.idle = now
		s.iterations[u.Iteration.ID] = u.Iteration
		s.last = max(s.last, u.Iteration.ID)
	case u.Task != nil:
		s.tasks[u.Task.ID] = u.Task
		if it := s.iterations[u.Task.Iteration]; it != nil {
			it.tasks = append(it.tasks, u.Task)
		}
		s.last = max(s.last, u.Task.ID)
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
		s.drop(u.Drop)
	case u.Split != nil:
		if it := s.iterations[u.Split.Iteration]; it != nil && u.Split.Source < len(it.Sources) {
			it.Sources[u.Split.Source].take(u.Split.Repetition)
		}
	}
}

// end ends a task. An iteration has finished when all of its tasks have, and one of them completed.
func (s *state) end(id int64, removed bool) {
	t := s.tasks[id]
	if t == nil {
		return
	}
	t.finished, t.removed = true, removed
	it := s.iterations[t.Iteration]
	if it == nil {
		return
	}
	completed := false
	for _, t := range it.tasks {
		if !t.finished {
			return
		}
		completed = completed || !t.removed
	}
	it.finished = completed
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

func (s *state) drop(id int64) {
	it := s.iterations[id]
	if it == nil {
		return
	}
	for _, t := range it.tasks {
		delete(s.tasks, t.ID)
	}
	delete(s.iterations, id)
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
