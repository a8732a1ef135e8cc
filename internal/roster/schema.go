package roster

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaID is where the schema is published, for the comment that editors look for in the first line of a file.
const schemaID = "https://raw.githubusercontent.com/outlive-mcp/outlive/main/schema/registry.schema.json"

// Schema is the JSON Schema (draft 2020-12) of registry.yaml version 2, made from the table that the reader uses. It is
// stricter about unknown keys than the reader, which only warns: an editor is where a slip is best shown.
func Schema() ([]byte, error) {
	r := &reader{roster: &Roster{}, home: "~"}
	s := objectSchema(rootKeys(r))
	s.Schema, s.ID, s.Title = "https://json-schema.org/draft/2020-12/schema", schemaID, "registry.yaml"
	s.Description = "The agents that `outlive monitor` keeps alive."
	agent := &Agent{}
	s.Defs = map[string]*jsonschema.Schema{"agent": objectSchema(append(ownKeys(agent, "~"), agentKeys(agent, "~")...))}
	s.Type, s.Types = "object", nil
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(s); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return out.Bytes(), nil
}

func objectSchema(keys []key) *jsonschema.Schema {
	o := &jsonschema.Schema{Types: []string{"object", "null"}, Properties: map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
		PatternProperties:    map[string]*jsonschema.Schema{"^x-": {Description: "for anchors and notes"}}}
	for _, k := range keys {
		s := k.shape.schema()
		s.Description = k.doc
		o.Properties[k.name] = s
		o.PropertyOrder = append(o.PropertyOrder, k.name)
		if other := camel(k.name); other != k.name {
			o.PatternProperties["^"+other+"$"] = &jsonschema.Schema{Description: "the same as " + k.name}
		}
		if k.required {
			o.Required = append(o.Required, k.name)
		}
	}
	return o
}
