package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/export"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// unsteady is an object store that refuses some requests for a moment, cuts some connections, and gives some lists of
// before.
type unsteady struct {
	store  http.Handler
	late   atomic.Bool
	mu     sync.Mutex
	random *rand.Rand
	lists  map[string][]byte // the last one of each query
}

func (u *unsteady) draw() float64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.random.Float64()
}

// ServeHTTP answers, or does not.
func (u *unsteady) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch n := u.draw(); {
	case n < 0.01:
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "<Error><Code>SlowDown</Code><Message>a moment</Message></Error>")
	case n < 0.02:
		panic(http.ErrAbortHandler)
	case r.URL.Query().Get("list-type") == "2":
		u.list(w, r)
	default:
		u.store.ServeHTTP(w, r)
	}
}

func (u *unsteady) list(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	u.store.ServeHTTP(answer, r)
	text := answer.Body.Bytes()
	u.mu.Lock()
	before, there := u.lists[r.URL.RawQuery]
	u.lists[r.URL.RawQuery] = text
	if there && u.late.Load() && u.random.IntN(2) == 0 {
		text = before
	}
	u.mu.Unlock()
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(answer.Code)
	_, _ = w.Write(text)
}

// killAgain starts a program that has no end, and kills it, some times.
func killAgain(t *testing.T, random *rand.Rand, times int, env []string, program string, args ...string) {
	t.Helper()
	for range times {
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(time.Second))))
		cmd := exec.CommandContext(ctx, program, args...) // killed with SIGKILL
		cmd.Env = append(os.Environ(), env...)
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		require.Error(t, ctx.Err(), "it ended by itself with %v: %s", err, out.String())
		cancel()
	}
}

// filesIn are the files that manifests name, by their ranges and relations.
func filesIn(t *testing.T, to string) (files map[string]string) {
	t.Helper()
	place, err := export.Open(to, false)
	require.NoError(t, err)
	found, err := place.List(t.Context())
	require.NoError(t, err)
	files = map[string]string{}
	for name := range found {
		if !strings.HasPrefix(name, "manifests/") {
			continue
		}
		var text bytes.Buffer
		require.NoError(t, place.Read(t.Context(), name, &text))
		var m export.Manifest
		require.NoError(t, json.Unmarshal(text.Bytes(), &m))
		for _, f := range m.Files {
			files[fmt.Sprintf("%d-%d %s", m.From, m.To, f.Relation)] = fmt.Sprintf("%d rows, SHA-256 %s", f.Rows, f.SHA256)
		}
	}
	return files
}

// Killed again and again, export and prune leave what they leave that nobody disturbed, in an object store that
// fails now and then and lists late.
func TestFilesOutliveKills(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "kills programs again and again until they get through")
	program := build(t, "indexer")
	place := unsteady{random: rand.New(rand.NewPCG(84, 1)), lists: map[string][]byte{}}
	to := objectStore(t, "outlives", func(store http.Handler) http.Handler { place.store = store; return &place })
	random := rand.New(rand.NewPCG(84, 0))
	database, l, server := typedWorld.indexed(t)
	s := &sealed{Ledger: l, t: t, database: database, cfg: indexerFor(database, server, effects())}
	s.sealUntil(allSealed)
	env := []string{"INDEXER_DATABASE_URL=" + database}
	whole := t.TempDir()
	ran := func(args ...string) { // by the same program, whose name is in the files
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	kills := 0
	same := func() {
		t.Helper()
		kills += killUntilDone(t, random, env, program, "export", "--updates=80", "--to", to)
		place.late.Store(false)
		ran("export", "--updates=80", "--check", "--to", to)
		ran("export", "--updates=80", "--to", whole)
		require.Equal(t, filesIn(t, whole), filesIn(t, to))
	}
	place.late.Store(true)
	killAgain(t, random, 3, env, program, "export", "--follow", "--updates=80", "--to", to)
	same()

	place.late.Store(true) // what is exported changes, and is late to be seen
	repairLifetimes(t, Export{Database: config.Database{DatabaseURL: database}})
	_, err := CreateViews(t.Context(), viewsOf(database, "Agreement"), testLogger(t))
	require.NoError(t, err)
	killAgain(t, random, 3, env, program, "export", "--follow", "--updates=80", "--to", to)
	_, err = CreateViews(t.Context(), viewsOf(database, "Offer"), testLogger(t))
	require.NoError(t, err)
	same()

	other, _, _ := typedWorld.indexed(t)
	middle := ledger.Offset(watermarkOf(t, database) / 2)
	plan, _, err := RunPruneExported(t.Context(), config.Database{DatabaseURL: database}, &store.PruneBefore{Offset: &middle}, to, false, testLogger(t))
	require.NoError(t, err)
	_, err = RunPrune(t.Context(), config.Database{DatabaseURL: other}, store.PruneBefore{Offset: new(plan.Floor + 1)}, true, testLogger(t))
	require.NoError(t, err)
	kills += killUntilDone(t, random, env, program, "prune", "--exported", to, "--before", fmt.Sprint(middle), "--apply")
	require.Empty(t, sandbox.Diff(relations(t, other), relations(t, database)))
	same()
	require.Positive(t, kills, "beside those of exports that follow")
}
