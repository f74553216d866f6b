package sandbox

import (
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"slices"
	"strings"
)

// vettingQuery is the body of a request to list what is vetted. Empty lists do not
// narrow.
type vettingQuery struct {
	packages, prefixes          []string
	participants, synchronizers []string
	token                       string
	size                        int32
}

func (d *decoder) vettingQuery(body object) vettingQuery {
	texts := func(raw []byte, path string) []string { return decode[[]string](d, raw, path) }
	packages := d.object(body["packageMetadataFilter"], "packageMetadataFilter")
	topology := d.object(body["topologyStateFilter"], "topologyStateFilter")
	return vettingQuery{
		packages: texts(packages["packageIds"], "packageIds"), prefixes: texts(packages["packageNamePrefixes"],
			"packageNamePrefixes"),
		participants: texts(topology["participantIds"], "participantIds"), synchronizers: texts(topology["synchronizerIds"],
			"synchronizerIds"),
		token: decode[string](d, body["pageToken"], "pageToken"), size: decode[int32](d, body["pageSize"], "pageSize"),
	}
}

func (q *vettingQuery) malformed(most int) *cantonError {
	for _, id := range q.packages {
		if !consistsOf(id, "-_ ", 64) {
			return malformed("ValueConversionError(package_ids,%q is not a package id)", id)
		}
	}
	for _, id := range slices.Concat(q.synchronizers, q.participants) {
		if !isIdentifier(id) {
			return malformed("ValueConversionError(topology_state_filter,Invalid unique identifier `%s`)", id)
		}
	}
	switch {
	case q.size < 0:
		return malformed("InvariantViolation(Some(page_size),Expected a non-negative number but found %d)", q.size)
	case int(q.size) > most:
		return malformed("InvariantViolation(Some(page_size),Page size must not exceed the server's maximum of %d)", most)
	}
	return nil
}

// listVetting implements POST /v2/package-vetting/list, which any user may read.
func (s *Server) listVetting(w http.ResponseWriter, r *http.Request) {
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	var d decoder
	q := d.vettingQuery(body)
	if !accepted(w, &d, q.malformed(s.opts.VettingPage)) {
		return
	}
	after, refused := decodeVettingToken(q.token)
	if !accepted(w, &d, refused) {
		return
	}
	for _, id := range q.synchronizers {
		if !slices.Contains(s.history.names().synchronizers, id) {
			refused = refuse(11, "TOPOLOGY_STORE_NOT_FOUND", "No active synchronizer found for %s.", id).with("synchronizerId",
				id)
		}
	}
	if !accepted(w, &d, refused) {
		return
	}
	size := s.opts.VettingPage
	if q.size > 0 {
		size = int(q.size)
	}
	v := s.history.vettings()
	answer := struct {
		Vetted []servedVetting `json:"vettedPackages"`
		Token  string          `json:"nextPageToken"`
	}{Vetted: []servedVetting{}}
	for _, state := range v.page(&q, after, size) {
		served := v.served(state)
		served.Packages = slices.DeleteFunc(served.Packages, func(p servedPackage) bool { return !q.wants(&p) })
		if len(served.Packages) > 0 {
			answer.Vetted = append(answer.Vetted, served)
			answer.Token = encodeVettingToken(state)
		}
	}
	writeValue(w, answer)
}

// page returns the states that a page is made of. Participants narrow it to packages
// only afterwards: it can come out shorter than asked, or even empty and without a
// token although more follows.
func (v *vettings) page(q *vettingQuery, after [2]string, size int) (page []Vetting) {
	v.mu.Lock()
	defer v.mu.Unlock()
	in := func(list []string, id string) bool { return len(list) == 0 || slices.Contains(list, id) }
	for _, s := range v.states {
		if len(page) < size && in(q.synchronizers, s.Synchronizer) && in(q.participants, s.Participant) &&
			(after[0] == "" || compareVettings(s.Synchronizer, s.Participant, after[0], after[1]) > 0) {
			page = append(page, s.clone())
		}
	}
	return page
}

// wants reports whether a package passes one of the filters, or there are none.
func (q *vettingQuery) wants(p *servedPackage) bool {
	return len(q.packages) == 0 && len(q.prefixes) == 0 || slices.Contains(q.packages, p.ID) ||
		slices.ContainsFunc(q.prefixes, func(prefix string) bool { return p.Name != "" && strings.HasPrefix(p.Name, prefix) })
}

// encodeVettingToken writes the protobuf message {1: synchronizer, 2: participant} of
// the last element of a page. There is a token after the last page, too: only an
// empty page has none.
func encodeVettingToken(last Vetting) string {
	var b []byte
	for i, id := range []string{last.Synchronizer, last.Participant} {
		b = binary.AppendUvarint(append(b, byte(i+1)<<3|2), uint64(len(id)))
		b = append(b, id...)
	}
	return base64.URLEncoding.EncodeToString(b)
}

func decodeVettingToken(token string) (after [2]string, refused *cantonError) {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(token, "="))
	ok := err == nil
	for len(b) > 0 && ok {
		field := int(b[0] >> 3)
		n, width := binary.Uvarint(b[1:])
		ok = b[0]&7 == 2 && (field == 1 || field == 2) && width > 0 && n <= uint64(len(b)-1-width)
		if ok {
			b = b[1+width:]
			after[field-1], b = string(b[:n]), b[n:]
		}
	}
	if token != "" && (!ok || !isIdentifier(after[0]) || !isIdentifier(after[1])) {
		return after, malformed("ValueConversionError(page_token,Invalid page token for ListVettedPackagesRequest)")
	}
	return after, nil
}
