package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/status"
)

// Parse parses and validates a cluster in either form of the flag:
//
//	ps|host:port;host:port,worker|host:port
//	{"ps": ["host:port", "host:port"], "worker": {"3": "host:port"}}
func Parse(text string) (Spec, error) {
	text = strings.TrimSpace(text)
	read := parseFlag
	if strings.HasPrefix(text, "{") {
		read = parseJSON
	}
	spec, err := read(text)
	if err != nil {
		return nil, err
	}
	return spec, spec.Validate()
}

func parseFlag(text string) (Spec, error) {
	spec := Spec{}
	for part := range strings.SplitSeq(text, ",") {
		name, tasks, ok := strings.Cut(part, "|")
		if !ok {
			return nil, status.InvalidArgumentf("cannot read %q as a job of the cluster: want JOB|HOST:PORT;HOST:PORT", part)
		}
		name = strings.TrimSpace(name)
		if _, ok := spec[name]; ok {
			return nil, duplicateJob(name)
		}
		job := Job{}
		for address := range strings.SplitSeq(tasks, ";") {
			job[len(job)] = strings.TrimSpace(address)
		}
		spec[name] = job
	}
	return spec, nil
}

func parseJSON(text string) (Spec, error) {
	var spec Spec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return nil, jsonError("the cluster", err)
	}
	return spec, nil
}

// jsonError keeps errors of this package and explains those of the JSON decoder.
func jsonError(what string, err error) error {
	if ours, ok := errors.AsType[*status.Error](err); ok {
		return ours
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field != "" {
			what = strconv.Quote(wrong.Field)
		}
		want := "an object"
		if wrong.Type.Kind() == reflect.String {
			want = "a string"
		}
		return status.InvalidArgumentf("%s is of JSON's type %s, want %s", what, wrong.Value, want)
	}
	return status.InvalidArgumentf("%s is not JSON: %v", what, err)
}

// UnmarshalJSON decodes {"job": tasks, …}, where tasks is a list of addresses or an object from
// index to address. It does not check addresses.
func (s *Spec) UnmarshalJSON(data []byte) error {
	out := Spec{}
	err := eachMember(data, func(name string, value json.RawMessage) error {
		if _, ok := out[name]; ok {
			return duplicateJob(name)
		}
		job, err := parseJob(name, value)
		out[name] = job
		return err
	})
	*s = out
	if _, ours := errors.AsType[*status.Error](err); err != nil && !ours {
		return status.InvalidArgumentf("the cluster must be an object from the name of a job to its tasks")
	}
	return err
}

func parseJob(name string, value json.RawMessage) (Job, error) {
	var dense []string
	if err := json.Unmarshal(value, &dense); err == nil && dense != nil {
		return Dense(dense...), nil
	}
	job := Job{}
	err := eachMember(value, func(key string, value json.RawMessage) error {
		index, err := strconv.ParseInt(key, 10, 32)
		if err != nil || index < 0 {
			return status.InvalidArgumentf("%q is not a task index (job %q)", key, name)
		}
		if _, ok := job[int(index)]; ok {
			return status.InvalidArgumentf("Duplicate task ID in cluster specification: job %s, task %d", name, index)
		}
		var address string
		if err := json.Unmarshal(value, &address); err != nil {
			return status.InvalidArgumentf("the address of task %d of job %q is not a string", index, name)
		}
		job[int(index)] = address
		return nil
	})
	if _, ours := errors.AsType[*status.Error](err); err != nil && !ours {
		return nil, status.InvalidArgumentf("The tasks for job %q must be a list of addresses or an object from task index to address", name)
	}
	return job, err
}

// eachMember calls f for the members of a JSON object, in order. Unlike a map, it shows repeated
// names.
func eachMember(data []byte, f func(name string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return errors.Join(errors.New("not an object"), err)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		key, ok := name.(string)
		if !ok {
			return errors.New("not an object")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// MarshalJSON encodes a job without gaps as a list, and any other as an object.
func (j Job) MarshalJSON() ([]byte, error) {
	dense := make([]string, 0, len(j))
	for pos, i := range j.indices() {
		if i != pos {
			return json.Marshal(map[int]string(j))
		}
		dense = append(dense, j[i])
	}
	return json.Marshal(dense)
}

func (s Spec) json() string {
	out, err := json.Marshal(map[string]Job(s))
	if err != nil { // impossible: the jobs map integers to strings
		return err.Error()
	}
	return string(out)
}
