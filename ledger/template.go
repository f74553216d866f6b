package ledger

import (
	"fmt"
	"strings"
)

// TemplateID is the parts of a template's or an interface's identifier.
type TemplateID struct {
	Package string // package id, or '#' and the package's name
	Module  string // Module.Name
	Entity  string
}

// ParseTemplateID parses "package:Module.Name:Entity".
func ParseTemplateID(text string) (TemplateID, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return TemplateID{}, fmt.Errorf("not an identifier of the form package:Module:Entity: %s", Quoted(text))
	}
	return TemplateID{Package: parts[0], Module: parts[1], Entity: parts[2]}, nil
}
