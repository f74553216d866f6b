package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
)

// ledgerCommand prints what the ledger itself answers, one JSON document per line. It uses no database.
type ledgerCommand struct {
	Get ledgerGet `cmd:"" help:"Send a request that reads, and print the answer: one JSON document per line."`
}

// getTries is how often a request is sent that failed for a reason that may pass.
const getTries = 4

type ledgerGet struct {
	Path string `arg:"" help:"Path below --ledger-url with its query, such as /v2/state/ledger-end or '/v2/updates?limit=10'."`
	config.Ledger
	Body   string `env:"-" placeholder:"FILE" help:"File with the JSON object that the request sends; -: standard input. Default: none is sent."`
	Method string `env:"-" enum:",GET,POST" default:"" placeholder:"GET|POST" help:"Method of the request. Default: POST with a body, GET without."`
	Pages  bool   `env:"-" help:"Ask on after each answer with its nextPageToken, or the streamContinuationToken of its last element, until one has none."`
}

func (*ledgerGet) Help() string {
	return "The elements of a list are printed a line each, any other answer on one line, as soon as they come; what a " +
		"terminal would act on is escaped. A list needs a limit in the query where the server would have more than its own " +
		"(200 elements); it ends there, or when nothing came for its idle timeout (stream_idle_timeout_ms), and looks as " +
		"if it were whole. To go on where --pages finds no token: with the last update's offset as beginExclusive in the " +
		"body. docs/interface.md has the members of the requests."
}

func (c *ledgerGet) Validate() error { return c.Ledger.Validate() }

func (c *ledgerGet) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	request, err := c.request()
	if err != nil {
		return &config.UsageError{Err: err}
	}
	client, err := openLedger(c.Ledger, ledger.Scope{Shape: ledger.ShapeACSDelta}, logger)
	if err != nil {
		return err
	}
	defer client.Close()
	retry := ingest.Retry{Logger: logger, Most: getTries, Final: func(err error) bool {
		return ingest.Lasting(err) || errors.Is(err, ledger.ErrNotFound)
	}}
	for more := true; more; {
		var answer ledger.JSON
		err := retry.Do(ctx, func(ctx context.Context) (err error) {
			answer, err = client.Get(ctx, request)
			return err
		})
		if err == nil {
			err = jsonLines(out, answer)
		}
		if err != nil {
			return err
		}
		asked := request
		request, more = asked.After(answer)
		more = more && c.Pages
		if more && reflect.DeepEqual(request, asked) {
			return &ledger.Problem{
				What: "the server answers " + c.Path + " with the token that it was sent, so its pages have no end",
				Do:   "report it to who runs the server; what was printed may not be all",
			}
		}
	}
	return nil
}

func (c *ledgerGet) request() (r participant.RawRequest, err error) {
	path, query, _ := strings.Cut(c.Path, "?")
	r.Path, r.Method = path, c.Method
	if r.Query, err = url.ParseQuery(query); err != nil {
		return r, fmt.Errorf("the query of the path: %w", err)
	}
	if c.Body != "" {
		text, err := c.body()
		if err == nil {
			err = json.Unmarshal(text, &r.Body)
		}
		if err == nil && r.Body == nil {
			err = errors.New("null is no JSON object")
		}
		if err != nil {
			return r, fmt.Errorf("--body: %w", err)
		}
	}
	return r, r.Check()
}

func (c *ledgerGet) body() ([]byte, error) {
	if c.Body == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(c.Body)
}

// jsonLines prints a JSON document, or the elements of a list, one per line. It changes only white space, and escapes
// characters that a terminal would interpret.
func jsonLines(out io.Writer, answer ledger.JSON) error {
	var elements []ledger.JSON
	if answer.Kind() != jsontext.KindBeginArray {
		elements = append(elements, answer)
	} else if err := json.Unmarshal(answer, &elements); err != nil {
		return err
	}
	for _, element := range elements {
		err := element.Compact()
		if err == nil {
			_, err = out.Write(append(printableJSON(element), '\n'))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
