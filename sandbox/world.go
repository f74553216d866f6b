package sandbox

import (
	"slices"
	"strconv"
	"time"
)

// world is what never changes about a ledger: its names.
type world struct {
	seed          uint64
	participant   string
	other         string // another participant, that topology events name
	synchronizers [2]string
	aliases       [2]string
	parties       []string // hosted here first, then the remote ones, then the DSO
	quoted        [][]byte // parties as JSON strings
	hosted        int
	dso           uint16 // the party that operates the network, and signs amulets
	numbers       map[string]uint16
	forks         []fork
	believable    bool
}

// remoteParties is how many parties hosted elsewhere a ledger knows: stakeholders
// of the contracts that are only divulged to parties of this participant.
const remoteParties = 3

var partyHints = []string{"alice", "bob", "carol", "dave", "bank", "exchange", "registrar", "treasury"}

// morePartyHints are the names of the next ones where they are to be believed.
var morePartyHints = []string{"erin", "frank", "grace", "heidi"}

func newWorld(seed uint64, hosted int, believable bool) *world {
	w := &world{seed: seed, hosted: hosted, numbers: map[string]uint16{}, believable: believable}
	hints := partyHints
	if believable {
		hints = slices.Concat(hints, morePartyHints)
	}
	name := func(hint string, n uint64) string {
		return hint + "::1220" + string(appendID(nil, seed, domainIdentity, n, 4))
	}
	w.participant = name("participant1", 1)
	w.other = name("participant2", 2)
	w.synchronizers = [2]string{name("global", 3), name("private", 4)}
	w.aliases = [2]string{"global", "private"}
	w.dso = uint16(hosted + remoteParties)
	for i := range hosted + remoteParties + 1 {
		hint := "party-" + strconv.Itoa(i)
		switch {
		case i == int(w.dso):
			hint = "dso"
		case i >= hosted:
			hint = "remote-" + strconv.Itoa(i-hosted)
		case i < len(hints):
			hint = hints[i]
		}
		p := hint + "::1220" + string(appendID(nil, seed, domainParty, uint64(i), 4))
		w.parties = append(w.parties, p)
		w.quoted = append(w.quoted, []byte(`"`+p+`"`))
		w.numbers[p] = uint16(i)
	}
	return w
}

// genesis is the record time before the first update.
var genesis = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

func (w *world) updateID(dst []byte, index int) []byte {
	dst = append(dst, "1220"...)
	return appendID(dst, w.seedOf(index), domainUpdateID, uint64(index), 4)
}

func (w *world) contractID(dst []byte, c int32) []byte {
	dst = append(dst, "00"...)
	dst = appendID(dst, w.seed, domainContractID, uint64(c), 4)
	dst = append(dst, "ca121220"...)
	r := derive(w.seed, domainContractID, uint64(c)<<1|1<<62)
	for range 4 {
		dst = appendHex(dst, r.next())
	}
	return dst
}

func (w *world) reassignmentID(dst []byte, n int32) []byte {
	dst = append(dst, "00"...)
	return appendID(dst, w.seed, domainReassignment, uint64(n), 4)
}

// findUpdate returns the index that an update id names, if it could be one.
func (w *world) findUpdate(id string) (int, bool) {
	if len(id) != 68 {
		return 0, false
	}
	n, ok := idIndex(id[4:], domainUpdateID)
	if !ok || n > 1<<31 || string(w.updateID(nil, int(n))) != id {
		return 0, false
	}
	return int(n), true
}

// findContract returns the contract that a contract id names, if it could be one.
func (w *world) findContract(id string) (int32, bool) {
	if len(id) != 138 {
		return 0, false
	}
	n, ok := idIndex(id[2:], domainContractID)
	if !ok || n >= 1<<31 || string(w.contractID(nil, int32(n))) != id {
		return 0, false
	}
	return int32(n), true
}
