package statuspage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"ledgerindexer/internal/features/admin"
)

// Register adds the page, at /, and its JSON, at /status.json.
func (p *Page) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", p.guarded(func(w http.ResponseWriter, r *http.Request) {
		body, err := render(p.Data(r.Context()), r.URL.Query().Get("refresh") != "no")
		answer(w, "text/html; charset=utf-8", body, err)
	}))
	mux.HandleFunc("GET /status.json", p.guarded(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		encoder := json.NewEncoder(&body)
		encoder.SetIndent("", "  ")
		err := encoder.Encode(p.Data(r.Context()))
		answer(w, "application/json", body.Bytes(), err)
	}))
}

func answer(w http.ResponseWriter, contentType string, body []byte, err error) {
	if err != nil {
		http.Error(w, "the page could not be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Write(body)
}

// guarded adds what keeps other sites out. A site whose name leads to this address (DNS rebinding) could read the page
// with its visitors' browsers: it is answered by names that are known only.
func (p *Page) guarded(next http.HandlerFunc) http.HandlerFunc {
	policy := "default-src 'none'; style-src " + styleHash() + "; img-src data:; base-uri 'none'; form-action 'none'; " +
		"frame-ancestors 'none'"
	return func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if !admin.Known(r.Host, p.cfg.Hosts) {
			http.Error(w, fmt.Sprintf("the status page is not served as %q: ask by address, or name the host with --page-hosts",
				r.Host), http.StatusMisdirectedRequest)
			return
		}
		next(w, r)
	}
}
