package ledger

import (
	"slices"
	"strings"
)

// InterfaceView is a contract seen through an interface (interface.md, "InterfaceView").
type InterfaceView struct {
	InterfaceID             string
	Value                   JSON
	StatusCode              *int32 // 0: the view was computed
	StatusMessage           *string
	StatusDetails           JSON // array, as served
	ImplementationPackageID *string
	Extra                   JSON
}

func (v *InterfaceView) redact() {
	v.Value, v.StatusMessage, v.StatusDetails, v.Extra = nil, nil, nil, nil
}

// interfaceViews reads views, whose order means as little as that of parties.
func (d *decoder) interfaceViews() []InterfaceView {
	for next := d.begin(); next && !d.refused; next = d.more() {
		view := d.views.add()
		extra := viewMembers.read(d, view)
		view.Extra = appendMember(extra, extraStatus, view.Extra) // Extra held the status's unknown members
	}
	views := orEmpty(d.views.take())
	slices.SortStableFunc(views, func(a, b InterfaceView) int { return strings.Compare(a.InterfaceID, b.InterfaceID) })
	return views
}

var viewMembers = membersOf(
	must("interfaceId", func(d *decoder, v *InterfaceView) { v.InterfaceID = d.identifier() }),
	must("viewStatus", func(d *decoder, v *InterfaceView) { v.Extra = statusMembers.read(d, v) }),
	may("viewValue", func(d *decoder, v *InterfaceView) { v.Value = d.payload() }),
	may("implementationPackageId", func(d *decoder, v *InterfaceView) { v.ImplementationPackageID = d.commonText() }),
)

var statusMembers = membersOf(
	must("code", func(d *decoder, v *InterfaceView) { v.StatusCode = new(int32(d.integer(32))) }),
	must("message", func(d *decoder, v *InterfaceView) { v.StatusMessage = d.commonText() }),
	may("details", func(d *decoder, v *InterfaceView) {
		if d.peek() != '[' {
			d.mistyped("an array")
		}
		v.StatusDetails = d.payload()
	}),
).keep()
