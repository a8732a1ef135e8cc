package config

import (
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/outlive-mcp/outlive/internal/files/schema"
)

// schemaID is the URL where the schema is published, for the comment in a file's first line by which editors find it.
const schemaID = "https://raw.githubusercontent.com/outlive-mcp/outlive/main/schema/outlive.schema.json"

// Schema returns the JSON Schema (draft 2020-12) of outlive.yaml, made from the table that the reader uses. A policy
// key with the name of a server's own key is an error, because it could not be set.
func Schema(keys []PolicyKey) ([]byte, error) {
	own := serverShape(nil)
	for _, k := range keys {
		if own.Key(keyOf(k.Name)) != nil {
			return nil, fmt.Errorf("schema: the policy key %s is a key of servers already", k.Name)
		}
	}
	root := rootShape(keys)
	made := root.JSON(true)
	server := root.Key("servers").Shape.Of.JSON(true)
	server.OneOf = []*jsonschema.Schema{{Required: []string{"command"}}, {Required: []string{"url"}}}
	server.DependentRequired = map[string][]string{
		"args": {"command"}, "env": {"command"}, "cwd": {"command"}, "headers": {"url"}, "auth": {"url"},
	}
	server.Description = root.Key("servers").Shape.Doc
	made.Defs = map[string]*jsonschema.Schema{"server": server, "reference": {
		Type: "string", Pattern: schema.ReferencePattern, Description: "a reference such as ${env:NAME}, for values that are not plain text",
	}}
	servers := made.Properties["servers"]
	one := 1
	servers.MinProperties, servers.AdditionalProperties = &one, &jsonschema.Schema{Ref: "#/$defs/server"}
	servers.Type, servers.Types = "object", nil
	return schema.Document(made, schemaID, "outlive.yaml", "What `outlive gateway` serves: many MCP servers behind one endpoint. "+
		"Every text may hold ${env:NAME}, ${env:NAME:-default}, ${file:PATH} and ${input:ID}; $${ is a plain ${.")
}
