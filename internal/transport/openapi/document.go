// Package openapi describes an HTTP API in OpenAPI 3.1, from a table of its operations and from the
// Go types and protocol buffers of their requests and responses. It has a page for browsers that
// shows the description.
//
// Nothing is computed before the first request for the description.
package openapi

import (
	"encoding/json"
	"strconv"
	"strings"
)

// API is an HTTP API.
type API struct {
	Title, Version, Description string
	Operations                  []Operation
	// Error is a value of the type of the answers to requests that fail.
	Error any
}

// Operation is one method of one path.
type Operation struct {
	Method, Path string
	ID           string // operationId: the name of the method in generated clients
	Tag          string // operations with a tag are shown together
	Summary      string // one line
	Description  string
	Parameters   []Parameter // in the path by their names; others in the query or in headers
	Request      any         // a value of the type of the body; nil for none
	Response     any         // a value of the type of the answer
	// Binary marks an operation whose request and answer may also be bytes after JSON.
	Binary bool
	// Text is the media type of an answer that is no JSON; "" for JSON.
	Text string
	// Codes are further statuses of answers of the type Response.
	Codes []int
	// Failures are the statuses of errors; all if there are none.
	Failures []int
}

// Parameter is a parameter of an operation.
type Parameter struct {
	Name, In    string // In is "path", "query" or "header"
	Description string
	Type        string   // of JSON Schema; "string" if it is empty
	Format      string   // such as "int64"
	Enum        []string // allowed values, if not empty
	Pattern     string
}

type object = map[string]any

// Document returns the description as JSON.
func (a *API) Document() ([]byte, error) {
	s := &schemas{components: object{}}
	paths := object{}
	for i := range a.Operations {
		o := &a.Operations[i]
		path, _ := paths[o.Path].(object)
		if path == nil {
			path = object{}
			paths[o.Path] = path
		}
		path[strings.ToLower(o.Method)] = a.operation(o, s)
	}
	return json.MarshalIndent(object{
		"openapi":    "3.1.0",
		"info":       object{"title": a.Title, "version": a.Version, "description": a.Description, "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"servers":    []any{object{"url": "/"}},
		"paths":      paths,
		"components": object{"schemas": s.components},
	}, "", " ")
}

func (a *API) operation(o *Operation, s *schemas) object {
	out := object{"operationId": o.ID, "summary": o.Summary, "tags": []string{o.Tag}}
	if o.Description != "" {
		out["description"] = o.Description
	}
	var parameters []any
	for _, p := range o.Parameters {
		parameters = append(parameters, p.object())
	}
	if o.Binary {
		parameters = append(parameters, Parameter{
			Name: JSONLength, In: "header", Type: "integer", Format: "int64",
			Description: "Size of the JSON in bytes, if the body is JSON and then the bytes of tensors.",
		}.object())
	}
	if parameters != nil {
		out["parameters"] = parameters
	}
	if o.Request != nil {
		content := object{"application/json": object{"schema": s.of(o.Request)}}
		if o.Binary {
			content[Bytes] = object{"schema": object{"type": "string", "format": "binary"}}
		}
		out["requestBody"] = object{"required": true, "content": content}
	}
	var content object
	if o.Text != "" {
		content = object{o.Text: object{"schema": object{"type": "string"}}}
	} else {
		content = object{"application/json": object{"schema": s.of(o.Response)}}
	}
	answer := object{"description": "the answer", "content": content}
	if o.Binary {
		content[Bytes] = object{"schema": object{"type": "string", "format": "binary"}}
		answer["headers"] = object{JSONLength: object{
			"description": "Size of the JSON before the bytes of tensors.", "schema": object{"type": "integer", "format": "int64"},
		}}
	}
	responses := object{"200": answer}
	for _, code := range o.Codes {
		responses[strconv.Itoa(code)] = answer
	}
	failure := object{"description": "an error", "content": object{"application/json": object{"schema": s.of(a.Error)}}}
	if len(o.Failures) == 0 {
		responses["default"] = failure
	}
	for _, code := range o.Failures {
		responses[strconv.Itoa(code)] = failure
	}
	out["responses"] = responses
	return out
}

func (p Parameter) object() object {
	schema := object{"type": "string"}
	if p.Type != "" {
		schema["type"] = p.Type
	}
	if p.Format != "" {
		schema["format"] = p.Format
	}
	if p.Pattern != "" {
		schema["pattern"] = p.Pattern
	}
	if len(p.Enum) > 0 {
		schema["enum"] = p.Enum
	}
	if p.In == "path" && schema["type"] == "string" {
		schema["minLength"] = 1
	}
	return object{"name": p.Name, "in": p.In, "required": p.In == "path", "description": p.Description, "schema": schema}
}

// Bodies with bytes after JSON.
const (
	// Bytes is their media type.
	Bytes = "application/octet-stream"
	// JSONLength is the header with the size of the JSON.
	JSONLength = "Json-Length"
)

// Match returns the parameters in a path that matches that of an operation.
func (o *Operation) Match(path string) (values map[string]string, ok bool) {
	want := o.Path
	for {
		i := strings.IndexByte(want, '{')
		if i < 0 {
			return values, want == path
		}
		if !strings.HasPrefix(path, want[:i]) {
			return nil, false
		}
		end := i + strings.IndexByte(want[i:], '}')
		name := want[i+1 : end]
		path, want = path[i:], want[end+1:]
		stop := strings.IndexByte(path, '/')
		if stop < 0 {
			stop = len(path)
		}
		if stop == 0 {
			return nil, false
		}
		if values == nil {
			values = map[string]string{}
		}
		values[name], path = path[:stop], path[stop:]
	}
}
