package config

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaID is where the schema is published, for the comment that editors look for in the first line of a file.
const schemaID = "https://raw.githubusercontent.com/outlive-mcp/outlive/main/schema/outlive.schema.json"

// Schema is the JSON Schema (draft 2020-12) of outlive.yaml, made from the table that the reader uses. Policy keys that
// are called like a key of servers are an error: nobody could reach them.
func Schema(keys []PolicyKey) ([]byte, error) {
	own := serverShape(nil)
	for _, k := range keys {
		if own.key(keyOf(k.Name)) != nil {
			return nil, fmt.Errorf("schema: the policy key %s is a key of servers already", k.Name)
		}
	}
	root := rootShape(keys)
	s := schemaOf(root)
	s.Schema, s.ID, s.Title = "https://json-schema.org/draft/2020-12/schema", schemaID, "outlive.yaml"
	s.Description = "What `outlive gateway` serves: many MCP servers behind one endpoint. " +
		"Every text may hold ${env:NAME}, ${env:NAME:-default}, ${file:PATH} and ${input:ID}; $${ is a plain ${."
	server := schemaOf(root.key("servers").shape.of)
	server.OneOf = []*jsonschema.Schema{{Required: []string{"command"}}, {Required: []string{"url"}}}
	server.DependentRequired = map[string][]string{
		"args": {"command"}, "env": {"command"}, "cwd": {"command"}, "headers": {"url"}, "auth": {"url"},
	}
	server.Description = root.key("servers").shape.doc
	s.Defs = map[string]*jsonschema.Schema{"server": server, "reference": {
		Type: "string", Pattern: `\$\{`, Description: "a reference such as ${env:NAME}, for what is no text itself",
	}}
	servers := s.Properties["servers"]
	one := 1
	servers.MinProperties, servers.AdditionalProperties = &one, &jsonschema.Schema{Ref: "#/$defs/server"}
	servers.Type, servers.Types = "object", nil
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(s); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return out.Bytes(), nil
}

// never matches nothing; it is written as false.
func never() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// reference is what may stand for a number, a word, or true and false.
func reference() *jsonschema.Schema { return &jsonschema.Schema{Ref: "#/$defs/reference"} }

func schemaOf(s *shape) *jsonschema.Schema {
	switch s.kind {
	case anObject:
		return objectSchema(s)
	case aDict:
		entries := schemaOf(s.of)
		entries.Description = s.doc
		d := &jsonschema.Schema{Types: []string{"object", "null"}, AdditionalProperties: entries}
		if s.names != nil {
			d.PropertyNames = &jsonschema.Schema{Pattern: s.names.pattern.String()}
		}
		return d
	case aList, aListOrText:
		entries := schemaOf(s.of)
		entries.Description = s.doc
		l := &jsonschema.Schema{Types: []string{"array", "null"}, Items: entries}
		if s.kind == aListOrText {
			return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{l, schemaOf(s.of)}}
		}
		return l
	}
	return scalarSchema(s)
}

func scalarSchema(s *shape) *jsonschema.Schema {
	switch s.kind {
	case aBool:
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "boolean"}, reference()}}
	case aCount:
		least := float64(s.least)
		number := &jsonschema.Schema{Type: "integer", Minimum: &least}
		if s.most > 0 {
			most := float64(s.most)
			number.Maximum = &most
		}
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{number, reference()}}
	case aWord:
		words := make([]any, len(s.words))
		for i, w := range s.words {
			words[i] = w
		}
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Enum: words}, reference()}}
	}
	t := &jsonschema.Schema{Type: "string"}
	if s.loose {
		t.Type, t.Types = "", []string{"string", "number"}
	}
	if s.form != nil && s.form.pattern != nil {
		t.Pattern = `(?:` + s.form.pattern.String() + `)|\$\{`
	}
	return t
}

func objectSchema(s *shape) *jsonschema.Schema {
	o := &jsonschema.Schema{Types: []string{"object", "null"}, Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: never()}
	for _, k := range s.keys {
		value := schemaOf(k.shape)
		value.Description = k.doc
		o.Properties[k.name] = value
		o.PropertyOrder = append(o.PropertyOrder, k.name)
		if k.required {
			o.Required = append(o.Required, k.name)
		}
	}
	if len(o.Required) > 0 {
		o.Type, o.Types = "object", nil
	}
	if s.open {
		o.PatternProperties = map[string]*jsonschema.Schema{"^x-": {Description: "for anchors"}}
	}
	return o
}
