package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// mostElements is how many updates and checkpoints, or records of the transaction history, may stand in one answer. Of
// updates 2,000 are asked for at most, of records 1,000. The smallest take a hundred times their JSON in memory.
const mostElements = 100_000

// mostTimes is how many synchronizers an offset checkpoint may tell of. A participant is connected to some; each is a row.
const mostTimes = 1000

var errTooMany = fmt.Errorf("is one more than the %d that are read of an answer; no server serves as many at once", mostElements)

// UpdateList is what a list response of updates holds.
type UpdateList struct {
	Updates     []Update
	Checkpoints []OffsetCheckpoint
	Elements    int    // updates and checkpoints together: what the server's limit counts
	Last        Offset // offset of the last element in the server's order; 0 where the list is empty
}

// UpdatePage is a response of /v2/updates/get-updates-page: everything of the range from Lowest (exclusive) to
// Highest (inclusive) that matches what was asked.
type UpdatePage struct {
	UpdateList
	Lowest  Offset // exclusive
	Highest Offset // inclusive
	Next    string // token of the next page; empty where the server gives none
}

// ContractPage is a response of /v2/state/active-contracts-page.
type ContractPage struct {
	Entries  []ContractEntry
	ActiveAt Offset // of the snapshot
	Next     string // token of the next page; empty on the last
}

// DecodeUpdateList decodes the JSON array that /v2/updates and /v2/updates/flats serve in ascending order
// (interface.md, "Update"). Offsets of updates must grow and lie above after; a
// checkpoint may repeat the offset before it, or after. Members and variants that are not known are kept, see
// [Update]. All errors are *DecodeError. What is returned shares no memory with body, but texts and lists with what was
// decoded before: nothing of it may be changed.
func DecodeUpdateList(body []byte, after Offset) (UpdateList, error) {
	o := order{last: after}
	return decodeTwice(body, func(d *direct) UpdateList { return d.updates(o) }, func(d *decoding) (UpdateList, error) {
		list, err := d.updates(o, 1)
		if err == nil {
			err = d.end()
		}
		if err != nil {
			return UpdateList{}, err
		}
		return list, nil
	})
}

// DecodeUpdatePage decodes the JSON object that /v2/updates/get-updates-page serves in ascending order. Beside what
// holds for [DecodeUpdateList], the updates must lie within the page's own bounds. Members of the page that are not
// known are no part of an update and are left out.
func DecodeUpdatePage(body []byte, after Offset) (UpdatePage, error) {
	return decodeTwice(body, func(d *direct) UpdatePage { return d.updatePage(after) },
		func(d *decoding) (UpdatePage, error) { return d.updatePage(after) })
}

func (d *decoding) updatePage(after Offset) (UpdatePage, error) {
	var page UpdatePage
	var lowest, highest, next span
	err := d.members(func(name string) (err error) {
		switch name {
		case "updates":
			if d.dec.PeekKind() == 'n' {
				return d.dec.SkipValue()
			}
			page.UpdateList, err = d.updates(order{last: after}, 2)
			return err
		case "lowestPageOffsetExclusive":
			return lowest.UnmarshalJSONFrom(d.dec)
		case "highestPageOffsetInclusive":
			return highest.UnmarshalJSONFrom(d.dec)
		case "nextPageToken":
			return next.UnmarshalJSONFrom(d.dec)
		default:
			return d.dec.SkipValue()
		}
	})
	if err != nil {
		return UpdatePage{}, err
	}
	o := object{reader: d.reader}
	page.Lowest = o.bound("lowestPageOffsetExclusive", lowest)
	page.Highest = o.bound("highestPageOffsetInclusive", highest)
	page.Next = string(o.text("nextPageToken", o.at(next)))
	if page.Highest < page.Lowest {
		o.fail("highestPageOffsetInclusive", fmt.Errorf("is %d, below lowestPageOffsetExclusive, which is %d", page.Highest, page.Lowest))
	}
	if n := len(page.Updates); n > 0 && o.err == nil {
		first, last := page.Updates[0].Offset, page.Updates[n-1].Offset
		if first <= page.Lowest || last > page.Highest {
			o.fail("updates", fmt.Errorf("offsets %d to %d do not lie within the page, which is above %d and up to %d",
				first, last, page.Lowest, page.Highest))
		}
	}
	if o.err != nil {
		return UpdatePage{}, inElement(-1, 0, o.err)
	}
	return page, nil
}

// DecodeContractEntries decodes the JSON array that /v2/state/active-contracts serves (interface.md, "Active contract
// entry"). Members and variants that are not known are kept, see [ContractEntry]. All errors are *DecodeError. What
// is returned shares no memory with body, but texts and lists with what was decoded before: nothing of it may be changed.
func DecodeContractEntries(body []byte) ([]ContractEntry, error) {
	return decodeTwice(body, (*direct).entries, func(d *decoding) ([]ContractEntry, error) {
		entries, err := d.entries(1)
		if err == nil {
			err = d.end()
		}
		if err != nil {
			return nil, err
		}
		return entries, nil
	})
}

// DecodeContractPage decodes the JSON object that /v2/state/active-contracts-page serves. Beside what holds for
// [DecodeContractEntries], the list must be there: a page without one is not taken for the end of the snapshot.
func DecodeContractPage(body []byte) (ContractPage, error) {
	return decodeTwice(body, (*direct).contractPage, (*decoding).contractPage)
}

