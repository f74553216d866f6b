package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	sampleVetted = `{"packages":[{"packageId":"p1","validFromInclusive":"2025-10-14T11:29:20.015513Z","validUntilExclusive":null,` +
		`"packageName":"splice-amulet","packageVersion":"0.1.14"},{"packageId":"p2","validFromInclusive":null,` +
		`"validUntilExclusive":"2027-01-01T00:00:00.000000001Z","packageName":"","packageVersion":""}],` +
		`"participantId":"participant::1","synchronizerId":"sync::1","topologySerial":3}`
	noneVetted = `{"packages":[],"participantId":"participant::2","synchronizerId":"sync::1","topologySerial":1}`
)

func vettedSample() VettedPackages {
	return VettedPackages{
		ParticipantID: "participant::1", SynchronizerID: "sync::1", TopologySerial: 3,
		Packages: []VettedPackage{
			{PackageID: "p1", PackageName: "splice-amulet", PackageVersion: "0.1.14",
				ValidFrom: Time{Time: time.Date(2025, 10, 14, 11, 29, 20, 15513000, time.UTC), Valid: true}},
			{PackageID: "p2", ValidUntil: Time{Time: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), Valid: true, Exact: "2027-01-01T00:00:00.000000001Z"}},
		},
	}
}

func vettedPage(next string, list ...string) []byte {
	text := `{"nextPageToken":` + next + `,"vettedPackages":[`
	for i, vetted := range list {
		if i > 0 {
			text += ","
		}
		text += vetted
	}
	return []byte(text + `]}`)
}

func TestDecodeVettingUpdate(t *testing.T) {
	t.Parallel()
	past, now, err := DecodeVettingUpdate([]byte(`{"newVettedPackages":` + sampleVetted + `,"pastVettedPackages":` + noneVetted + `,"more":{}}`))
	require.NoError(t, err)
	require.Equal(t, vettedSample(), now)
	require.Equal(t, "participant::2", past.ParticipantID)
	require.Empty(t, past.Packages)

	for _, before := range []string{``, `"pastVettedPackages":null,`, `"pastVettedPackages":{},`,
		`"pastVettedPackages":{"packages":[],"participantId":"","synchronizerId":"","topologySerial":0},`,
		`"pastVettedPackages":{"packages":null,"participantId":null,"topologySerial":null},`,
	} {
		past, now, err := DecodeVettingUpdate([]byte(`{` + before + `"newVettedPackages":` + sampleVetted + `}`))
		require.NoError(t, err, before)
		require.Nil(t, past, before)
		require.Equal(t, vettedSample(), now)
	}
}

func TestRequiredAndOptionalMembersOfVettedPackages(t *testing.T) {
	t.Parallel()
	inList := func(vetted string) error {
		_, err := DecodeVettedPackagesPage(vettedPage(`null`, vetted))
		return err
	}
	inUpdate := func(vetted string) error {
		_, _, err := DecodeVettingUpdate([]byte(`{"newVettedPackages":` + sampleVetted + `,"pastVettedPackages":` + vetted + `}`))
		return err
	}
	for _, decode := range []func(string) error{inList, inUpdate} {
		requireMembers(t, -1, sampleVetted, "", decode, "packages participantId synchronizerId topologySerial", "")
		requireMembers(t, -1, sampleVetted, "packages/0", decode, "packageId", "validFromInclusive validUntilExclusive packageName packageVersion")
	}
	requireMembers(t, -1, string(vettedPage(`"x"`, sampleVetted)), "", func(body string) error {
		_, err := DecodeVettedPackagesPage([]byte(body))
		return err
	}, "vettedPackages", "nextPageToken")
	requireMembers(t, -1, `{"newVettedPackages":`+sampleVetted+`,"pastVettedPackages":`+noneVetted+`}`, "", func(body string) error {
		_, _, err := DecodeVettingUpdate([]byte(body))
		return err
	}, "newVettedPackages", "pastVettedPackages")
}

func TestDecodeVettedPackagesRefuses(t *testing.T) {
	t.Parallel()
	good := string(vettedPage(`"x"`, noneVetted, sampleVetted))
	requireRefused(t, DecodeVettedPackagesPage, []badBody{
		{``, `response: the body is empty: unexpected EOF`},
		{`[]`, `response: is an array where an object is expected`},
		{good[:len(good)-2], `response, vettedPackages: the JSON is cut off at byte 517: unexpected EOF`},
		{`{"vettedPackages":{}}`, `response, vettedPackages: is an object where an array is expected`},
		{`{"vettedPackages":[null]}`, `response, vettedPackages[0]: is null where an object is expected`},
		{swap(good, `"x"`, `{}`), `response, nextPageToken: is an object where a text is expected`},
		{swap(good, `"participant::1"`, `""`), `response, vettedPackages[1].participantId: is an empty text`},
		{swap(good, `"sync::1"`, `""`), `response, vettedPackages[0].synchronizerId: is an empty text`},
		{swap(good, `"topologySerial":3`, `"topologySerial":-3`),
			`response, vettedPackages[1].topologySerial: is a negative serial: -3`},
		{swap(good, `"topologySerial":3`, `"topologySerial":2147483648`),
			`response, vettedPackages[1].topologySerial: is not a whole number of at most 32 bits: 2147483648`},
		{swap(good, `"topologySerial":3`, `"topologySerial":"3"`),
			`response, vettedPackages[1].topologySerial: is not a whole number of at most 32 bits: "3"`},
		{swap(good, `"p2"`, `"p1"`), `response, vettedPackages[1].packages[1].packageId: stands twice in the list`},
		{swap(good, `"p2"`, `""`), `response, vettedPackages[1].packages[1].packageId: is an empty text`},
		{swap(good, `"splice-amulet"`, `7`), `response, vettedPackages[1].packages[0].packageName: is a number where a text is expected`},
		{swap(good, `2027-01-01T00`, `2027-02-30T00`), `response, vettedPackages[1].packages[1].validUntilExclusive: ` +
			`not a time of the form 2006-01-02T15:04:05.999999Z: "2027-02-30T00:00:00.000000001Z"`},
		{swap(good, `"2025-10-14T11:29:20.015513Z"`, `{"seconds":1}`),
			`response, vettedPackages[1].packages[0].validFromInclusive: is an object where a text is expected`},
		{swap(good, `splice-amulet`, `spl\u0000ice`),
			`response, vettedPackages[1].packages[0].packageName: holds a NUL character, which a text of the database can't: "spl\u0000ice"`},
	})
	requireRefused(t, decodeVetting, []badBody{
		{`null`, `response: is null where an object is expected`},
		{`{"newVettedPackages":[]}`, `response, newVettedPackages: is an array where an object is expected`},
		{`{"newVettedPackages":{}}`, `response, newVettedPackages.packages: is required, and absent or null`},
		{`{"newVettedPackages":` + sampleVetted + `,"pastVettedPackages":{"topologySerial":1}}`,
			`response, pastVettedPackages.packages: is required, and absent or null`},
		{`{"newVettedPackages":` + sampleVetted + `,"pastVettedPackages":{"participantId":[]}}`,
			`response, pastVettedPackages.participantId: is an array where a text is expected`},
	})
}
