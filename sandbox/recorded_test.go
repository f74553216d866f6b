package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/recorded"
)

// onPurpose are the differences from the recorded participant that stay, by their ends, and their reasons.
var onPurpose = [][2]string{
	{"GET /v2/parties: 404 application/json, not 200 application/json", noClient},
	{"GET /v2/users: 404 application/json, not 200 application/json", noClient},
	{"/v2/updates/update-by-offset: 404 application/json, not 404 application/json UPDATE_NOT_FOUND", noClient},
	{"/v2/events/events-by-contract-id: 404 application/json, not 400 application/json INVALID_FIELD", noClient},
	{".interfaceViews[].viewStatus.details[]: object, not nothing", failing},
	{".interfaceViews[].viewValue: null or value, not value", failing},
	{".interfaceViews[].implementationPackageId: null or string, not string", failing},
	{".externalTransactionHash: null or string, not null", "no external party signed what was recorded"},
	{".paidTrafficCost: float64 or null, not float64", uncosted},
	{".paidTrafficCost: null, not float64", uncosted},
	{".traceContext: null or object, not object", "all that was recorded was traced"},
	{".traceContext.tracestate: null or string, not null", "no vendor's tracing took part in what was recorded"},
	{".assignmentExclusivity: null or string, not string", "it is documented as optional"},
	{".validFromInclusive: null or string, not null", "nothing recorded is vetted for a time only"},
	{".validUntilExclusive: null or string, not null", "nothing recorded is vetted for a time only"},
	{".event.ParticipantAuthorizationAdded: object, sometimes, not object", onboarding},
	{".event.ParticipantAuthorizationOnboarding: object, sometimes, not nothing", onboarding},
	{".JsAssignmentEvent.createdEvent.interfaceViews[]: object, not nothing", "no contract with an interface was reassigned"},
	{".JsAssignmentEvent.createdEvent.observers[]: string, not nothing", "the one that was looked up has none"},
}

const (
	noClient   = "no client in this project asks for it"
	failing    = "no recorded view failed"
	uncosted   = "everything recorded has a cost, of 0: it is documented as optional"
	onboarding = "no recorded party was being replicated"
)

// Every request that was put to a real participant is put to the sandbox. Its answer has the same status, content type
// and error code, and what answers of a kind have in common is the same: the members, which of them are always there,
// and their types.
func TestRecordedRequestsAreAnsweredAlike(t *testing.T) {
	t.Parallel()
	there, here := map[string]shape{}, map[string]shape{}
	var differences []string
	r := newTranslation(t)
	for i, e := range recorded.Exchanges(t) {
		a := r.ask(e)
		r.learn(e.Answer, string(a.body))
		operation, _, _ := strings.Cut(e.Method+" "+e.Path, "?")
		want, got := told(e.Status, e.Type, e.Answer), told(a.status, a.kind, string(a.body))
		if want != got {
			t.Logf("exchange %d is answered with %.300s", i, a.body)
			differences = append(differences, fmt.Sprintf("%s: %s, not %s", operation, got, want))
			continue
		}
		kind := operation + " " + strings.Replace(want, " application/json", "", 1)
		if there[kind] == nil {
			there[kind], here[kind] = shape{}, shape{}
		}
		there[kind].add(e.Answer)
		here[kind].add(string(a.body))
	}
	for kind, want := range there {
		for at, difference := range want.differences(here[kind]) {
			differences = append(differences, fmt.Sprintf("%s %s: %s", kind, at, difference))
		}
	}
	slices.Sort(differences)
	met := map[string]bool{}
	for _, difference := range differences {
		known := false
		for _, p := range onPurpose {
			if strings.HasSuffix(difference, p[0]) {
				known, met[p[0]] = true, true
			}
		}
		if !known {
			t.Error(difference)
		}
	}
	require.Len(t, met, len(onPurpose), "what is the same needs no reason: %v are met", met)
}

// told is what an answer says before anything else.
func told(status int, kind, body string) string {
	var refusal struct{ Code string }
	_ = json.Unmarshal([]byte(body), &refusal) // a list or a text has no code
	return strings.TrimSpace(fmt.Sprintf("%d %s %s", status, kind, refusal.Code))
}

// translation puts the recorded requests to a ledger of the sandbox: with its offsets, ids, participant and tokens.
type translation struct {
	*client
	offsets map[int64]int64
	words   map[string]string
}