func (d *decoding) contractPage() (ContractPage, error) {
	var page ContractPage
	var activeAt, next span
	err := d.members(func(name string) (err error) {
		switch name {
		case "activeContracts":
			if d.dec.PeekKind() == 'n' {
				return d.dec.SkipValue()
			}
			page.Entries, err = d.entries(2)
			return err
		case "activeAtOffset":
			return activeAt.UnmarshalJSONFrom(d.dec)
		case "nextPageToken":
			return next.UnmarshalJSONFrom(d.dec)
		default:
			return d.dec.SkipValue()
		}
	})
	if err != nil {
		return ContractPage{}, err
	}
	o := object{reader: d.reader}
	if page.Entries == nil {
		o.fail("activeContracts", errMissing)
	}
	page.ActiveAt = o.bound("activeAtOffset", activeAt)
	page.Next = string(o.text("nextPageToken", o.at(next)))
	if o.err != nil {
		return ContractPage{}, inElement(-1, 0, o.err)
	}
	return page, nil
}

// decoding is the decoding of one body with the library.
type decoding struct {
	*reader
	dec *jsontext.Decoder
}

func newDecoding(body []byte) *decoding {
	// A lone surrogate is legal in a payload, and the library counts it as invalid UTF-8: real UTF-8 is checked
	// first, so that only surrogates are allowed. Texts refuse them one by one. What remains of the library's view is
	// that two names of one object which differ in nothing but lone surrogates count as a duplicate and stop.
	allowSurrogates := jsontext.AllowInvalidUTF8(utf8.Valid(body))
	return &decoding{newReader(body), jsontext.NewDecoder(bytes.NewBuffer(body), allowSurrogates)}
}

func (d *decoding) updates(o order, levels int) (UpdateList, error) {
	var list UpdateList
	err := d.list(levels, func(element int) error {
		var wire wireElement
		start := d.dec.InputOffset()
		if element == mostElements {
			return inElement(element, findOffset(d.body[start:]), errTooMany)
		}
		if err := json.UnmarshalDecode(d.dec, &wire); err != nil {
			return fromJSON(err, element, findOffset(d.body[start:]), levels)
		}
		update, checkpoint, err := d.element(&wire)
		switch {
		case err != nil:
			return inElement(element, findOffset(d.body[start:]), err)
		case checkpoint != nil:
			if err := o.checkpoint(checkpoint.Offset); err != nil {
				return inElement(element, checkpoint.Offset, below("OffsetCheckpoint.offset", err))
			}
			list.Checkpoints = append(list.Checkpoints, *checkpoint)
		default:
			if err := o.update(update.Offset); err != nil {
				return inElement(element, update.Offset, err)
			}
			list.Updates = append(list.Updates, *update)
		}
		list.Elements++
		list.Last = o.last
		return nil
	})
	return list, err
}

func (d *decoding) entries(levels int) ([]ContractEntry, error) {
	entries := []ContractEntry{}
	err := d.list(levels, func(element int) error {
		var wire wireEntry
		if err := json.UnmarshalDecode(d.dec, &wire); err != nil {
			return fromJSON(err, element, 0, levels)
		}
		entry, err := d.entry(&wire)
		if err != nil {
			return inElement(element, 0, err)
		}
		entries = append(entries, entry)
		return nil
	})
	return entries, err
}

// list reads an array; next reads its next element and returns a *DecodeError. The array is the body (levels 1) or
// the value of one of its members (levels 2): so many steps of a JSON pointer lead to an element.
func (d *decoding) list(levels int, next func(element int) error) error {
	if kind := d.dec.PeekKind(); kind != '[' && kind != jsontext.KindInvalid {
		err := fmt.Errorf("is %s where a list is expected", kindName(kind))
		if levels > 1 {
			return inElement(-1, 0, below(d.dec.StackPointer().LastToken(), err))
		}
		return whole(err)
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return fromJSON(err, -1, 0, 0)
	}
	for element := 0; d.dec.PeekKind() != ']'; element++ {
		if err := next(element); err != nil {
			return err
		}
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return fromJSON(err, -1, 0, 0)
	}
	return nil
}

// members reads the object that the body consists of; next reads the value of the named member.
func (d *decoding) members(next func(name string) error) error {
	if kind := d.dec.PeekKind(); kind != '{' && kind != jsontext.KindInvalid {
		return whole(fmt.Errorf("is %s where an object is expected", kindName(kind)))
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return fromJSON(err, -1, 0, 0)
	}
	for d.dec.PeekKind() != '}' {
		name, err := d.dec.ReadToken()
		if err == nil {
			err = next(name.String())
		}
		var decodeError *DecodeError
		if errors.As(err, &decodeError) {
			return err
		}
		if err != nil {
			return fromJSON(err, -1, 0, 0)
		}
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return fromJSON(err, -1, 0, 0)
	}
	return d.end()
}

// end checks that nothing follows the value.
func (d *decoding) end() error {
	end := d.dec.InputOffset()
	if _, err := d.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return whole(fmt.Errorf("something follows the end of the JSON at byte %d", end))
	}
	return nil
}
