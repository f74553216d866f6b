package export

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

const (
	given = `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>` +
		`<AccessKeyId>key</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration>` +
		`</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`
	refused = `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>CODE</Code><Message>so it is</Message></Error></ErrorResponse>`
)

// Credentials that are refused are an operator's to cure. Those that did not come are asked for again, as everything
// else is.
func TestCredentialsThatAreRefused(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("of the pod"), 0o600))
	for name, c := range map[string]struct {
		status  int // of the first answer; 0: the connection is cut
		code    string
		token   string // the name of its file; empty: it is a task
		refused string // empty: it succeeds at the second try
	}{
		"another role":          {http.StatusForbidden, "AccessDenied", token, "refused (AccessDenied): so it is"},
		"a token that is over":  {http.StatusBadRequest, "ExpiredTokenException", token, "refused (ExpiredTokenException): so it is"},
		"no token":              {http.StatusOK, "", token + "s", "can't be asked for: open "},
		"a task without a role": {http.StatusNotFound, "", "", "refused (404): 404 Not Found"},
		"too many requests":     {http.StatusBadRequest, "Throttling", token, ""},
		"a failure":             {http.StatusInternalServerError, "InternalFailure", token, ""},
		"a failure of a proxy":  {http.StatusBadGateway, "", token, ""},
		"no answer":             {0, "", token, ""},
		"no answer to a task":   {0, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			role := role{&credentials.IAM{}}
			roles := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				switch {
				case asked.Add(1) > 1 && c.token == "":
					_, _ = w.Write([]byte(`{"AccessKeyId": "key", "SecretAccessKey": "secret", "Token": "token", "Expiration": "2100-01-01T00:00:00Z"}`))
				case asked.Load() > 1:
					_, _ = w.Write([]byte(given))
				case c.status == 0:
					panic(http.ErrAbortHandler)
				default:
					w.WriteHeader(c.status)
					if c.code != "" {
						_, _ = w.Write([]byte(strings.Replace(refused, "CODE", c.code, 1)))
					}
				}
			}))
			t.Cleanup(roles.Close)
			role.Endpoint = roles.URL + "/unspoken"
			role.EKSIdentity.TokenFile, role.EKSIdentity.RoleARN = c.token, "arn:aws:iam::1:role/exports"
			if c.token == "" {
				role.Container.CredentialsRelativeURI = "/unspoken"
			}
			open, _ := objectStore(t)
			b := open("s3://there/x")
			var err error
			b.client, err = minio.New(b.client.EndpointURL().Host, &minio.Options{Creds: credentials.New(role), Region: "us-east-1"})
			require.NoError(t, err)
			err = b.Write(t.Context(), "manifests/1.json", text("some"))
			if c.refused == "" {
				require.NoError(t, err)
				require.EqualValues(t, 2, asked.Load())
				return
			}
			require.LessOrEqual(t, asked.Load(), int64(1))
			require.ErrorContains(t, err, c.refused)
			require.ErrorContains(t, err, "write s3://there/x/manifests/1.json")
			require.NotErrorIs(t, err, os.ErrNotExist, "that would be a missing object")
			var problem *ledger.Problem
			require.ErrorAs(t, err, &problem)
			require.Contains(t, problem.Do, "AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE")
		})
	}
}

// The address of a task's credentials has an id by which others get them: it stays out of the log.
func TestWhereTheCredentialsOfATaskAre(t *testing.T) {
	t.Parallel()
	roles := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer roles.Close()
	task := role{&credentials.IAM{Endpoint: roles.URL + "/unspoken"}}
	task.Container.CredentialsRelativeURI = "/unspoken"
	_, err := task.RetrieveWithCredContext(&credentials.CredContext{Client: &http.Client{Transport: http.DefaultTransport}})
	require.ErrorContains(t, err, "fetch the credentials of the role: EOF")
	require.NotContains(t, err.Error(), "unspoken")
}

// The token of a pod goes to Amazon only, and to nobody where the store is another's.
func TestTokensAreForAmazonOnly(t *testing.T) {
	t.Parallel()
	for endpoint, refused := range map[string]bool{
		"": false, "https://s3.eu-central-1.amazonaws.com": false, "https://bucket.vpce-1a2b3c4d-5e6f.s3.eu-central-1.vpce.amazonaws.com": false,
		"https://s3.example.com": true, "https://s3.amazonaws.com.example.com": true,
	} {
		environ := map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "arn:aws:iam::1:role/exports", "AWS_ENDPOINT_URL": endpoint}
		getenv := func(name string) string { return environ[name] }
		_, err := openBucket("s3://there/x", getenv)
		require.Equal(t, refused, err != nil, endpoint)
		if refused {
			require.ErrorContains(t, err, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
			require.ErrorContains(t, err, "AWS_WEB_IDENTITY_TOKEN_FILE")
		}
		environ["AWS_ACCESS_KEY_ID"], environ["AWS_SECRET_ACCESS_KEY"] = "key", "secret"
		_, err = openBucket("s3://there/x", getenv)
		require.NoError(t, err, "with keys the token is not used")
	}
}
