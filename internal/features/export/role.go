package export

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"ledgerindexer/ledger"
)

// credentialsOf are those of the variables, else those of a role, which are fetched again before they expire.
func credentialsOf(endpoint url.URL, getenv func(string) string) (*credentials.Credentials, error) {
	key, secret := getenv("AWS_ACCESS_KEY_ID"), getenv("AWS_SECRET_ACCESS_KEY")
	const set = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, by which the object store is accessed"
	switch {
	case key != "" && secret != "":
		return credentials.NewStaticV4(key, secret, getenv("AWS_SESSION_TOKEN")), nil
	case !slices.ContainsFunc(ofRole, func(name string) bool { return getenv(name) != "" }):
		return nil, errors.New(set + ", or give the pod or task a role")
	case getenv(tokenFile) != "" && !s3utils.IsAmazonEndpoint(endpoint):
		return nil, errors.New(set + ": for the token of " + tokenFile + " only Amazon gives credentials, and " +
			"AWS_ENDPOINT_URL is of another store")
	}
	return credentials.New(role{new(credentials.IAM)}), nil
}

// tokenFile is the variable that names the file with the token of a pod, for which Amazon gives credentials.
const tokenFile = "AWS_WEB_IDENTITY_TOKEN_FILE"

// ofRole are the variables by which a cluster tells a pod, or a task, where the credentials of its role are to be had.
var ofRole = []string{tokenFile, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"}

// role has the credentials of the role of a pod or task.
type role struct{ *credentials.IAM }

// RetrieveWithCredContext fetches the credentials. The client tries again what may pass, as it does with its own
// requests; what is refused is a *ledger.Problem. The errors hide what they wrap, so that neither a missing file nor
// the end of an answer is mistaken for an object's. They leave out where a request went: of a task it has an id by
// which others get its credentials.
func (r role) RetrieveWithCredContext(of *credentials.CredContext) (credentials.Value, error) {
	seen := &lastAnswer{next: of.Client.Transport}
	with, client := *of, *of.Client
	client.Transport, with.Client = seen, &client
	value, err := r.IAM.RetrieveWithCredContext(&with)
	if err == nil || errors.Is(err, context.Canceled) {
		return value, err
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	answer, _ := errors.AsType[credentials.ErrorResponse](err)
	if seen.asked && !refuses(seen.status, answer.STSError.Code) {
		// the client tries this code again
		return value, minio.ErrorResponse{Code: "RequestError", Message: "fetch the credentials of the role: " + err.Error()}
	}
	what := "the credentials of the role can't be asked for"
	if seen.asked {
		what = "the credentials of the role are refused (" + cmp.Or(answer.STSError.Code, strconv.Itoa(seen.status)) + ")"
	}
	return value, &ledger.Problem{
		What: what, Err: errors.New(err.Error()),
		Do: "see AWS_ROLE_ARN and " + tokenFile + ", or the other variables by which the cluster tells the credentials of " +
			"a role, and who may take that role",
	}
}

// refuses reports whether the same request would be refused again.
func refuses(status int, code string) bool {
	passes := []int{http.StatusRequestTimeout, http.StatusTooManyRequests}
	return status >= 400 && status < 500 && !slices.Contains(passes, status) && !strings.HasPrefix(code, "Throttling") &&
		code != "IDPCommunicationError"
}

// lastAnswer is a transport that has the status of the last answer.
type lastAnswer struct {
	next   http.RoundTripper
	asked  bool
	status int // 0: nothing came
}

// RoundTrip sends a request.
func (l *lastAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	l.asked, l.status = true, 0
	answer, err := l.next.RoundTrip(r)
	if err == nil {
		l.status = answer.StatusCode
	}
	return answer, err
}
