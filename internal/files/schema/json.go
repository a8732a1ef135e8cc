package schema

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// Reference is the definition that [Shape.JSON] refers to where a reference may be given instead of a number, a word,
// or true and false. A document with references has to define it.
const Reference = "#/$defs/reference"

// ReferencePattern matches texts that contain a reference.
const ReferencePattern = `\$\{`

// JSON is the JSON Schema of a shape. references says that every scalar may contain ${…}.
func (s *Shape) JSON(references bool) *jsonschema.Schema {
	made := s.json(references)
	if s.Alone != nil {
		made = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s.Alone.JSON(references), made}}
	}
	if s.Amend != nil {
		s.Amend(made)
	}
	return made
}

func (s *Shape) json(references bool) *jsonschema.Schema {
	switch s.Kind {
	case Anything:
		return &jsonschema.Schema{}
	case Object:
		return s.objectJSON(references)
	case Dict:
		d := &jsonschema.Schema{Types: []string{"object", "null"}, AdditionalProperties: s.entries(references)}
		if s.Names != nil && s.Names.Pattern != nil {
			d.PropertyNames = &jsonschema.Schema{Pattern: s.Names.Pattern.Compiled().String()}
		}
		return d
	case List, ListOrText:
		l := &jsonschema.Schema{Types: []string{"array", "null"}, Items: s.entries(references)}
		if s.Filled != "" {
			one := 1
			l.Type, l.Types, l.MinItems = "array", nil, &one
		}
		if s.Kind == ListOrText {
			return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{l, s.Of.JSON(references)}}
		}
		return l
	}
	return s.scalarJSON(references)
}

func (s *Shape) entries(references bool) *jsonschema.Schema {
	entries := s.Of.JSON(references)
	entries.Description = s.Doc
	return entries
}

func (s *Shape) scalarJSON(references bool) *jsonschema.Schema {
	var made *jsonschema.Schema
	switch s.Kind {
	case Bool:
		made = &jsonschema.Schema{Type: "boolean"}
	case Count:
		least := float64(s.Least)
		made = &jsonschema.Schema{Type: "integer", Minimum: &least}
		if s.Most > 0 {
			most := float64(s.Most)
			made.Maximum = &most
		}
	case Amount:
		zero := 0.0
		made = &jsonschema.Schema{Type: "number"}
		if made.Minimum = &zero; s.Above {
			made.Minimum, made.ExclusiveMinimum = nil, &zero
		}
	case Word:
		made = Enum(s.Words)
	default:
		return s.textJSON(references)
	}
	if references {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{made, {Ref: Reference}}}
	}
	return made
}

func (s *Shape) textJSON(references bool) *jsonschema.Schema {
	t := &jsonschema.Schema{Type: "string"}
	if s.Loose {
		t.Type, t.Types = "", []string{"string", "number"}
	}
	if s.Form != nil && s.Form.Pattern != nil {
		if t.Pattern = s.Form.Pattern.Compiled().String(); references {
			t.Pattern = `(?:` + t.Pattern + `)|` + ReferencePattern
		}
	}
	return t
}

func (s *Shape) objectJSON(references bool) *jsonschema.Schema {
	o := &jsonschema.Schema{Types: []string{"object", "null"}, Properties: map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}} // written as false
	patterns := map[string]*jsonschema.Schema{}
	if s.Open != "" {
		patterns["^x-"] = &jsonschema.Schema{Description: s.Open}
	}
	for _, k := range s.Keys {
		value := k.Shape.JSON(references)
		value.Description = k.Doc
		o.Properties[k.Name] = value
		o.PropertyOrder = append(o.PropertyOrder, k.Name)
		if k.Also != "" {
			patterns["^"+k.Also+"$"] = &jsonschema.Schema{Description: "the same as " + k.Name}
		}
		if k.Required {
			o.Required = append(o.Required, k.Name)
		}
	}
	if len(patterns) > 0 {
		o.PatternProperties = patterns
	}
	if len(o.Required) > 0 {
		o.Type, o.Types = "object", nil
	}
	return o
}

// Enum is the JSON Schema of a list of words.
func Enum(words []string) *jsonschema.Schema {
	enum := make([]any, len(words))
	for i, w := range words {
		enum[i] = w
	}
	return &jsonschema.Schema{Enum: enum}
}

// Document is a JSON Schema (draft 2020-12) as a file.
func Document(s *jsonschema.Schema, id, title, description string) ([]byte, error) {
	s.Schema, s.ID, s.Title, s.Description = "https://json-schema.org/draft/2020-12/schema", id, title, description
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(s); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return out.Bytes(), nil
}
