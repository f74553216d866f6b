package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// checkJSON checks a body; at names it in errors.
func (d *Document) checkJSON(schema map[string]any, body []byte, at string) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: something follows the JSON", at)
	}
	return d.check(schema, value, at)
}

func (d *Document) check(schema map[string]any, v any, at string) error {
	if ref, ok := schema["$ref"].(string); ok {
		to := d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		if to == nil {
			return fmt.Errorf("%s: the document has no %s", at, ref)
		}
		return d.check(to, v, at)
	}
	if variants, ok := schema["oneOf"].([]any); ok {
		return d.checkVariant(variants, v, at)
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, v) {
		return fmt.Errorf("%s: %v is not one of %v", at, v, enum)
	}
	// The documents say text; the servers decode known details to objects.
	if strings.HasSuffix(at, ".valueDecoded") {
		return nil
	}
	switch kind := schema["type"]; kind {
	case nil:
		return nil // any value
	case "object":
		o, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: %T is not an object", at, v)
		}
		return d.checkObject(schema, o, at)
	case "array":
		list, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%s: %T is not an array", at, v)
		}
		if least, ok := schema["minItems"].(int); ok && len(list) < least {
			return fmt.Errorf("%s: %d items are too few", at, len(list))
		}
		for i, item := range list {
			if err := d.check(child(schema, "items"), item, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	default:
		return checkScalar(kind, schema["format"], v, at)
	}
}

func checkScalar(kind, format, v any, at string) error {
	ok := false
	switch v := v.(type) {
	case string:
		ok = kind == "string"
	case bool:
		ok = kind == "boolean"
	case json.Number:
		n, err := v.Int64()
		ok = kind == "number" || kind == "integer" && err == nil && (format != "int32" || n >= math.MinInt32 && n <= math.MaxInt32)
	}
	if !ok {
		return fmt.Errorf("%s: %v (%T) is not %v", at, v, v, kind)
	}
	return nil
}

func (d *Document) checkObject(schema, o map[string]any, at string) error {
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := o[name.(string)]; !ok {
			return fmt.Errorf("%s: there is no %s", at, name)
		}
	}
	properties := child(schema, "properties")
	for name, v := range o {
		of, known := properties[name].(map[string]any)
		if more, ok := schema["additionalProperties"].(map[string]any); !known && ok {
			of, known = more, true
		}
		switch {
		case !known:
			return fmt.Errorf("%s: unknown key %s", at, name)
		case v == nil && !slices.Contains(required, any(name)):
			continue
		}
		if err := d.check(of, v, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func (d *Document) checkVariant(variants []any, v any, at string) error {
	o, ok := v.(map[string]any)
	if !ok || len(o) != 1 {
		return fmt.Errorf("%s: %v is not one variant", at, v)
	}
	for name := range o {
		for _, variant := range variants {
			schema, _ := variant.(map[string]any)
			if required, _ := schema["required"].([]any); slices.Contains(required, any(name)) {
				return d.check(schema, v, at)
			}
		}
		return fmt.Errorf("%s: there is no variant %s", at, name)
	}
	return nil
}
