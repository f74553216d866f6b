package ledger

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DecodeContract decodes the JSON object that /v2/contracts/contract-by-id serves (interface.md, endpoint 3). By rule 3
// there, offset, nodeId, createdEventBlob, interfaceViews and acsDelta are not parsed: they may be missing or hold
// anything. The representative package is not read either (rule 1), and members that are not known are left out. All
// errors are *DecodeError. What is returned shares no memory with body.
func DecodeContract(body []byte) (Contract, error) {
	var wire struct {
		Created *wireContract `json:"createdEvent"`
	}
	d := newDecoding(body)
	if err := d.object(&wire); err != nil {
		return Contract{}, err
	}
	if wire.Created == nil {
		return Contract{}, inElement(-1, 0, below("createdEvent", errMissing))
	}
	contract, err := d.contract(wire.Created)
	if err != nil {
		return Contract{}, inElement(-1, 0, below("createdEvent", err))
	}
	return contract, nil
}

// wireContract is the part of a CreatedEvent that a look-up tells.
type wireContract struct {
	ContractID      span   `json:"contractId"`
	TemplateID      span   `json:"templateId"`
	PackageName     span   `json:"packageName"`
	CreateArgument  span   `json:"createArgument"`
	ContractKey     span   `json:"contractKey"`
	ContractKeyHash span   `json:"contractKeyHash"`
	Signatories     []span `json:"signatories"`
	Observers       []span `json:"observers"`
	WitnessParties  []span `json:"witnessParties"`
	CreatedAt       span   `json:"createdAt"`
}

func (r *reader) contract(w *wireContract) (Contract, error) {
	o := object{reader: r}
	contract := Contract{
		ContractID:      o.unique("contractId", w.ContractID),
		TemplateID:      o.identifier("templateId", w.TemplateID),
		PackageName:     o.shared("packageName", w.PackageName),
		Argument:        o.payload(w.CreateArgument),
		ContractKey:     o.payload(w.ContractKey),
		ContractKeyHash: o.bytes("contractKeyHash", w.ContractKeyHash),
		Signatories:     o.requiredTexts("signatories", w.Signatories),
		Observers:       o.texts("observers", w.Observers),
		WitnessParties:  o.requiredTexts("witnessParties", w.WitnessParties),
		CreatedAt:       o.time("createdAt", w.CreatedAt),
	}
	return contract, o.err
}

// DecodeUpdate decodes the JSON object that /v2/updates/update-by-id serves (interface.md, endpoint 5): one element as
// it stands in a list of updates, see [DecodeUpdateList]. A checkpoint is no update and is refused. All errors are
// *DecodeError. What is returned shares no memory with body.
func DecodeUpdate(body []byte) (Update, error) {
	var wire wireElement
	d := newDecoding(body)
	if err := d.object(&wire); err != nil {
		return Update{}, err
	}
	update, checkpoint, err := d.element(&wire)
	switch {
	case err != nil:
		return Update{}, inElement(-1, findOffset(body), err)
	case checkpoint != nil:
		err := errors.New("is an OffsetCheckpoint where an update is expected")
		return Update{}, inElement(-1, checkpoint.Offset, below("update", err))
	}
	return *update, nil
}

// object reads the object that the body consists of into a wire struct.
func (d *decoding) object(wire any) error {
	if kind := d.dec.PeekKind(); kind != '{' && kind != jsontext.KindInvalid {
		return whole(fmt.Errorf("is %s where an object is expected", kindName(kind)))
	}
	if err := json.UnmarshalDecode(d.dec, wire); err != nil {
		return fromJSON(err, -1, findOffset(d.body), 0)
	}
	return d.end()
}
