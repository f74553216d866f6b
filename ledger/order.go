package ledger

import (
	"fmt"
	"slices"
)

// order checks that the offsets of a list of updates are ascending.
type order struct {
	last Offset // of the element before, or the lower bound of the list
}

// update checks an update's offset against the element before it.
func (o *order) update(offset Offset) error {
	if offset <= o.last {
		return fmt.Errorf("offsets must grow from update to update: %d comes after %d", offset, o.last)
	}
	o.last = offset
	return nil
}

// checkpoint checks a checkpoint's offset, which may repeat the one before it.
func (o *order) checkpoint(offset Offset) error {
	if offset < o.last {
		return fmt.Errorf("the offset of a checkpoint must not fall: %d comes after %d", offset, o.last)
	}
	o.last = offset
	return nil
}

// checkDistinct checks that no two events of an update share a node id. It may sort ids.
func checkDistinct(ids []int32) error {
	for i := 1; i < len(ids); i++ {
		if ids[i-1] >= ids[i] { // servers send them ascending, so this is rare
			slices.Sort(ids)
			break
		}
	}
	for i := 1; i < len(ids); i++ {
		if ids[i-1] == ids[i] {
			return fmt.Errorf("two events have the node id %d", ids[i])
		}
	}
	return nil
}
