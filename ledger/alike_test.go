package ledger

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two services of one network may write an update in several ways. Whatever else differs is a difference.
func TestAlike(t *testing.T) {
	t.Parallel()
	const result = `"exercise_result":{}`
	sent := swap(networkTransaction(1, 3, `"u3:0"`, networkExercise(3, 0, true, `"u3:1"`), networkCreation(3, 1)), result,
		`"exercise_result":{"amount":"0E-10","note":null,"meta":{"values":[["k",{"v":"1.50","n":"1"}]]}}`)
	for change, alike := range map[string]bool{
		`"abcd" > "ef01"`:                          false, // the external transaction hash
		`"abcd" > null`:                            true,
		`"note":null, > `:                          true,
		`"0E-10" > "0.0000000000"`:                 true,
		`"v":"1.50","n":"1" > "n":"1","v":"1.5"`:   true,
		`[["k" > [["\u006b"`:                       true,
		`"note":null > "note":""`:                  false,
		`"v":"1.50" > "v":"1.51"`:                  false,
		`"n":"1" > "n":"01"`:                       false,
		`"Transfer" > "Burn"`:                      false,
		`["alice","dso"] > ["dso","alice"]`:        true,
		`["alice","dso"] > ["alice"]`:              false,
		`"00c1" > "00c2"`:                          false,
		`"workflow_id":"" > "workflow_id":"w"`:     false,
		`"observers":[] > "observers":[],"more":1`: false,
	} {
		from, to, _ := strings.Cut(change, " > ")
		other := strings.Replace(sent, from, to, 1)
		require.NotEqual(t, sent, other, change)
		a, err := DecodeNetworkUpdate([]byte(sent), "dso")
		require.NoError(t, err)
		b, err := DecodeNetworkUpdate([]byte(other), "dso")
		require.NoError(t, err, change)
		require.Equal(t, alike, Alike(&a, &b), change)
		require.Equal(t, alike, Alike(&b, &a), change)
	}
}
