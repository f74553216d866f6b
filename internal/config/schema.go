package config

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"
)

// property describes a setting in JSON Schema.
type property struct {
	Description string    `json:"description,omitempty"`
	Type        any       `json:"type"`
	Items       *property `json:"items,omitempty"`
	Enum        []string  `json:"enum,omitempty"`
	Pattern     string    `json:"pattern,omitempty"`
	Default     any       `json:"default,omitempty"`
}

// Schema returns the JSON Schema of the configuration file, made from the flags.
func Schema() ([]byte, error) {
	flags, err := settings()
	if err != nil {
		return nil, err
	}
	properties := map[string]property{}
	for _, flag := range flags {
		p := property{Description: flag.Help, Type: "string"}
		kind := flag.Target.Type()
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		switch {
		case kind == reflect.TypeFor[time.Duration]():
			p.Pattern = `^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`
		case kind.Kind() == reflect.Bool:
			p.Type = "boolean"
		case kind.Kind() == reflect.Int, kind.Kind() == reflect.Int64:
			p.Type = "integer"
		case kind.Kind() == reflect.Float64:
			p.Type = "number"
		case kind.Kind() == reflect.Slice:
			p.Type, p.Items = []string{"array", "string"}, &property{Type: "string"}
		}
		if flag.Enum != "" {
			p.Enum = flag.EnumSlice()
		}
		if flag.HasDefault {
			p.Default = defaultOf(p.Type, flag.Default)
		}
		properties[flag.Name] = p
	}
	return json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Configuration of indexer and backfill",
		"type": "object", "additionalProperties": false, "properties": properties,
	}, "", "  ")
}

func defaultOf(kind any, text string) any {
	switch kind {
	case "boolean", "integer", "number":
		var value any
		if json.Unmarshal([]byte(text), &value) == nil {
			return value
		}
		return strconv.Quote(text)
	}
	return text
}
