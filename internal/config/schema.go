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
	Pattern     string    `json:"pattern,omitempty"` // of a text
	Minimum     *int      `json:"minimum,omitempty"` // of a number
	Maximum     *int      `json:"maximum,omitempty"`
	Default     any       `json:"default,omitempty"`
}

const (
	durations = `^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`
	ages      = durations + `|^[0-9]+d$`
)

// Schema returns the JSON Schema of the configuration file, made from the flags. What is text for the program may look
// like a number in YAML.
func Schema() ([]byte, error) {
	flags, err := settings()
	if err != nil {
		return nil, err
	}
	text, properties := []string{"string", "number"}, map[string]property{}
	for _, flag := range flags {
		p := property{Description: flag.Help, Type: text}
		kind := flag.Target.Type()
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		switch {
		case kind == reflect.TypeFor[time.Duration]():
			p.Pattern, p.Minimum, p.Maximum = durations, new(0), new(0) // without a unit only 0
		case kind == reflect.TypeFor[Age]():
			p.Pattern, p.Minimum, p.Maximum = ages, new(0), new(0)
		case flag.Enum != "":
			p.Type, p.Enum = "string", flag.EnumSlice()
		case kind.Kind() == reflect.Bool:
			p.Type = "boolean"
		case kind.Kind() == reflect.Int, kind.Kind() == reflect.Int64:
			p.Type = "integer"
		case kind.Kind() == reflect.Float64:
			p.Type = "number"
		case kind.Kind() == reflect.Slice:
			p.Type, p.Items = []string{"array", "string", "number"}, &property{Type: text}
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