func newTranslation(t *testing.T) *translation {
	l := NewLedger(Options{Seed: 1, EventsPerUpdate: 8, ActiveShare: 0.7})
	for l.Grow(150); l.InFlight(l.End()) || l.End() == l.Offset(l.Len()-1); {
		l.Grow(1)
	}
	v := l.view()
	middle := l.Len() - 1
	for l.InFlight(l.Offset(middle)) {
		middle--
	}
	// As recorded, a creation of a contract without a key and interfaces, and an assignment of one without a key.
	created := slices.IndexFunc(v.updates, func(u update) bool {
		return u.kind == kindTransaction && u.count == 1 && v.events[u.first].choice < 0 &&
			v.contracts[v.events[u.first].contract].kind/2 == templateAgreement
	})
	require.GreaterOrEqual(t, created, 0)
	assigned := slices.IndexFunc(v.updates, func(u update) bool {
		return u.kind == kindReassignment && u.count == 1 && v.legs[u.first].assign &&
			!v.contracts[v.reassignments[v.legs[u.first].reassignment].contract].kind.template().keyed
	})
	require.GreaterOrEqual(t, assigned, 0)
	return &translation{
		client: serve(t, l, ServerOptions{Version: recorded.Release}),
		// The first updates of both ledgers are of topology: the recorded one has some more.
		offsets: map[int64]int64{519: l.End(), 485: l.Offset(l.Len() - 1), 400: l.Offset(middle), 20: l.Offset(0), 1: l.Offset(0)},
		words: map[string]string{
			"sandbox::12202e589de49e7e684dc5337aa0db2c9b0ac5992262484ca8536fb5ba3dd1b8aa57":                                                              l.ParticipantID(),
			"122015eac9e8d1b0c5f05c46cf361db029a7906cf8c2c0d1cd61870a1fa3f9335b89":                                                                       l.UpdateID(assigned),
			"122028be5e83ff9f8caca0ba594f091185ae9c6c8ba8abba62faf7cac834c790f383":                                                                       l.UpdateID(created),
			"00e7dd3c56474fdb19608c8788de404faeacb4dadcb8b9952199e75b3d1186829eca121220e0d3101d8a9a35deeb8fba3be0f19ee0f0c84e4617430ef6f67e6870d9045493": string(l.contractID(nil, v.events[v.updates[created].first].contract)),
			"#allvals:AllVals:Nothing": "#bank:Bank.Account:Nothing",
		},
	}
}

func (r *translation) ask(e recorded.Exchange) answer {
	r.t.Helper()
	body := e.Request
	var o any
	if json.Unmarshal([]byte(body), &o) == nil { // one of them is not JSON on purpose
		body = mustJSON(r.translated("", o))
	}
	request, err := http.NewRequestWithContext(r.t.Context(), e.Method, r.url+e.Path, strings.NewReader(body))
	require.NoError(r.t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := r.get.Do(request)
	require.NoError(r.t, err)
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	require.NoError(r.t, err)
	return answer{r.t, response.StatusCode, response.Header.Get("Content-Type"), b}
}

func (r *translation) translated(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = r.translated(k, e)
		}
	case []any:
		for i, e := range v {
			v[i] = r.translated(key, e)
		}
	case string:
		if to, ok := r.words[v]; ok {
			return to
		}
	case float64:
		if to, ok := r.offsets[int64(v)]; ok && strings.Contains(strings.ToLower(key), "clusive") || key == "activeAtOffset" && ok {
			return to
		}
	}
	return v
}

// learn notes what token of the sandbox stands for a recorded one: the request for the next page has it.
func (r *translation) learn(there, here string) {
	if from := tokenOf(there); from != "" {
		r.words[from] = tokenOf(here)
	}
}

func tokenOf(answer string) string {
	var page struct{ NextPageToken string }
	var list []struct{ StreamContinuationToken string }
	_ = json.Unmarshal([]byte(answer), &page) // one of them does not fit
	_ = json.Unmarshal([]byte(answer), &list)
	if n := len(list); n > 0 {
		return list[n-1].StreamContinuationToken
	}
	return page.NextPageToken
}

// shape is what answers have in common, by the paths of their members.
type shape map[string]*member

type member struct {
	kinds   map[string]bool
	n       int // how often it is there
	objects int // how often it is an object
}

// values have members of the templates that a ledger happens to have.
var values = []string{"createArgument", "contractKey", "choiceArgument", "exerciseResult", "viewValue"}

func (s shape) add(answer string) {
	var v any
	if json.Unmarshal([]byte(answer), &v) == nil {
		s.put("", "", v)
	}
}

func (s shape) put(at, key string, v any) {
	m := s[at]
	if m == nil {
		m = &member{kinds: map[string]bool{}}
		s[at] = m
	}
	m.n++
	switch v := v.(type) {
	case nil:
		m.kinds["null"] = true
	case map[string]any:
		if slices.Contains(values, key) {
			m.kinds["value"] = true
			return
		}
		m.kinds["object"] = true
		m.objects++
		for k, e := range v {
			s.put(at+"."+k, k, e)
		}
	case []any:
		m.kinds["list"] = true
		for _, e := range v {
			s.put(at+"[]", key, e)
		}
	default:
		if slices.Contains(values, key) {
			m.kinds["value"] = true
			return
		}
		m.kinds[fmt.Sprintf("%T", v)] = true
	}
}

// differences are those of the members of answers, and not what is beneath a member that one side does not have.
func (s shape) differences(other shape) map[string]string {
	found := map[string]string{}
	for at := range s {
		if got, want := other.describe(at), s.describe(at); got != want && s.parent(at, other) {
			found[at] = fmt.Sprintf("%s, not %s", got, want)
		}
	}
	for at := range other {
		if s[at] == nil && other.parent(at, s) {
			found[at] = fmt.Sprintf("%s, not nothing", other.describe(at))
		}
	}
	return found
}

// parent reports whether the other side has what the member belongs to.
func (s shape) parent(at string, other shape) bool {
	above := at[:max(strings.LastIndexAny(at, ".["), 0)]
	return other[above] != nil
}

func (s shape) describe(at string) string {
	if s[at] == nil {
		return "nothing"
	}
	kinds := strings.Join(slices.Sorted(maps.Keys(s[at].kinds)), " or ")
	if dot := strings.LastIndex(at, "."); dot >= 0 && !strings.HasSuffix(at, "[]") && s[at].n < s[at[:dot]].objects {
		return kinds + ", sometimes"
	}
	return kinds
}
