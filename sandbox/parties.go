package sandbox

import (
	"net/http"
	"strings"
)

// partyOfPath returns the party of a request for a party's details.
func partyOfPath(r *http.Request) (string, bool) {
	party, ok := strings.CutPrefix(r.URL.Path, "/v2/parties/")
	return party, ok && r.Method == http.MethodGet
}

// partyDetails answers GET /v2/parties/{party}, which can name further parties, with those that the participant knows.
// The user must have the right to read as each.
func (s *Server) partyDetails(w http.ResponseWriter, r *http.Request) {
	type details struct {
		Party    string `json:"party"`
		IsLocal  bool   `json:"isLocal"`
		Metadata struct {
			Version     string            `json:"resourceVersion"`
			Annotations map[string]string `json:"annotations"`
		} `json:"localMetadata"`
		Provider string `json:"identityProviderId"`
	}
	n := s.history.names()
	first, _ := partyOfPath(r)
	list := []details{}
	for _, party := range append([]string{first}, r.URL.Query()["parties"]...) {
		if !allowed(w, r, CanReadAs(party)) {
			return
		}
		if number, known := n.numbers[party]; known {
			d := details{Party: party, IsLocal: int(number) < n.hosted}
			d.Metadata.Annotations = map[string]string{}
			list = append(list, d)
		}
	}
	writeValue(w, map[string]any{"partyDetails": list})
}
