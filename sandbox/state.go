package sandbox

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// writeValue answers a request about the participant's state with a value as JSON.
func writeValue(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // of plain values: can not happen
	}
	writeJSON(w, body)
}

func (s *Server) ledgerEnd(w http.ResponseWriter, _ *http.Request) {
	h := s.history.open()
	out := appendInt([]byte(`{"offset":`), h.end())
	if s.feat.endTimes {
		out = append(out, `,"synchronizerTimes":`...)
		out = s.appendTimes(out, h, h.count(), 0)
	}
	writeJSON(w, append(out, '}'))
}

func (s *Server) latestPruned(w http.ResponseWriter, _ *http.Request) {
	pruned := s.history.open().prunedTo()
	writeValue(w, struct {
		Participant int64 `json:"participantPrunedUpToInclusive"`
		Divulged    int64 `json:"allDivulgedContractsPrunedUpToInclusive"`
	}{pruned, pruned})
}

// connected returns the ids of the synchronizers that the participant is connected to.
func (s *Server) connected() []string {
	return slices.DeleteFunc(slices.Clone(s.history.names().synchronizers), func(id string) bool {
		return slices.Contains(s.opts.Disconnected, id)
	})
}

func (s *Server) connectedSynchronizers(w http.ResponseWriter, _ *http.Request) {
	type connected struct {
		Alias      string `json:"synchronizerAlias"`
		ID         string `json:"synchronizerId"`
		Permission string `json:"permission"`
	}
	n := s.history.names()
	list := []connected{}
	for i, id := range n.synchronizers {
		if slices.Contains(s.connected(), id) {
			// A permission is that of a party, and the request names none.
			list = append(list, connected{n.aliases[i], id, permissions[0]})
		}
	}
	writeValue(w, map[string]any{"connectedSynchronizers": list})
}

func (s *Server) participantID(w http.ResponseWriter, _ *http.Request) {
	writeValue(w, map[string]any{"participantId": s.history.names().participant})
}

// fullVersions are the versions that the releases return.
var fullVersions = map[string]string{"3.4": "3.4.0", "3.5.5": "3.5.5", "3.5": "3.5.10", "3.6": "3.6.0"}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	writeValue(w, map[string]any{
		"version": fullVersions[s.opts.Version],
		"features": map[string]any{
			"experimental": map[string]any{
				"staticTime": map[string]any{"supported": false}, "commandInspectionService": map[string]any{"supported": true},
			},
			"userManagement":  map[string]any{"supported": true, "maxRightsPerUser": 1000, "maxUsersPageSize": 1000},
			"partyManagement": map[string]any{"maxPartiesPageSize": 10000},
			"offsetCheckpoint": map[string]any{"maxOffsetCheckpointEmissionDelay": map[string]any{
				"seconds": 75, "nanos": 0, "unknownFields": map[string]any{"fields": map[string]any{}},
			}},
			"packageFeature": map[string]any{"maxVettedPackagesPageSize": s.opts.VettingPage},
		},
	})
}

// updateByID implements POST /v2/updates/update-by-id (interface.md, endpoint 5).
func (s *Server) updateByID(w http.ResponseWriter, r *http.Request) {
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	var d decoder
	id := decode[string](&d, body["updateId"], "updateId")
	format := d.updateFormat(body["updateFormat"])
	var refused *cantonError
	switch {
	case id == "":
		refused = missingField("update_id")
	case !s.names().recorded && !isUpdateID(id):
		refused = invalidArgument("%q is not an update id", id)
	case format == nil:
		refused = missingField("update_format")
	}
	if !accepted(w, &d, refused) || !allowed(w, r, format.needs()...) {
		return
	}
	n := s.names()
	filter, refused := n.compileUpdates(format)
	if !accepted(w, &d, refused) {
		return
	}
	h := s.history.open()
	if i, ok := h.updateNamed(id); ok && h.offsetOf(i) > h.prunedTo() {
		if out, shown := h.appendUpdate(nil, i, filter, &s.feat); shown {
			if out, keep := s.rewrite(r.URL.Path, h.offsetOf(i), out); keep {
				writeJSON(w, out)
				return
			}
		}
	}
	writeError(w, refuse(11, "UPDATE_NOT_FOUND", "Update not found, or not visible.").about("UPDATE_ID", id))
}

// contractByID implements POST /v2/contracts/contract-by-id (interface.md, endpoint 3).
func (s *Server) contractByID(w http.ResponseWriter, r *http.Request) {
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	var d decoder
	id := decode[string](&d, body["contractId"], "contractId")
	parties := decode[[]string](&d, body["queryingParties"], "queryingParties")
	var refused *cantonError
	switch {
	case id == "":
		refused = missingField("contract_id")
	case !s.names().recorded && !isContractID(id):
		refused = invalidField("contract_id", "cannot parse ContractId %q", id)
	case !s.names().recorded:
		refused = checkParties(parties)
	}
	if !accepted(w, &d, refused) || !allowed(w, r, readAsEach(parties)...) {
		return
	}
	out, ok := s.history.open().appendContract([]byte(`{"createdEvent":`), id, parties, &s.feat)
	if ok {
		out, ok = s.rewrite(r.URL.Path, 0, append(out, '}'))
	}
	if !ok {
		writeError(w, refuse(11, "CONTRACT_PAYLOAD_NOT_FOUND", "Contract payload not found, or not visible.").about(
			"CONTRACT_ID", id))
		return
	}
	writeJSON(w, out)
}

// isUpdateID reports whether s has the form of an update id: the hash that it is.
func isUpdateID(s string) bool {
	return len(s) == 68 && strings.HasPrefix(s, "1220") && isHex(s)
}

// isContractID reports whether s has the form of a contract id of one of the two
// kinds: a version, a discriminator, and a suffix that is not too long.
func isContractID(s string) bool {
	if len(s)%2 != 0 || !isHex(s) {
		return false
	}
	switch n := len(s) / 2; {
	case strings.HasPrefix(s, "00"):
		return n >= 1+32 && n <= 1+32+94
	case strings.HasPrefix(s, "01"):
		return n >= 1+12 && n <= 1+12+33
	}
	return false
}

func isHex(s string) bool { return strings.Trim(s, hexDigits) == "" }

func checkParties(parties []string) *cantonError {
	for _, p := range parties {
		if !consistsOf(p, ":-_ ", 255) {
			return invalidArgument("%q is not a Daml-LF Party", p)
		}
	}
	return nil
}
