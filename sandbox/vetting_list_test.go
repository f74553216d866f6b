package sandbox

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const listVettingPath = "/v2/package-vetting/list"

// places are the synchronizers and participants of a list, in its order.
func places(a answer) (list [][2]string) {
	a.t.Helper()
	for _, raw := range a.object()["vettedPackages"].([]any) {
		state := raw.(map[string]any)
		list = append(list, [2]string{state["synchronizerId"].(string), state["participantId"].(string)})
	}
	return list
}

func TestListVetting(t *testing.T) {
	t.Parallel()
	l := NewLedger(Options{Seed: 3})
	c := serve(t, l, ServerOptions{})
	list := func(packages, topology string) answer {
		return c.post(listVettingPath, `{"packageMetadataFilter":%s,"topologyStateFilter":%s}`, packages, topology)
	}
	global, private := l.Synchronizers()[0], l.Synchronizers()[1]
	own, other := l.ParticipantID(), l.Vetting()[1].Participant
	all := [][2]string{{global, own}, {global, other}, {private, own}, {private, other}}
	require.Equal(t, all, places(c.post(listVettingPath, `{}`)), "what others vetted is there, too")
	require.Equal(t, all, places(list(`null`, `{"participantIds":[],"synchronizerIds":null}`)))
	require.Equal(t, all[2:], places(list(`{}`, fmt.Sprintf(`{"synchronizerIds":[%q]}`, private))))
	require.Equal(t, [][2]string{all[0], all[2]}, places(list(`{}`, fmt.Sprintf(`{"participantIds":[%q]}`, own))))
	require.Equal(t, all[3:], places(list(`{}`, fmt.Sprintf(`{"participantIds":[%q],"synchronizerIds":[%q]}`, other, private))))
	require.Empty(t, places(list(`{}`, `{"participantIds":["nobody::1220"]}`)))
	list(`{}`, `{"synchronizerIds":["nowhere::1220"]}`).refused(404, "TOPOLOGY_STORE_NOT_FOUND")

	served := func(a answer) (names []string) {
		for _, raw := range a.object()["vettedPackages"].([]any)[0].(map[string]any)["packages"].([]any) {
			p := raw.(map[string]any)
			names = append(names, fmt.Sprint(p["packageName"], " ", p["packageVersion"]))
		}
		return names
	}
	// A package needs to pass one of the filters, and a state without any is left out.
	require.ElementsMatch(t, []string{"trade-api 1.0.0", "trade 1.0.0", "trade 1.1.0"}, served(list(`{"packageNamePrefixes":["trade"]}`, `{}`)))
	require.ElementsMatch(t, []string{"bank-api 1.0.0", " "}, served(list(fmt.Sprintf(`{"packageNamePrefixes":["bank-a"],"packageIds":[%q]}`, packageID("foreign-1")), `{}`)))
	require.Equal(t, all[:2], places(list(fmt.Sprintf(`{"packageIds":[%q]}`, packageID("foreign-1")), `{}`)))
	require.Empty(t, places(list(`{"packageIds":["00ff"]}`, `{}`)))
	require.NotContains(t, served(list(`{"packageNamePrefixes":[""]}`, `{}`)), " ", "an unknown package has no name to begin with anything")
	// What has been unvetted to the last is left out although it has a serial.
	l.SetVetting(Vetting{Synchronizer: global, Participant: own, Serial: 9})
	require.Equal(t, all[1:], places(c.post(listVettingPath, `{}`)))
}

