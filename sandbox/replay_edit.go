package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// An edit changes the values of some keys of an object and leaves the bytes of all
// others as they are.
type edit map[string]editor

type editor func(json.RawMessage) (json.RawMessage, error)

func nested(e edit) editor {
	return func(raw json.RawMessage) (json.RawMessage, error) { return apply(raw, e) }
}

// anyKey edits the values of every key: the body of a sum type's variant.
func anyKey(e edit) editor {
	return func(raw json.RawMessage) (json.RawMessage, error) {
		var o object
		if err := json.Unmarshal(raw, &o); err != nil {
			return nil, err
		}
		for key, value := range o {
			changed, err := apply(value, e)
			if err != nil {
				return nil, err
			}
			o[key] = changed
		}
		return marshal(o)
	}
}

func each(edit editor) editor {
	return func(raw json.RawMessage) (json.RawMessage, error) {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		for i, item := range list {
			changed, err := edit(item)
			if err != nil {
				return nil, err
			}
			list[i] = changed
		}
		return marshal(list)
	}
}

func constant(text string) editor {
	return func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(text), nil }
}

func mover(shift int64) editor {
	return func(raw json.RawMessage) (json.RawMessage, error) {
		var offset int64
		err := json.Unmarshal(raw, &offset)
		return appendInt(nil, offset+shift), err
	}
}

func apply(raw json.RawMessage, e edit) (json.RawMessage, error) {
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	for key, change := range e {
		if value, ok := o[key]; ok && !isNull(value) {
			changed, err := change(value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			o[key] = changed
		}
	}
	return marshal(o)
}

// marshal writes JSON without escaping what needs no escape: recorded text stays as
// it was.
func marshal(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}
