package registry

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/outlive-mcp/outlive/internal/files/schema"
)

// schemaID is the URL where the schema is published, for the comment in a file's first line by which editors find it.
const schemaID = "https://raw.githubusercontent.com/outlive-mcp/outlive/main/schema/registry.schema.json"

// Schema is the JSON Schema (draft 2020-12) of registry.yaml version 2, made from the table that the reader uses. It
// rejects unknown keys, as the reader does.
func Schema() ([]byte, error) {
	r := &reader{result: &Registry{}, home: "~"}
	made := object(r.rootKeys()...).JSON(false)
	made.Type, made.Types = "object", nil
	made.Defs = map[string]*jsonschema.Schema{"agent": object(r.keysOfAgent(&Agent{})...).JSON(false)}
	return schema.Document(made, schemaID, "registry.yaml", "The agents that `outlive monitor` keeps alive.")
}