func TestPagesOfVetting(t *testing.T) {
	t.Parallel()
	l := NewLedger(Options{Seed: 3})
	c := serve(t, l, ServerOptions{})
	page := func(token string, size int, rest string) ([][2]string, string) {
		a := c.post(listVettingPath, `{"pageToken":%q,"pageSize":%d%s}`, token, size, rest)
		return places(a), a.object()["nextPageToken"].(string)
	}
	all := places(c.post(listVettingPath, `{}`))
	for size := 1; size <= 5; size++ {
		var got [][2]string
		pages, token := 0, ""
		for {
			list, next := page(token, size, "")
			got, token = append(got, list...), next
			if pages++; next == "" {
				require.Empty(t, list, "only an empty page has no token")
				break
			}
		}
		require.Equal(t, all, got)
		require.Equal(t, (len(all)+size-1)/size+1, pages)
	}
	// The server narrows to packages after it has cut the page: an empty one can lie
	// before the end.
	_, token := page("", 2, "")
	list, next := page(token, 1, fmt.Sprintf(`,"packageMetadataFilter":{"packageIds":[%q]}`, packageID("foreign-2")))
	require.Empty(t, list)
	require.Empty(t, next)
	_, token = page("", 1, "")
	list, _ = page(token, 1, fmt.Sprintf(`,"topologyStateFilter":{"participantIds":[%q]}`, l.ParticipantID()))
	require.Equal(t, all[2:3], list)

	c.post(listVettingPath, `{"pageSize":100}`).object()
	require.Contains(t, c.post(listVettingPath, `{"pageSize":101}`).refused(400, "PROTO_DESERIALIZATION_FAILURE")["reason"], "maximum of 100")
	c.post(listVettingPath, `{"pageSize":-1}`).refused(400, "PROTO_DESERIALIZATION_FAILURE")
	encoded := func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) }
	for _, bad := range []string{"INVALID_PAGE_TOKEN", "***", encoded("\x0a\x05a::bc"), encoded("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), encoded("\x0a"), encoded("\x12\x02ab")} {
		require.Contains(t, c.post(listVettingPath, `{"pageToken":%q}`, bad).refused(400, "PROTO_DESERIALIZATION_FAILURE")["reason"], "page_token", bad)
	}
	// A token need not name something that is there.
	list, _ = page(encoded("\x0a\x05h::12\x12\x04a::1"), 2, "")
	require.Equal(t, all[2:], list)

	small := serve(t, l, ServerOptions{VettingPage: 3})
	require.Len(t, places(small.post(listVettingPath, `{}`)), 3)
	small.post(listVettingPath, `{"pageSize":4}`).refused(400, "PROTO_DESERIALIZATION_FAILURE")
	require.Contains(t, string(small.do("GET", "/v2/version", "").body), `"maxVettedPackagesPageSize":3`)
}

func TestManyParticipantsVet(t *testing.T) {
	t.Parallel()
	l := NewLedger(Options{Seed: 3})
	for i := range 250 {
		l.SetVetting(Vetting{
			Synchronizer: l.Synchronizers()[i%2], Participant: fmt.Sprintf("validator-%d::1220", i), Serial: int32(i + 1),
			Packages: []Vetted{{PackageID: packageID("bank-1")}},
		})
	}
	c := serve(t, l, ServerOptions{})
	count, token := 0, ""
	for range 4 {
		a := c.post(listVettingPath, `{"pageToken":%q}`, token)
		count += len(places(a))
		token = a.object()["nextPageToken"].(string)
	}
	require.Equal(t, 254, count)
	require.Empty(t, token)
}

func TestBadVettingQueries(t *testing.T) {
	t.Parallel()
	c := serve(t, NewLedger(Options{}), ServerOptions{})
	for body, want := range map[string]string{
		`{"packageMetadataFilter":{"packageIds":[""]}}`:                                   "package_ids",
		`{"packageMetadataFilter":{"packageIds":["'; --"]}}`:                              "package_ids",
		`{"topologyStateFilter":{"participantIds":["` + strings.Repeat("x", 100) + `"]}}`: "unique identifier",
		`{"topologyStateFilter":{"synchronizerIds":["a::b\u0000"]}}`:                      "unique identifier",
	} {
		require.Contains(t, c.post(listVettingPath, "%s", body).refused(400, "PROTO_DESERIALIZATION_FAILURE")["reason"], want)
	}
	for _, body := range []string{`[]`, `{"pageSize":"1"}`, `{"pageSize":3000000000}`, `{"pageToken":1}`, `{"topologyStateFilter":[]}`, `{"packageMetadataFilter":{"packageIds":"x"}}`} {
		a := c.post(listVettingPath, "%s", body)
		require.Equal(t, 400, a.status, body)
		require.Contains(t, a.kind, "text/plain", body)
	}
}
