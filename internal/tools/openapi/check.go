package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	if parts, ok := schema["allOf"].([]any); ok {
		schema = d.merged(parts)
	}
	if variants, ok := schema["oneOf"].([]any); ok {
		if named, _ := variants[0].(map[string]any); named["$ref"] != nil {
			return d.checkNamed(schema, variants, v, at)
		}
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
		if schema["properties"] == nil && schema["additionalProperties"] == nil {
			return nil // the documents' word for a value of Daml, whose type they don't say
		}
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
		ok = kind == "number" || kind == "integer" && err == nil && (format != "int32" || n >= math.MinInt32 &&
			n <= math.MaxInt32)
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

// merged returns one schema of an object for the parts of an allOf.
func (d *Document) merged(parts []any) map[string]any {
	properties, required := map[string]any{}, []any{}
	for _, part := range parts {
		schema, _ := part.(map[string]any)
		if ref, ok := schema["$ref"].(string); ok {
			schema = d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
		maps.Copy(properties, child(schema, "properties"))
		more, _ := schema["required"].([]any)
		required = append(required, more...)
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// checkNamed checks a value that must be of exactly one of several schemas: the one that its discriminator names, if
// there is one.
func (d *Document) checkNamed(schema map[string]any, variants []any, v any, at string) error {
	if name, ok := child(schema, "discriminator")["propertyName"].(string); ok {
		o, _ := v.(map[string]any)
		which, _ := o[name].(string)
		ref, ok := child(schema, "discriminator", "mapping")[which].(string)
		if !ok {
			return fmt.Errorf("%s: %s %q names no variant", at, name, which)
		}
		return d.check(map[string]any{"$ref": ref}, v, at)
	}
	var refused []error
	for _, variant := range variants {
		schema, _ := variant.(map[string]any)
		if err := d.check(schema, v, at); err != nil {
			refused = append(refused, err)
		}
	}
	if fits := len(variants) - len(refused); fits != 1 {
		return fmt.Errorf("%s: %d of %d variants fit: %w", at, fits, len(variants), errors.Join(refused...))
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
